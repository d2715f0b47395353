"""Long work: one thread a page and session, with progress and Cancel, whose results are cached."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.parts.text import escaped
from recsys import InputError
from recsys.utils.progress import listening

PATIENCE = 1.0  # seconds that a page waits before it shows progress
ORPHANED = 15.0  # seconds that work goes on after the browser has closed the page
Work = Callable[[], Any]


class Cancelled(BaseException):
    """Raised inside the work when nobody waits for it. No `except Exception` catches it."""


class Job:
    """Work on a thread of its own.

    Parameters
    ----------
    key : hashable
    work : callable
    session : str
        Of the browser page that waits for it.
    done : list
        Takes the result.
    """

    def __init__(self, key: Hashable, work: Work, session: str, done: list[Any]) -> None:
        self.key, self.work, self.session, self.done = key, work, session, done
        self.step, self.share, self.error = "", 0.0, ""
        self.began = self.seen = time.monotonic()
        self.stop = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with listening(self._progress):
                self.done.append(self.work())
        except Cancelled:
            pass
        except InputError as error:
            self.error = str(error)
        except MemoryError:
            self.error = "Out of memory: choose a smaller dataset or another model."
        except Exception as error:  # noqa: BLE001 - a page shows one line, whatever happened
            self.error = f"{type(error).__name__}: {error}"

    def _progress(self, step: str, done: float, total: int) -> None:
        now = time.monotonic()
        if not runtime.exists() or runtime.get_instance().is_active_session(self.session):
            self.seen = now
        if self.stop or now - self.seen > ORPHANED:
            raise Cancelled
        self.step, self.share = step, min(done / total, 1.0) if total else 0.0

    @property
    def running(self) -> bool:
        """Whether the thread still works and was not told to stop."""
        return self.thread.is_alive() and not self.stop

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        self.thread.join(seconds)

    def cancel(self) -> None:
        """Stop at the next step of the work."""
        self.stop = True


@st.cache_resource(max_entries=40, show_spinner=False)
def results(key: Hashable) -> list[Any]:
    """Return the cell of a result: a list that is empty until there is one."""
    return []


def result(page: str, key: Hashable, work: Work, text: str, meanwhile: Work | None = None) -> Any:
    """Return what the work of this key gives; until it has, show its progress and end this run.

    Another key on the same page cancels the work before. `meanwhile` is shown below the progress.
    """
    cell = results(key)
    if cell:
        return cell[0]
    slot = f"job {page}"
    job: Job | None = st.session_state.get(slot)
    if job is None or job.key != key:
        if job is not None:
            job.cancel()
        context = get_script_run_ctx()
        job = Job(key, work, "" if context is None else context.session_id, cell)
        st.session_state[slot] = job
    job.wait(PATIENCE)
    if cell:
        return cell[0]
    if job.running:
        waiting(job, text)
    elif job.stop:
        st.info(f"{text}: cancelled.")
        st.button("Start again", on_click=st.session_state.pop, args=(slot, None))
    else:
        st.error(escaped(job.error or "The work ended without a result."))
        st.button("Try again", on_click=st.session_state.pop, args=(slot, None))
    if meanwhile is not None:
        meanwhile()
    st.stop()


@st.fragment(run_every=0.7)
def waiting(job: Job, text: str) -> None:
    """Show the progress of a job and Cancel; draw the page again when it has ended."""
    if not job.running:
        st.rerun()
    seconds = time.monotonic() - job.began
    parts = [f"{text}: {job.step}" if job.step else text, f"{seconds:.0f} s"]
    if job.share > 0.05 and seconds > 3:
        parts.append(f"about {max(seconds * (1 / job.share - 1), 1):.0f} s left")
    st.progress(job.share, text=escaped(" · ".join(parts)))
    st.button("Cancel", key=f"cancel {job.key}", on_click=job.cancel)
