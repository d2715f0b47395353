"""Events in a database: any that SQLAlchemy speaks to, a file of SQLite by default."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from recsys.data.events import Event
from recsys.errors import DatabaseError, InputError
from recsys.utils.databases import engine_of, reason, sqlalchemy_for

AT_ONCE = 10_000  # rows that are read at once
ID = 200  # characters of an id


class EventDatabase:
    """Batches of events, each kept whole or not at all; what `append` has returned from is on disk.

    Two tables: `batches` (id, key, digest, received) and `events` (id, batch, user_id, item_id, time,
    action). Events are in the order of their ids. One process writes at a time. The database is an
    SQLAlchemy URL, such as postgresql://…, or a file of SQLite.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, EventDatabase(f"{folder}/events.db") as database:
    ...     first = database.append("one", [Event("ada", "tea", 1.0)])
    ...     again = database.append("one", [Event("ada", "tea", 1.0)])
    ...     first, again, [event.item for _, event in database.after(0)], database.last()
    (1, None, ['tea'], 1)
    """

    def __init__(self, where: str | Path, *, create: bool = True) -> None:
        sa = sqlalchemy_for("events")
        url: Any = str(where)
        if "://" not in url:
            path = Path(url)
            if not create and not path.is_file():
                raise InputError(f"no event database at {path}: name the one that `serve` writes")
            if not path.resolve().parent.is_dir():
                raise InputError(f"{path}: the folder of the event database does not exist")
            url = sa.URL.create("sqlite", database=str(path.resolve()))
        self._engine, self.name = engine_of(sa, url)
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _durable)
        tables = sa.MetaData()
        self._batches = sa.Table(
            "batches", tables,
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("key", sa.String(ID), nullable=False, unique=True),
            sa.Column("digest", sa.String(64), nullable=False),
            sa.Column("received", sa.Double, nullable=False),
            sqlite_autoincrement=True,
        )  # fmt: skip
        self._events = sa.Table(
            "events", tables,
            sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
            sa.Column("batch", sa.ForeignKey("batches.id"), nullable=False),
            sa.Column("user_id", sa.String(ID), nullable=False),
            sa.Column("item_id", sa.String(ID), nullable=True),
            sa.Column("time", sa.Double, nullable=False),
            sa.Column("action", sa.String(10), nullable=False),
            sqlite_autoincrement=True,
        )  # fmt: skip
        self._last = sa.select(sa.func.max(self._events.c.id))
        self._sa, self._writing = sa, threading.Lock()
        try:
            if create:
                tables.create_all(self._engine)
            self.last()
        except sa.exc.SQLAlchemyError as error:
            self.close()
            raise self._failed("opened", error) from None

    def append(self, key: str, events: Sequence[Event]) -> int | None:
        """Keep a batch; return where its last event is, None if it was kept before under this key.

        Events without a time happen now.
        """
        rows = [[e.user, e.item, e.time, e.action] for e in events]
        digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
        now = time.time()
        with self._writing:
            try:
                before = self._digest_of(key)
                if before is None:
                    with self._engine.begin() as connection:
                        batch = {"key": key, "digest": digest, "received": now}
                        made = connection.execute(self._batches.insert(), batch).inserted_primary_key
                        assert made is not None
                        kept = [
                            {
                                "batch": made[0], "user_id": e.user, "item_id": e.item,
                                "time": now if e.time is None else e.time, "action": e.action,
                            }
                            for e in events
                        ]  # fmt: skip
                        connection.execute(self._events.insert(), kept)
                        return int(connection.execute(self._last).scalar_one())
            except self._sa.exc.SQLAlchemyError as error:
                raise self._failed("written", error) from None
        if before != digest:
            raise InputError(
                f"batch {key[:60]!r} was kept with other events: give every batch an id of its own"
            )
        return None

    def after(self, position: int) -> Iterator[tuple[int, Event]]:
        """Yield the events behind a position, each with its own, in order; 0 for all."""
        sa, table = self._sa, self._events
        query = sa.select(table).where(table.c.id > position).order_by(table.c.id)
        try:
            with self._engine.connect() as connection:
                for row in connection.execution_options(yield_per=AT_ONCE).execute(query):
                    yield row.id, Event(row.user_id, row.item_id, row.time, row.action)
        except sa.exc.SQLAlchemyError as error:
            raise self._failed("read", error) from None

    def last(self) -> int:
        """Return the position of the last event, 0 where there is none."""
        with self._engine.connect() as connection:
            return connection.execute(self._last).scalar() or 0

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _digest_of(self, key: str) -> str | None:
        query = self._sa.select(self._batches.c.digest).where(self._batches.c.key == key)
        with self._engine.connect() as connection:
            return connection.execute(query).scalar()

    def _failed(self, what: str, error: Any) -> DatabaseError:
        return DatabaseError(f"the event database {self.name} could not be {what}: {reason(error)}")


def _durable(connection: Any, _: Any) -> None:
    """Have SQLite write through to the disk at every commit, and let others read meanwhile."""
    cursor = connection.cursor()
    for setting in ("busy_timeout = 30000", "journal_mode = WAL", "synchronous = FULL"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()
