"""The exceptions that recsys raises.

RecsysError
├── InputError (ValueError)         what was given cannot be used; the text says what to do
│   ├── OutOfRangeError (IndexError)            an index is beyond the users or items there are
│   ├── CapabilityError (NotImplementedError)   the ranker does not offer what was asked
│   ├── ModelFileError              a ranker file is truncated, altered, too new or no ranker
│   └── DatasetError                a dataset is unknown, absent or damaged
├── NotFittedError (scikit-learn's, RuntimeError)   the model was asked before `fit`
└── FitError (RuntimeError)         fitting diverged or did not reach its tolerance
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

LONGEST = 1000  # characters of a message


class RecsysError(Exception):
    """Base of all exceptions of recsys. The message is one line."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(one_line(part) if isinstance(part, str) else part for part in args))


class InputError(RecsysError, ValueError):
    """An invalid input."""


class OutOfRangeError(InputError, IndexError):
    """An index of a user or an item is out of range; also an IndexError, as in implicit."""


class CapabilityError(InputError, NotImplementedError):
    """A ranker does not have a method or option; also a NotImplementedError, as in implicit."""


class ModelFileError(InputError):
    """A model file is damaged, too new, or not a model file."""


class DatasetError(InputError):
    """A dataset is unknown, absent or damaged."""


if TYPE_CHECKING:
    from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

    class NotFittedError(RecsysError, _SklearnNotFittedError, RuntimeError):
        """A model was asked for something before it was fitted; scikit-learn's own error, too."""


class FitError(RecsysError, RuntimeError):
    """Fitting diverged or did not reach its tolerance."""


def one_line(text: str, longest: int = LONGEST) -> str:
    r"""Return a text without line breaks, and without its middle where it is too long.

    >>> one_line("N must be an integer, not array([[1, 2],\n       [3, 4]])")
    'N must be an integer, not array([[1, 2], [3, 4]])'
    >>> one_line("a" * 9 + "b" * 9, longest=8)
    'aaa … bb'
    """
    lines = text.splitlines()
    if lines != [text]:
        text = " ".join(filter(None, (line.strip() for line in lines)))
    if len(text) <= longest:
        return text
    end = longest // 4
    return f"{text[: longest - end - 3]} … {text[-end:]}"


def first_line(error: object, longest: int = 120) -> str:
    """Return the first line of another library's error, or its class."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:longest]


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: '1 user', '1,682 users', '0 rows'."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listing(names: Sequence[str]) -> str:
    """Return 'a', 'a and b' or 'a, b and c'."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def __getattr__(name: str) -> Any:
    """Make `NotFittedError` when it is first asked for: its base takes a second to import."""
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as theirs

    members = {
        "__module__": __name__,
        "__doc__": "A model was used before it was fitted; also the error of scikit-learn.",
    }
    made = type(name, (RecsysError, theirs, RuntimeError), members)
    globals()[name] = made
    return made
