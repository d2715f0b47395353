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
    """Tell this thread's listener that `done` of `total` steps are over, and which one begins.

    Without a listener it does nothing. What the listener raises ends the work.
    """
    listener = _LISTENER.get()
    if listener is not None:
        listener(step, done, total)


when_compiling.append(lambda: report(COMPILING, 0.0, 1))


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Hear the reports of what runs inside, in this thread, by listener(step, done, total).

    A listener may raise a BaseException to stop the work. None changes nothing.

    >>> heard = []
    >>> with listening(lambda step, done, total: heard.append((step, done, total))):
    ...     report("epoch", 0, 2)
    >>> report("nobody listens", 1, 2)
    >>> heard
    [('epoch', 0, 2)]
    """
    token = _LISTENER.set(listener or _LISTENER.get())
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def within(step: str, done: float, total: int, part: float = 1.0) -> Iterator[None]:
    """Do one step of some: it is reported as begun, and what it reports of itself is a part of it.

    Of the step its own reports are `part`, 0 to 1; with 0 they are heard and move nothing.

    >>> heard = []
    >>> with listening(lambda step, done, total: heard.append((step, done, total))):
    ...     with within("second model", 1, 2):
    ...         report("epoch 5", 5, 10)
    >>> heard
    [('second model', 1, 2), ('second model, epoch 5', 1.5, 2)]
    """
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
        draw: Callable[[str, float, int | None], None] | None = None

        def update(step: str, done: float, total: int | None) -> None:
            nonlocal draw
            if draw is None:
                if time.monotonic() < begins:
                    return
                draw = stack.enter_context(_drawn())
            draw(step, done, total)

        yield update


@contextmanager
def _drawn() -> Iterator[Callable[[str, float, int | None], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from recsys.utils.export import literal

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, highlight=False)
    # What a callback prints to a file or a pipe goes there, and not above the bar.
    above = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=above) as progress:
        task = progress.add_task("", total=None)

        def update(step: str, done: float, total: int | None) -> None:
            progress.update(task, description=literal(step), completed=done, total=total)

        yield update


@contextmanager
def bar_of_fit(show: bool) -> Iterator[None]:
    """Draw what is reported inside as a bar, unless a listener is there."""
    if not show or _LISTENER.get() is not None:
        yield
        return
    with bar(True) as drawn, listening(drawn):
        yield
