"""What one browser session has chosen: a single object, which widgets draw and the address carries.

Streamlit forgets a widget's value when another page opens, and everything when a page is reloaded. So
no page keeps a choice in a widget: `ask` draws a widget from this object and writes what the visitor
changes back to it, and whatever differs from its default is written to the address, from which a new
session begins.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

SAMPLE = "sample"
LONGEST = 6000  # characters of an address: browsers and proxies cut longer ones
# What belongs to a dataset, and what to one user of it; all else is the same everywhere.
OF_DATA = ("least", "mode", "user", "likes", "genres", "every", "years", "item", "asof")
OF_PERSON = ("more", "dislikes")
PRIVATE = ("uploads",)  # not in the address
USER, BUILT = "user", "profile"


class Session:
    """The choices of one browser session by name, as texts, numbers and lists of them.

    Attributes
    ----------
    id, browser : str
        Of the session, and of the browser that shows it, for their jobs.
    cancelled : set
        Keys of jobs that the visitor has cancelled, and that are not begun again unasked.
    background : dict
        Keys of the jobs that run while the visitor does something else, by kind.
    awaited, awaited_on : tuple or None, str
        Key of the job that a page waits for, and that page.
    page, opening : str
        The page that is shown, and the name of the one that a click opens next.
    """

    def __init__(
        self, address: dict[str, list[str]] | None = None, identity: str = "", browser: str = ""
    ) -> None:
        self.id, self.browser = identity or secrets.token_hex(8), browser
        self.cancelled: set[Hashable] = set()
        self.background: dict[str, tuple[Any, ...]] = {}
        self.awaited: tuple[Any, ...] | None = None
        self.awaited_on = ""
        self.page = self.opening = ""
        self._values: dict[str, Any] = {}
        self._raw: dict[str, list[str]] = {}
        self._defaults: dict[str, Any] = {}
        given = address or {}
        for first in ("data", "mode", "user"):  # they say whose the others are
            if given.get(first):
                self._raw[self._scoped(first)] = given[first]
        for name, texts in given.items():
            self._raw.setdefault(self._scoped(name), texts)

    @property
    def fresh(self) -> bool:
        """Whether nothing is chosen yet, neither here nor by the address."""
        return not self._raw and not self._values

    def get(self, name: str, default: Any = None) -> Any:
        """Return a choice, or the default; what the address held is read as the default's type."""
        key = self._scoped(name)
        if key in self._raw:
            found = _read(self._raw[key], default)
            if found is None:
                return default
            return found
        return self._values.get(key, default)

    def set(self, name: str, value: Any) -> None:
        """Choose."""
        key = self._scoped(name)
        self._raw.pop(key, None)
        self._values[key] = value

    def choose_user(self, user: str) -> None:
        """Say which user of the data is shown: what was chosen before any user was is theirs.

        What an address says of a user that the data have not is left out.
        """
        before = self._text("user", "")
        if before == user:
            return
        given = {} if before else {name: self.get(name, []) for name in OF_PERSON}
        self.set("user", user)
        for name, chosen in given.items():
            if chosen:
                self.set(name, chosen)

    def forget(self, name: str) -> None:
        """Go back to the default."""
        key = self._scoped(name)
        self._raw.pop(key, None)
        self._values.pop(key, None)

    def default(self, name: str, default: Any) -> None:
        """Register a default: it is not written to the address."""
        self._defaults[self._scoped(name)] = default

    def address(self) -> dict[str, Any]:
        """Return what a reload needs: choices in force that are no defaults, short ones first.

        The dataset is among them once it is chosen, be it the default: a reload is no first visit.
        """
        found: dict[str, Any] = {}
        for key in [*self._raw, *self._values]:
            name = key.split(" @")[0]
            if key != self._scoped(name) or name in found or name in PRIVATE:
                continue
            if key in self._raw:
                found[name] = self._raw[key]
            elif (value := self._values[key]) is not None and (
                name == "data" or value != self._defaults.get(key)
            ):
                found[name] = _written(value)
        kept: dict[str, Any] = {}
        length = 0
        for name in sorted(found, key=lambda one: len(str(found[one]))):
            length += len(name) + len(str(found[name]))
            if length <= LONGEST:
                kept[name] = found[name]
        return kept

    def _scoped(self, name: str) -> str:
        if name in OF_DATA:
            return f"{name} @{self._text('data', SAMPLE)}"
        if name in OF_PERSON:
            who = self._text("user", "") if self._text("mode", USER) == USER else BUILT
            return f"{name} @{self._text('data', SAMPLE)} @{who}"
        return name

    def _text(self, name: str, default: str) -> str:
        return str(self.get(name, default))


def session() -> Session:
    """Return this browser session's object, which the first call begins from the address."""
    if "session" not in st.session_state:
        names = list(st.query_params)
        context = get_script_run_ctx()
        st.session_state["session"] = Session(
            {name: st.query_params.get_all(name) for name in names},
            "" if context is None else context.session_id,
            _browser(),
        )
    found: Session = st.session_state["session"]
    return found


