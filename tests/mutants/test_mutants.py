"""The suite notices each deliberate fault, and passes without it."""

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import apply, copy_package, run

PASSED, FAILED = 0, 1  # pytest's exit codes; others mean that nothing was tested

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    copy_package(folder)
    return folder


@pytest.fixture(scope="module")
def passes(sound):
    """Whether some tests pass without a fault; each selection is run once."""
    found = {}

    def ask(tests, compiled):
        if (tests, compiled) not in found:
            found[tests, compiled] = run(tests, sound, compiled)
        return found[tests, compiled]

    return ask


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_is_noticed(mutant, passes, tmp_path):
    code, told = passes(mutant.tests, mutant.compiled)
    assert code == PASSED, f"these tests fail without the fault, too:\n{told}"
    copy_package(tmp_path)
    apply(mutant, tmp_path)
    code, told = run(mutant.tests, tmp_path, mutant.compiled)
    assert code == FAILED, f"{mutant.name} was not noticed:\n{told}"
