"""Names with parameters as text: `name:key=value,key=value`, on command lines and in blends."""

from __future__ import annotations

from typing import Any

from recsys.errors import InputError


def parse_spec(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of `name:key=value,key=value`.

    Values are read as integers, numbers, true/false/none, else text.
    """
    name, _, rest = text.partition(":")
    params: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise InputError(f"model {text!r}: {part!r} is not key=value, as in ease:regularization=500")
        if key in params:
            raise InputError(f"model {text!r} sets {key} twice")
        params[key] = _value(value)
    return name.strip(), params


def format_spec(name: str, params: dict[str, Any]) -> str:
    """Return `name:key=value,…`, which `parse_spec` reads; None and empty values are left out."""
    parts = []
    for key, value in params.items():
        if isinstance(value, dict):
            parts.append(format_spec("", value).removeprefix(":"))
        elif value is not None:
            if isinstance(value, str) and (set(value) & set(",;+:=") or _value(value) != value):
                raise InputError(f"{name}: {key}={value!r} cannot be written in a specification")
            parts.append(f"{key}={value!r}" if isinstance(value, float) else f"{key}={value}")
    text = ",".join(filter(None, parts))
    return f"{name}:{text}" if text else name


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
