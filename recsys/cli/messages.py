"""Messages of Python functions, in the words of the terminal."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from recsys.cli.outputs import option_name
from recsys.errors import RecsysError


def names_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let the messages of a command name its options where they would name parameters of Python."""

    @functools.wraps(command)
    def named(**given: Any) -> None:
        try:
            command(**given)
        except RecsysError as error:
            hints = get_type_hints(command, include_extras=True)
            options = {name: option_name(hint) for name, hint in hints.items()}
            told = in_options(str(error), {name: one for name, one in options.items() if one})
            error.args = (told, *error.args[1:])
            raise

    return named


def in_options(message: str, options: Mapping[str, str]) -> str:
    """Return a message with options in place of the parameters that it is about.

    A parameter is recognised before "must", and anywhere if an underscore shows that it is no English
    word.

    >>> in_options("folds must be at least 1, not 0", {"folds": "--folds"})
    '--folds must be at least 1, not 0'
    >>> in_options("too many folds for item_ids", {"folds": "--folds", "item_ids": "--item-id"})
    'too many folds for --item-id'
    """
    for name, option in options.items():
        end = r"(?![\w(=-])" if "_" in name else r"(?= must )"
        message = re.sub(rf"(?<![\w.:-]){re.escape(name)}{end}", option, message)
    return message
