"""Databases that SQLAlchemy speaks to."""

from __future__ import annotations

from typing import Any

from recsys.errors import InputError, first_line
from recsys.utils.extras import install_hint

__all__ = ["SUCH_AS", "engine_of", "reason", "sqlalchemy_for"]

SUCH_AS = "sqlite:///events.db or postgresql://user@host/name"


def sqlalchemy_for(what: str) -> Any:
    """Return SQLAlchemy, which is optional."""
    try:
        import sqlalchemy
    except ImportError:
        raise InputError(f"{what} need sqlalchemy: {install_hint('events')}") from None
    return sqlalchemy


def engine_of(sa: Any, where: Any) -> tuple[Any, str]:
    """Return the engine of a URL, by the module SQLAlchemy, and the URL without its password."""
    try:
        url = sa.make_url(where)
    except sa.exc.ArgumentError:
        raise InputError(f"{str(where)[:60]!r} is no database URL such as {SUCH_AS}") from None
    name = url.render_as_string(hide_password=True)
    try:
        return sa.create_engine(url), name
    except sa.exc.NoSuchModuleError:
        raise InputError(f"{name}: no such kind of database; known are {SUCH_AS}") from None
    except ImportError as error:
        raise InputError(f"{name} needs a driver: pip install {error.name}") from None


def reason(error: Any) -> str:
    """Return the driver's message, in a line of 200 characters at most."""
    return first_line(getattr(error, "orig", None) or error, 200)
