"""The package's only numba decorator, its threads, and the lock around what runs in them.

numba is imported when a compiled function is first called. Its disk cache looks at one source file only
and would go on using an old callee of another file, so compiled code is kept in a folder named after a
digest of all sources that have compiled functions.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from typing import Any

import platformdirs

from recsys.errors import InputError

INSTALLED = ("site-packages", "dist-packages")
# `fastmath` for sums in any order, which lets them vectorise; NaN and infinity stay what they are.
SUMS = {"reassoc", "contract", "nsz"}
# Operations of one function that NumPy does in some tenths of a second: what numba's import takes.
PAYS_FROM = 50_000_000
COMPILING = (
    "recsys compiles what is used for the first time on this machine: some seconds, once "
    "(`recsys compile` does it ahead)"
)

# Called, in the thread that compiles, when something is compiled that is not on disk.
when_compiling: list[Callable[[], None]] = []
# The most threads of this thread's passes; None for all processors.
max_threads: ContextVar[int | None] = ContextVar("max_threads", default=None)

AT_ONCE = {"on": False}  # whether to compile whatever is called
_LOADING = threading.RLock()
# What runs in parts takes turns: two at once would have more threads than were asked for.
_PARALLEL_LOCK = threading.RLock()
_OPENMP_PROCESSES: set[int] = set()


@cache
def code_digest(root: Path) -> str:
    """Return a digest of a package's sources that have compiled functions, and of numba's version.

    Where the package is installed, sizes and dates stand for texts: they need not be read at each start.
    """
    digest = hashlib.sha256(importlib.metadata.version("numba").encode())
    installed = root.parent.name in INSTALLED
    for path in sorted(root.rglob("*.py")):
        if installed:
            about = path.stat()
            digest.update(f"{path.name} {about.st_size} {about.st_mtime_ns}".encode())
        elif b"@jit" in (text := path.read_bytes()) or path.name == "_jit.py":
            digest.update(text)
    return digest.hexdigest()[:16]


@cache
def cache_dir() -> Path | None:
    """Return the first folder that can be written, or None: compiled code is then not kept."""
    uid = os.getuid() if hasattr(os, "getuid") else None
    bases = [Path(given)] if (given := os.environ.get("NUMBA_CACHE_DIR")) else []
    with suppress(RuntimeError, OSError):
        bases.append(Path(platformdirs.user_cache_dir("recsys")) / "numba")
    bases.append(Path(tempfile.gettempdir()) / f"recsys-numba-{uid}")
    for base in bases:
        folder = base / f"code-{uid}"
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if uid not in (None, folder.stat().st_uid):
                continue  # compiled code is executed: none is taken that another user could have put
            with tempfile.TemporaryFile(dir=folder):
                return folder
    return None


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Compile whatever is called inside the block, as processes do that live long and answer fast."""
    before, AT_ONCE["on"] = AT_ONCE["on"], True
    try:
        yield
    finally:
        AT_ONCE["on"] = before


