"""A page alone in Streamlit's own test harness, begun as an address or another page would begin it."""

import re
import time
from pathlib import Path

import pytest

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]
HARNESS = """
import sys
sys.path.insert(0, {root!r})
import streamlit as st
from app.views import {page}
{page}.page()
"""


def open_page(page, address=None, *, before="", **chosen):
    """Return a page once it is drawn; `chosen` are choices of its session, `address` a reload's.

    `before` are lines of a script that run first.
    """
    from app.session import Session

    given = {
        name: value if isinstance(value, list) else [value] for name, value in (address or {}).items()
    }
    here = Session(given, "tested", "browser")
    for name, value in chosen.items():
        here.set(name.replace("__", "."), value)
    at = AppTest.from_string(before + HARNESS.format(root=str(ROOT), page=page), default_timeout=60)
    at.session_state["session"] = here
    return settle(at.run())


def settle(at, seconds=90, rule=False):
    """Run again while a page shows progress, as its timer would, or until the rule of a profile is there, too."""
    for _ in range(int(seconds / 0.3)):
        assert not at.exception, [e.message for e in at.exception]
        waits = rule and any("being read from the profile" in one.value for one in at.text)
        if not waits and not len(at.get("progress")):
            return at
        time.sleep(0.3)
        at.run()
    raise AssertionError("the page still waits")


def texts(at):
    return [line for element in at.text for line in element.value.split("\n")]


def captions(at):
    return [line for element in at.caption for line in element.value.split("  \n")]


def read(text):
    """Return what Markdown shows of a text whose signs are escaped."""
    return re.sub(r"\\([\W_])", r"\1", text)


def press(at, label):
    next(b for b in at.button if b.label == label).click().run()
    return settle(at)


def box(at, label, kind="selectbox"):
    return next(one for one in getattr(at, kind) if one.label == label)
