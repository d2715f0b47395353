import copy
import subprocess
import sys

import pytest
import sklearn.exceptions

import recsys
from recsys import errors


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


def test_errors_do_not_import_scikit_learn_before_they_need_to():
    code = (
        "import sys; from recsys import errors; assert 'sklearn' not in sys.modules; "
        "errors.NotFittedError; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
