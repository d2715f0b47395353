"""Messages name options, not parameters of Python."""

from typing import get_type_hints

import pytest

from recsys import cli
from recsys.cli.commands import COMMANDS, load
from recsys.cli.messages import in_options
from recsys.cli.outputs import option_name


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("evaluate", "--folds", "0"), "--folds must be an integer of at least 1, not 0"),
        (("evaluate", "--sampled-negatives", "0"), "--sampled-negatives must be an integer of at least 1, not 0"),
        (("evaluate", "--sampled-negatives", "5", "--candidates", "x"), "--sampled-negatives must not be given with"),
        (("tune", "--model", "ease", "--trials", "0"), "--trials must be an integer of at least 1, not 0"),
        (("evaluate", "--model", "ease:regularization=0"), "regularization must be a finite number above 0, not 0"),
    ],
)  # fmt: skip
def test_a_parameter_is_told_as_its_option(capsys, arguments, told):
    assert cli.call([*arguments, "--dataset", "sample"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"recsys: {told}")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_told_by_a_name_that_the_command_takes(name):
    command = load(name)
    taken = {spelling for parameter in command.params for spelling in parameter.opts}
    hints = get_type_hints(command.callback, include_extras=True)
    named = {option_name(hint) for hint in hints.values()} - {None}
    assert named <= taken


@pytest.mark.parametrize(
    "message",
    [
        "cf-komd:folds must be at least 1",
        "two folds are few",
        "item_ids=[1, 2] is no table",
        "no_item_ids here",
        "my-folds must go",
    ],
)
def test_other_words_stay(message):
    assert in_options(message, {"folds": "--folds", "item_ids": "--item-id"}) == message
