"""What engines are given to do in tests: workers import it."""

import os
import struct
import sys
import threading
import time

import numba
from threadpoolctl import threadpool_info

from recsys import InputError


def squared(x):
    return x * x


def threads(_):
    return numba.get_num_threads(), max(
        (one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"), default=1
    )


def refused(x):
    raise InputError(f"unit {x} cannot be done")


def repeated(x):
    return x * 3


HELD = []


def grown(count):
    """Hold so many bytes more, for longer than a pool waits before it looks at a process's memory."""
    HELD.append(bytearray(b"x") * count)
    time.sleep(1.1)
    return os.getpid()


def ended(x):
    os._exit(9)


def ended_if_odd(x):
    time.sleep(0.2)
    if x % 2:
        os._exit(9)
    return x


def killed_while_writing(_):
    """End as one that is killed while it writes its result: with the lock, and the rest unwritten."""
    frame = sys._getframe()
    while "result_queue" not in frame.f_locals:
        frame = frame.f_back
    results = frame.f_locals["result_queue"]
    results._wlock.acquire()
    os.write(results._writer.fileno(), struct.pack("!i", 1000) + b"x")
    os._exit(9)


def ended_once(path):
    """End the worker, the first time that it is asked for."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return "done"
    os._exit(9)


def process(_):
    return os.getpid(), threading.active_count()


def late(x):
    raise TimeoutError(f"unit {x} asked somebody who is silent")


def away(_):
    raise ModuleNotFoundError("No module named 'recsys'")
