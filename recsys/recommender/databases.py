"""Lists in a table of a database, by SQLAlchemy: each user's rows replaced at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recsys.errors import DatabaseError, InputError
from recsys.utils.databases import engine_of, reason, sqlalchemy_for

OPTIONAL = ("title", "source")  # columns that a table which is there may lack
AT_ONCE = 500  # users whose old rows one statement deletes: databases bound its parameters
KEY = 255  # characters of an id


def write_table(
    where: Any,
    name: str,
    columns: Mapping[str, type],
    blocks: Iterable[tuple[Sequence[Any], Sequence[Sequence[Any]]]],
) -> None:
    """Write blocks of users' lists to a table, which is made if it is absent.

    The old rows of the users of a block are deleted and the new ones inserted in one transaction: who
    reads sees each user's old list or the new one. Rows of other users stay.

    `where` is an engine of SQLAlchemy, or a URL such as "postgresql+psycopg://name@host/database" or
    "sqlite:///top.db". The primary key of the table is the user and the rank. `columns` are "user",
    "rank" and others, of cells of str, int or float. A table that is there may lack "title" and
    "source", which are then left out; other columns are an InputError, as is a missing SQLAlchemy or
    driver. A DatabaseError says that the database cannot be opened or written; blocks that were written
    stay.
    """
    sa = sqlalchemy_for("databases")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"table must be the name of a table, not {name!r}")
    own = not isinstance(where, sa.Engine)
    engine = engine_of(sa, where)[0] if own else where
    try:
        table = _table(sa, engine, name, columns)
        for users, rows in blocks:
            with engine.begin() as connection:
                for start in range(0, len(users), AT_ONCE):
                    some = list(users[start : start + AT_ONCE])
                    connection.execute(table.delete().where(table.c.user.in_(some)))
                if rows:
                    cells = [dict(zip(columns, row, strict=True)) for row in rows]
                    cells = [{k: v for k, v in row.items() if k in table.c} for row in cells]
                    connection.execute(table.insert(), cells)
    except sa.exc.SQLAlchemyError as error:
        raise DatabaseError(f"table {name!r} cannot be written: {reason(error)}") from None
    finally:
        if own:
            engine.dispose()


def _table(sa: Any, engine: Any, name: str, columns: Mapping[str, type]) -> Any:
    """Return the table, made if it is absent; other columns than asked for are refused."""
    kinds: dict[type, Any] = {str: sa.Text, int: sa.BigInteger, float: sa.Double}
    found = [
        sa.Column(
            column,
            sa.String(KEY) if kind is str and column in ("user", "item") else kinds[kind],
            primary_key=column in ("user", "rank"),
            autoincrement=False,
            nullable=column not in ("user", "rank", "item"),
        )
        for column, kind in columns.items()
    ]
    table = sa.Table(name, sa.MetaData(), *found)
    with engine.begin() as connection:
        inspector = sa.inspect(connection)
        if not inspector.has_table(name):
            table.create(connection)
            return table
        has = {column["name"] for column in inspector.get_columns(name)}
    if lacking := [column for column in OPTIONAL if column in columns and column not in has]:
        return _table(sa, engine, name, {k: kind for k, kind in columns.items() if k not in lacking})
    if missing := [column for column in columns if column not in has]:
        raise InputError(
            f"table {name!r} has no column {missing[0]!r}, but {', '.join(sorted(has))}: name another "
            "table"
        )
    return table