def _browser() -> str:
    """Return what tells this browser from others: Streamlit gives each a cookie."""
    return browser_of(st.context.cookies.get("_streamlit_xsrf", ""))


def browser_of(cookie: object) -> str:
    """Return a name for the browser that has this cookie; '' where there is none.

    The cookie is `2|mask|masked token|time`, with another mask whenever it is written: what stays is the
    token under it.
    """
    try:
        _, mask, masked, _ = str(cookie).split("|")
        key, token = bytes.fromhex(mask), bytes.fromhex(masked)
    except ValueError:
        return ""
    if not key or not token:
        return ""
    plain = bytes(byte ^ key[k % len(key)] for k, byte in enumerate(token))
    return hashlib.sha256(plain).hexdigest()[:16]


def write_address() -> None:
    """Write to the address what a reload of this page, or another visitor who opens it, needs."""
    now = {name: st.query_params.get_all(name) for name in st.query_params}
    wanted = {n: [v] if isinstance(v, str) else v for n, v in session().address().items() if v != []}
    if now != wanted:
        st.query_params.from_dict(wanted)


def ask(
    widget: Callable[..., Any],
    label: str,
    *args: Any,
    name: str,
    default: Any,
    options: Sequence[Any] | None = None,
    valid: Callable[[Any], bool] | None = None,
    key: str = "",
    **more: Any,
) -> Any:
    """Draw a widget whose value stays, over other pages and a reload, and return the value.

    Parameters
    ----------
    widget : callable
        Such as `st.slider`; args and more are passed on, the options too where there are some.
    name : str
        Of the choice in the session and in the address: "user", "links.graph".
    default
        Until the visitor chooses.
    options : sequence, optional
        What can be chosen; what is not among them, from an old address, say, counts as not chosen.
    valid : callable, optional
        Whether a value can be taken, where there are no options.
    key : str
        Of the widget, if the name alone is not one.

    Notes
    -----
    The widget is set only where it differs: setting it on every run would undo what the visitor does
    while the page is being drawn.
    """
    here = session()
    here.default(name, default)
    given = here.get(name, default)
    value = _allowed(given, default, options, valid)
    # A widget of another page is another one to Streamlit, though it has the same key.
    where = f"{here.page}: {key or here._scoped(name)}"
    if where not in st.session_state or st.session_state[where] != value:
        st.session_state[where] = value

    def changed() -> None:
        here.set(name, _plain(st.session_state[where]))

    first = () if options is None else (options,)
    chosen = widget(label, *first, *args, key=where, on_change=changed, **more)
    return _plain(chosen)


def _allowed(
    value: Any, default: Any, options: Sequence[Any] | None, valid: Callable[[Any], bool] | None
) -> Any:
    """Return the value, or what of it can be chosen, or the default."""
    if isinstance(value, list) and options is not None:
        known = set(options)
        kept = [one for one in value if one in known]
        return kept if kept or not value else default
    if options is not None and value is not None and value not in options:
        return default
    if valid is not None and not valid(value):
        return default
    return value


def between(low: float, high: float) -> Callable[[Any], bool]:
    """Return whether a number, or each of a pair in order, lies between two."""

    def valid(value: Any) -> bool:
        both = list(value) if isinstance(value, (list, tuple)) else [value]
        # Comparing is enough: NaN lies nowhere, and no integer is too long for it.
        within = all(isinstance(one, (int, float)) and low <= one <= high for one in both)
        return within and both == sorted(both)

    return valid


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) and not _numbers(value) else value


def _numbers(value: Any) -> bool:
    return bool(value) and all(isinstance(one, (int, float)) for one in value)


def _written(value: Any) -> str | list[str]:
    """Return a choice as the address has it."""
    if isinstance(value, (list, tuple)):
        return [one if isinstance(one, str) else json.dumps(one) for one in value]
    return value if isinstance(value, str) else json.dumps(value)


def _read(texts: list[str], default: Any) -> Any:
    """Return what the address says, of the type of the default; None where it does not say that."""
    if isinstance(default, list):
        return list(texts)
    try:
        if isinstance(default, tuple):
            values = [json.loads(text) for text in texts]
            fits = len(values) == len(default) and all(type(v) in (int, float) for v in values)
            return tuple(type(d)(v) for v, d in zip(values, default, strict=True)) if fits else None
        text = texts[-1]
        if default is None or isinstance(default, str):
            return text
        value = json.loads(text)
        if type(value) in (int, float) and not math.isfinite(value):
            return None
    except (ValueError, IndexError, OverflowError, RecursionError):
        return None
    if isinstance(default, bool):
        return value if isinstance(value, bool) else None
    if type(value) in (int, float):
        if isinstance(default, int):
            return int(value) if value == int(value) else None
        return float(value)
    return None
