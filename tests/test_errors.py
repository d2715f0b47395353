import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.exceptions

import recsys
from recsys import errors
from recsys.data import tables
from recsys.data.splits import find_protocol, protocol_for
from recsys.utils import validation


def test_not_fitted_is_scikit_learns_and_ours():
    assert recsys.NotFittedError is errors.NotFittedError
    for base in (errors.RecsysError, sklearn.exceptions.NotFittedError, RuntimeError, ValueError):
        assert issubclass(errors.NotFittedError, base)
    error = errors.NotFittedError("call fit first")
    again = copy.copy(error)
    assert type(again) is errors.NotFittedError and str(again) == "call fit first"
    assert errors.NotFittedError.__module__ == "recsys.errors" and errors.NotFittedError.__doc__
    with pytest.raises(AttributeError, match="no attribute 'NotFitted'"):
        _ = errors.NotFitted


@pytest.mark.thorough
def test_errors_do_not_import_scikit_learn_before_they_need_to():
    code = (
        "import sys; from recsys import errors; assert 'sklearn' not in sys.modules; "
        "errors.NotFittedError; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


ODD = [
    np.zeros((3, 3)),
    np.arange(5000.0),
    np.array(["a\nb"], dtype=object),
    pd.DataFrame({"a": range(90)}),
    pd.Series(range(9)),
    sp.csr_matrix(np.eye(4)),
    list(range(10_000)),
    "a\nb\r\nc\u2028d\x0be\x85f",
    "x" * 10**5,
    b"\n\x00",
    {"a": np.zeros((2, 2))},
    (np.zeros((2, 2)),),
    {1, 2},
    object(),
    np.ma.masked_array([[1], [2]]),
]
CALLS = {
    "whole number": lambda given: validation.check_integer("N", given, 1),
    "number": lambda given: validation.check_real("strength", given, 0.0, 1.0),
    "choice": lambda given: validation.check_choice("of", given, ("users", "interactions")),
    "keep": lambda given: recsys.make_ranker("ease", keep_inverse=given).fit(
        sp.identity(4, format="csr")
    ),
    "ranker": recsys.make_ranker,
    "protocol": find_protocol,
    "protocol beside a test half": lambda given: protocol_for(given, "test.csv"),
    "table": lambda given: tables.make({}, given),
    "dataset": recsys.load_dataset,
}


def kinds():
    """Return all error classes of the package, NotFittedError among them."""
    found = [errors.RecsysError, errors.NotFittedError]
    for one in found:
        found += [sub for sub in one.__subclasses__() if sub not in found]
    return found


@pytest.mark.parametrize("given", ODD, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("call", CALLS)
def test_what_was_given_makes_no_message_of_several_lines(call, given):
    with pytest.raises(errors.InputError) as caught:
        CALLS[call](given)
    said = str(caught.value)
    assert len(said.splitlines()) == 1 and len(said) <= errors.LONGEST


@pytest.mark.parametrize("given", ODD, ids=lambda given: type(given).__name__)
def test_each_error_is_one_line(given):
    assert len(kinds()) == 8
    for kind in kinds():
        error = kind(f"N is {given}: give another")
        for one in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
            said = str(one)
            assert type(one) is kind and len(said.splitlines()) == 1 and len(said) <= errors.LONGEST
            assert said.startswith("N is ") and said.endswith(": give another")


def test_what_fits_into_a_line_stays_as_it_is():
    for given in ("", "no model  'a b'", " two  spaces ", "tab\there", "x" * errors.LONGEST):
        assert str(errors.InputError(given)) == given
    assert errors.InputError(given, 3).args == (given, 3) and errors.InputError().args == ()
    long = str(errors.InputError("a" * errors.LONGEST + "b"))
    assert len(long) == errors.LONGEST and "a … a" in long and long.endswith("ab")
