"""Scripts that measure, and what they found."""

import sys
from types import TracebackType

from recsys.errors import InputError


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print one line for data that are missing, and the traceback of anything else."""
    if error.args == ("RECSYS_DATA",):
        error = InputError("set RECSYS_DATA to the folder of the datasets")
    if isinstance(error, InputError):
        print(f"benchmarks: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _report
