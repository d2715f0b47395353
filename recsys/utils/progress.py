"""Progress of long work: loops report steps to a callback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

from recsys._jit import when_compiling

Listener = Callable[[str, float, int], None]

COMPILING = "compiling once, for some seconds"
QUIET = 2.0  # seconds before a bar begins
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(step: str, done: float, total: int) -> None:
    """Tell this thread's listener that `done` of `total` steps are over, and which one begins."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(step, done, total)


when_compiling.append(lambda: report(COMPILING, 0.0, 1))


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Hear the reports of what runs inside; a listener may raise a BaseException to stop the work."""
    token = _LISTENER.set(listener or _LISTENER.get())
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def within(step: str, done: float, total: int, part: float = 1.0) -> Iterator[None]:
    """Report one step as begun, and what it reports of itself as a `part` of it, 0 to 1."""
    outer = _LISTENER.get()
    if outer is None:
        yield
        return

    def inner(its: str, k: float, n: int) -> None:
        outer(f"{step}, {its}", done + (part * k / n if n else 0.0), total)

    outer(step, done, total)
    with listening(inner):
        yield


@contextmanager
def bar(show: bool) -> Iterator[Callable[[str, float, int | None], None]]:
    """Yield progress(step, done, total): a bar in a terminal or a notebook, with the time left.

    It begins after some seconds. A total of None is not known.
    """
    if not (show and (sys.stderr.isatty() or "ipykernel" in sys.modules)):
        yield lambda step, done, total: None
        return
    begins = time.monotonic() + QUIET
    with ExitStack() as stack:
        drawn: list[Callable[[str, float, int | None], None]] = []

        def update(step: str, done: float, total: int | None) -> None:
            if not drawn and time.monotonic() >= begins:
                drawn.append(stack.enter_context(_drawn()))
            for draw in drawn:
                draw(step, done, total)

        yield update


@contextmanager
def _drawn() -> Iterator[Callable[[str, float, int | None], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from recsys.utils.export import literal

    text, elapsed, left = (
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
    )
    console = Console(stderr=True, highlight=False)
    # What a callback prints to a file or a pipe goes there, and not above the bar.
    above = sys.stdout.isatty()
    columns = (text, BarColumn(), elapsed, left, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, redirect_stdout=above) as progress:
        task = progress.add_task("", total=None)
        yield lambda step, done, total: progress.update(
            task, description=literal(step), completed=done, total=total
        )


@contextmanager
def bar_of_fit(show: bool) -> Iterator[None]:
    """Draw what is reported inside as a bar, unless a listener is there."""
    if not show or _LISTENER.get() is not None:
        yield
        return
    with bar(True) as drawn, listening(drawn):
        yield
