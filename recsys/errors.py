"""The exceptions that recsys raises.

RecsysError
├── InputError (ValueError)         what was given cannot be used; the text says what to do
│   ├── OutOfRangeError (IndexError)            an index is beyond the users or items there are
│   ├── CapabilityError (NotImplementedError)   the ranker does not offer what was asked
│   ├── ModelFileError              a ranker file is truncated, altered, too new or no ranker
│   └── DatasetError                a dataset is unknown, absent or damaged
├── DatabaseError (OSError)         events could not be kept or read
├── NotFittedError (scikit-learn's, RuntimeError)   the model was asked before `fit`
└── FitError (RuntimeError)         fitting diverged or did not reach its tolerance
"""

from typing import TYPE_CHECKING, Any


class RecsysError(Exception):
    """Base of every exception that recsys raises on purpose."""


class InputError(RecsysError, ValueError):
    """What was given cannot be used; the message names it, what is accepted and the remedy."""


class OutOfRangeError(InputError, IndexError):
    """An index of a user or an item is out of range; an IndexError too, as implicit raises."""


class CapabilityError(InputError, NotImplementedError):
    """A ranker does not offer what was asked; a NotImplementedError too, as implicit raises."""


class ModelFileError(InputError):
    """A saved ranker is truncated, altered, too new, or something else entirely."""


class DatasetError(InputError):
    """A dataset is unknown, absent or damaged."""


class DatabaseError(RecsysError, OSError):
    """A database of events cannot be opened, read or written."""


if TYPE_CHECKING:
    from sklearn.exceptions import NotFittedError as _SklearnNotFittedError

    class NotFittedError(RecsysError, _SklearnNotFittedError, RuntimeError):
        """A model was asked for something before it was fitted; scikit-learn's own error, too."""


class FitError(RecsysError, RuntimeError):
    """Fitting diverged or did not reach its tolerance."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: '1 user', '1,682 users', '0 people'.

    Parameters
    ----------
    number : int
    one : str
    many : str, optional
        The plural; `one` with an s when not given.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def __getattr__(name: str) -> Any:
    """Make `NotFittedError` when it is first asked for: its base takes a second to import."""
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as theirs

    members = {
        "__module__": __name__,
        "__doc__": "A model was asked for something before it was fitted; scikit-learn's error, too.",
    }
    made = type(name, (RecsysError, theirs, RuntimeError), members)
    globals()[name] = made
    return made
