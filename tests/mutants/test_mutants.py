"""The suite notices each deliberate fault, and passes without it.

`RECSYS_MUTANTS=10` runs a tenth of them, drawn at random.
"""

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.drawn import drawn
from tests.mutants.mutant import apply, copy_package, run

PASSED, FAILED = 0, 1  # pytest's exit codes; others mean that nothing was tested

pytestmark = pytest.mark.slow


DRAWN = drawn(MUTANTS)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    copy_package(folder)
    return folder


def together():
    """Return every selection without an expression as one, and those with one as one for each path."""
    plain, expressions = {}, {}
    for mutant in DRAWN:
        if mutant.compiled:
            continue
        if "-k" in mutant.tests:
            at = mutant.tests.index("-k")
            where = mutant.tests[:at] + mutant.tests[at + 2 :]
            expressions.setdefault(where, {})[f"({mutant.tests[at + 1]})"] = mutant.tests
        else:
            plain |= dict.fromkeys(mutant.tests)
    yield tuple(plain), {mutant.tests for mutant in DRAWN if set(mutant.tests) <= set(plain)}
    for where, found in expressions.items():
        yield (*where, "-k", " or ".join(found)), set(found.values())


@pytest.fixture(scope="module")
def passes(sound):
    """Whether some tests pass without a fault.

    Those of all faults are run together first, in a few processes; where some of them fail, each selection
    is run by itself, and once.
    """
    pass_together = set()
    for tests, selections in together():
        if run(tests, sound, compiled=False)[0] == PASSED:
            pass_together |= selections
    found = {}

    def ask(tests, compiled):
        if tests in pass_together and not compiled:
            return PASSED, ""
        if (tests, compiled) not in found:
            found[tests, compiled] = run(tests, sound, compiled)
        return found[tests, compiled]

    return ask


@pytest.mark.parametrize("mutant", DRAWN, ids=lambda mutant: mutant.name)
def test_is_noticed(mutant, passes, tmp_path):
    code, told = passes(mutant.tests, mutant.compiled)
    assert code == PASSED, f"these tests fail without the fault, too:\n{told}"
    copy_package(tmp_path)
    apply(mutant, tmp_path)
    code, told = run(mutant.tests, tmp_path, mutant.compiled)
    assert code == FAILED, f"{mutant.name} was not noticed:\n{told}"