class Compiled:
    """A plain function of arrays that numba compiles, from its first call on.

    numba sees the dispatcher in its stead (`_numba_type_`), also where compiled code calls it.
    """

    def __init__(self, plain: Callable[..., Any], settings: dict[str, Any]) -> None:
        functools.update_wrapper(self, plain)
        self.py_func, self._settings, self._operations = plain, settings, 0
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """The compiled function; where numba is switched off, the Python function itself."""
        with _LOADING:
            if self._dispatcher is None:
                numba, folder = _numba(), cache_dir()
                settings = {"cache": folder is not None} | self._settings
                # numba takes the folder from its configuration, when it decorates.
                before = numba.config.CACHE_DIR
                if folder is not None:
                    numba.config.CACHE_DIR = str(folder / code_digest(Path(__file__).parent))
                try:
                    self._dispatcher = _sturdy(numba.njit(**settings)(self.py_func))
                finally:
                    numba.config.CACHE_DIR = before
        return self._dispatcher

    def small(self, operations: int) -> bool:
        """Return whether a form in NumPy is the cheaper one: compiling does not yet pay for itself."""
        if self._dispatcher is not None or AT_ONCE["on"]:
            return False
        self._operations += operations
        return self._operations < PAYS_FROM

    def __call__(self, *args: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_dispatcher":
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    def __reduce__(self) -> str:
        return self.__qualname__  # a global of its module

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a plain function of arrays: cached on disk, without the GIL, numpy's division.

    A literal 0 handed to another compiled function is a type of its own, for which that is compiled once
    more: counters that are passed on start at np.int64(0). Sorting by numpy takes seconds to compile.
    """
    settings = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True} | options
    return partial(Compiled, settings=settings) if function is None else Compiled(function, settings)


def _sturdy(dispatcher: Any) -> Any:
    """Let a dispatcher compile again where its files on disk are damaged, which numba raises."""
    cache: Any = getattr(dispatcher, "_cache", None)
    load: Any = getattr(cache, "load_overload", None)

    def load_overload(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:
            cache.flush()  # the next one starts empty
            return None

    if load is not None:
        cache.load_overload = load_overload
    return dispatcher


def _numba() -> Any:
    """Import numba, and define what it must know before anything is compiled."""
    with _LOADING:
        import numba
        import numba.core.event
        import numba.extending

        if borrowed.intrinsic is None and not numba.config.DISABLE_JIT:
            borrowed.intrinsic = numba.extending.intrinsic(_borrow)
            numba.core.event.register("numba:compile", _announcer())
    return numba


def _announcer() -> Any:
    from numba.core.event import Listener

    class Announcer(Listener):
        said = False

        def on_start(self, event: Any) -> None:
            """Say once, to a person, that something is compiled."""
            for each in when_compiling:
                each()
            if not self.said and (sys.stderr.isatty() or "ipykernel" in sys.modules):
                print(COMPILING, file=sys.stderr)
            self.said = True

        def on_end(self, event: Any) -> None:
            """Say nothing."""

    return Announcer()


@contextmanager
def compiling(add_seconds: Callable[[float], None]) -> Iterator[None]:
    """Call a function with the seconds of compilation inside the block, at its end."""
    _numba()
    from numba.core.event import install_timer

    with install_timer("numba:compile", add_seconds):
        yield


def processors() -> int:
    """Return the number of processors, or $NUMBA_NUM_THREADS."""
    return _numba().config.NUMBA_NUM_THREADS


class _Borrowed:
    """The function `borrowed` for compiled code, an intrinsic of numba; in Python, the identity."""

    intrinsic: Any = None

    def __call__(self, x: Any) -> Any:
        return x

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        return cpu_target.typing_context.resolve_value_type(self.intrinsic)


borrowed = _Borrowed()


def _borrow(typing: Any, x: Any) -> Any:
    """Return arrays without reference counts; the caller keeps them alive.

    Counts are atomic: threads that share the arrays would wait for each other.
    """
    from numba import types

    def strip(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value=value)
            array.meminfo, array.parent = array.meminfo.type(None), array.parent.type(None)
            return array._getvalue()
        if isinstance(kind, types.BaseTuple):
            values = [builder.extract_value(value, k) for k in range(len(kind))]
            parts = [strip(context, builder, *pair) for pair in zip(kind, values, strict=True)]
            return context.make_tuple(builder, kind, parts)
        return value

    def make(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return strip(context, builder, x, arguments[0])

    return x(x), make


def check_openmp(threads: int) -> None:
    """Refuse threads of OpenMP in a process that was forked after they had started: it would hang."""
    if threads == 1:
        return
    if _OPENMP_PROCESSES - {os.getpid()}:
        raise InputError(
            "this process was forked after recsys had started threads: use the start "
            "method 'spawn' or 'forkserver'"
        )
    _OPENMP_PROCESSES.add(os.getpid())


def in_threads(threads: int | None, function: Any, *args: Any) -> None:
    """Call function(part, parts, *args) for each part, one a thread; None for all processors.

    The function is a serial one, compiled by `jit`, that does its share and writes to arrays. It serves
    single calls as well, which a `prange` around it would not: that is compiled apart, for longer.
    """
    if threads == 1:
        function(0, 1, *args)
        return
    with _PARALLEL_LOCK:
        parts = max(1, min(threads or max_threads.get() or processors(), processors()))
        others = [_pool().submit(function, part, parts, *args) for part in range(1, parts)]
        try:
            function(0, parts, *args)
        finally:
            for other in others:
                other.result()


def over_rows(rows: int, function: Any, *args: Any) -> None:
    """Call a function of `in_threads` for `rows` rows; a single row runs here, without the lock."""
    in_threads(1 if rows <= 1 else None, function, *args)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, processors() - 1), "recsys")


def _after_fork() -> None:
    """Forget threads and locks, which a forked process does not have."""
    global _LOADING, _PARALLEL_LOCK
    _LOADING, _PARALLEL_LOCK = threading.RLock(), threading.RLock()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
