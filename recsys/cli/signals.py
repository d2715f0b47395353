"""SIGINT and SIGTERM end the command in time and with their exit codes, whatever runs.

Three layers, each for what the one before cannot do. Handlers in Python raise in the main thread, which
cleans up; they run between two bytecodes only. A thread, woken by the C side of the signal, ends the
process when that took too long, say in compiled code; it needs the interpreter's lock. A handler in
machine code arms a timer of the system that ends the process without the interpreter: some of LAPACK
keeps the lock for minutes.

This module is imported before anything heavy, so that the handlers stand from the first moments on.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

STOPPING = (signal.SIGINT, signal.SIGTERM)
CLEANING = 1.4  # seconds that the main thread has to leave by itself
LAST = 1.7  # seconds after which the process ends without the interpreter

_received: list[int] = []  # the signals that came, in order
_over: list[bool] = []  # not empty once the command's work is done
_native: list[Any] = []  # machine code and what it points to, which must live as long as the process


def leave_on_signals() -> None:
    """Let SIGINT and SIGTERM end the process: codes 130 and 143, within two seconds, no traceback."""
    for number in STOPPING:
        signal.signal(number, _stop)
    atexit.register(_ignore)  # before all others: it is called last
    # Where an exception cannot go on, as in a weak reference's callback, Python prints it: not this one.
    sys.unraisablehook = _unraisable
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)
    import threading  # after the handlers stand

    threading.Thread(target=_watch, args=(reading,), daemon=True, name="signals").start()


def leave_without_the_interpreter() -> None:
    """Add the handler in machine code; it calls Python's own and arms the timer.

    It is compiled by llvmlite, which numba needs anyway: call it before what may keep the lock, not
    before what prints a line of help. Nothing changes where `leave_on_signals` was not called, or where
    Python does not give its handlers away.
    """
    if _native or os.name != "posix" or signal.getsignal(signal.SIGTERM) is not _stop:
        return
    import ctypes
    import struct

    from llvmlite import binding

    if not hasattr(ctypes.pythonapi, "PyOS_setsig"):
        return
    get, put = ctypes.pythonapi.PyOS_getsig, ctypes.pythonapi.PyOS_setsig
    get.restype = put.restype = ctypes.c_void_p
    put.argtypes = [ctypes.c_int, ctypes.c_void_p]
    for start in (binding.initialize_native_target, binding.initialize_native_asmprinter):
        start()
    # struct itimerval: an interval of 0, and the time until the one alarm, in seconds and microseconds.
    span = ctypes.create_string_buffer(struct.pack("@4l", 0, 0, int(LAST), round(LAST % 1 * 1e6)))
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    _native.extend((engine, machine, span))
    for number in STOPPING:
        python = get(number)
        if not python:
            continue
        addresses = {"number": int(number), "code": 128 + number, "alarm": int(signal.SIGALRM)}
        addresses |= {"span": ctypes.addressof(span)}
        leave = _compiled(engine, f"leave_{number:d}", _LEAVE, addresses)
        binding.add_symbol(f"recsys_python_{number:d}", python)
        arm = _compiled(engine, f"arm_{number:d}", _ARM, addresses | {"leave": leave})
        put(number, arm)


# Addresses are written as numbers: how LLVM spells pointers depends on its version. All that these call
# may be called in a handler.
_LEAVE = """
declare void @_exit(i32)
define void @leave_{number}(i32 %n) {{
  call void @_exit(i32 {code})
  ret void
}}
"""
_ARM = """
declare i64 @signal(i32, i64)
declare i32 @setitimer(i32, i64, i64)
declare void @recsys_python_{number}(i32)
define void @arm_{number}(i32 %n) {{
  %a = call i64 @signal(i32 {alarm}, i64 {leave})
  %b = call i32 @setitimer(i32 0, i64 {span}, i64 0)
  call void @recsys_python_{number}(i32 %n)
  ret void
}}
"""


def _compiled(engine: Any, name: str, text: str, names: dict[str, int]) -> int:
    """Return the address of a function of LLVM's assembly."""
    from llvmlite import binding

    engine.add_module(binding.parse_assembly(text.format(**names)))
    engine.finalize_object()
    return int(engine.get_function_address(name))


def leave_to_the_server() -> None:
    """Undo all of it for a server that stops by itself, in its own time.

    SIGTERM, which the server raises again once it has stopped, is then no news.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.getsignal(signal.SIGINT))  # without the machine code


def code_of(code: int) -> int:
    """Return the exit code of a command: its own, or that of the signal that came meanwhile."""
    return 128 + _received[0] if _received else code


def nothing_left_to_clean() -> None:
    """Let a signal end the process at once: the command is over, and only Python's own end is left."""
    _over.append(True)


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise in the main thread, once: a second signal must not disturb the cleaning up."""
    if _over:
        os._exit(128 + number)
    _received.append(number)
    if len(_received) == 1:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _ignore() -> None:
    """Ignore signals while Python takes itself apart: it puts the system's handlers back then."""
    signal.set_wakeup_fd(-1)
    for number in STOPPING:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)


def _watch(reading: int) -> NoReturn:
    import time

    number = 0
    while number not in STOPPING:  # others, such as a change of the window's size, end nothing
        number = os.read(reading, 1)[0]
    time.sleep(CLEANING)
    os._exit(128 + number)


def _forget() -> None:
    """In a forked child: a signal to it must not reach its parent through the pipe they share."""
    try:
        signal.set_wakeup_fd(-1)
        for number in STOPPING:
            if signal.getsignal(number) is _stop:
                signal.signal(number, signal.SIG_DFL)
    except ValueError:  # in a thread that is not the main one
        pass


def _unraisable(told: Any) -> None:
    if not (_received and issubclass(told.exc_type, (KeyboardInterrupt, SystemExit))):
        sys.__unraisablehook__(told)
