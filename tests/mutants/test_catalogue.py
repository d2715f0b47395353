"""The deliberate faults fit the code as it is; `test_mutants`, slow, looks whether they are noticed."""

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, changed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_code_of_a_fault_is_there_once(mutant):
    compile(changed(mutant, ROOT), mutant.module, "exec")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_files_of_a_fault_s_tests_exist(mutant):
    paths = [Path(test.split("::")[0]) for test in mutant.tests if test.startswith("tests")]
    assert paths and all((ROOT / path).exists() for path in paths)


def test_names_are_told_apart():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
