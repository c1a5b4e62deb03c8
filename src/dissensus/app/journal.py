"""The journal of a workbench: every decision, undo and change, one row each, never changed.

It is one SQLite file. An entry is on the disk before `add` returns. The same request is never
entered twice: a browser that repeats one gets the entry of the first. A request that asks for
something else under the same id is refused.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from ..base.files import reason
from ..errors import DataError, OutputError

VERDICTS = ("label", "split", "unclear")  # of a decision
KINDS = (*VERDICTS, "undo", "change", "arbiter", "confirm")
_APPLICATION = 0x44697373  # marks the file as one of ours
_VERSION = 2  # in 1, decisions held names of the last fit, and no labels that were seen
_VERSIONS = 1000  # more than there will be
_PATIENCE = 1.0  # seconds to wait for a lock
USED = "this form was sent before with another content, which is kept; open the page again"
DAMAGE = (sqlite3.Error, UnicodeError)  # errors of a damaged file; its messages have texts of it
_OF_SYSTEM = (  # codes of errors that are no damage
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR),
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN),
)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    kind TEXT NOT NULL,
    item TEXT NOT NULL,
    value TEXT NOT NULL,
    comment TEXT NOT NULL,
    inferred TEXT NOT NULL,
    certainty REAL,
    drawn INTEGER NOT NULL,
    seconds REAL,
    request TEXT UNIQUE,
    changes INTEGER,
    labels TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS one_undo ON entries (value) WHERE kind = 'undo';
CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END;
CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


def _elsewhere(problem: str, path: Path) -> OutputError:
    """Return an error about a file that cannot be written."""
    return OutputError(problem, where=str(path), remedy="give another {} FILE", state=...)


class RequestError(DataError):
    """The id of a request belongs to an entry with another content."""


class Entry(NamedTuple):
    """An entry of the journal.

    The value is the class of a decision, the number of the entry that an undo takes back, the
    changes as JSON, the name of the arbiter, or, of a confirmation, JSON with the labels of the
    item now by the number of the decision. Of a decision, the label and certainty that the last fit
    had are kept, whether the item was drawn at random, how long it took, the number of the changes
    whose names the reviewer saw (0 for none), and a fingerprint of the labels of the item.

    Classes are those of the file. In entries of version 1 they have the names of the last fit, and
    changes and labels are `None`; `as_meant` gives them the classes of the file.
    """

    number: int
    at: str  # ISO 8601, UTC
    reviewer: str
    kind: str
    item: str = ""
    value: str = ""
    comment: str = ""
    inferred: str = ""
    certainty: float | None = None
    drawn: bool = False
    seconds: float | None = None
    changes: int | None = None
    labels: str | None = None


_COLUMNS = ", ".join(Entry._fields)


class Journal:
    """Entries in a SQLite file, made if it is not there."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = Lock()
        try:
            self.path.touch(mode=0o600)
            self._connection = sqlite3.connect(
                path, timeout=_PATIENCE, check_same_thread=False, isolation_level=None
            )
        except (OSError, sqlite3.Error) as problem:
            raise _elsewhere(reason(problem), self.path) from None
        try:
            self._prepare()
        except DAMAGE as problem:
            self._connection.close()
            raise self._failed(problem) from None
        except DataError:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")  # one workbench at a time
        (mark,) = run("PRAGMA application_id").fetchone()
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if mark != _APPLICATION and tables:
            raise self._foreign("a database of another program")
        (version,) = run("PRAGMA user_version").fetchone()
        if not 0 <= version < _VERSIONS:
            raise self.damaged(f"version {version}")
        if version > _VERSION:
            raise DataError(f"{self.path}: written by a newer version of dissensus; install that")
        (finding,) = run("PRAGMA integrity_check(1)").fetchone()
        if finding != "ok":
            raise self.damaged(finding)
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        self._connection.executescript(_SCHEMA)
        columns = {row[1] for row in run("PRAGMA table_info(entries)")}
        for column in ("changes INTEGER", "labels TEXT"):  # that version 1 had not
            if column.split()[0] not in columns:
                run(f"ALTER TABLE entries ADD COLUMN {column}")
        if (mark, version) != (_APPLICATION, _VERSION):
            run(f"PRAGMA application_id = {_APPLICATION}")
            run(f"PRAGMA user_version = {_VERSION}")

    def damaged(self, why: str) -> DataError:
        """Return an error about a file that cannot be read whole."""
        words = " ".join(why.split())[:100]
        remedy = "takes what can be read into a new file"
        return DataError(f"damaged ({words})", where=str(self.path), remedy=remedy, recover=True)

    def _foreign(self, finding: str) -> DataError:
        """Return an error about a file that is no state."""
        error = DataError(finding, where=str(self.path), remedy="give another {}", state=...)
        return error.or_else("or {} if it was one", recover=True)

    def _failed(self, problem: Exception) -> DataError | OutputError:
        if "locked" in str(problem):
            return DataError(f"{self.path}: open in another workbench; use that, or close it")
        if "not a database" in str(problem):
            return self._foreign("not a state of the workbench")
        if getattr(problem, "sqlite_errorcode", 0) & 0xFF in _OF_SYSTEM:
            return _elsewhere(str(problem), self.path)
        return self.damaged(str(problem))

    def add(
        self, reviewer: str, kind: str, *, request: str | None = None, **fields: Any
    ) -> tuple[Entry, bool]:
        """Return the new entry, once it is on the disk, and whether the request is a new one.

        `fields` are the others of `Entry`. The same request of the same reviewer with the same
        content is the same entry.
        """
        if kind not in KINDS:
            raise DataError(f"no kind of entry {kind!r}")
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = Entry(0, at, reviewer, kind, **fields)
        values, content = (*entry[1:], request), entry[2:7]
        marks = ", ".join("?" * len(values))
        insert = (
            f"INSERT INTO entries ({_COLUMNS.removeprefix('number, ')}, request) VALUES ({marks}) "
            "ON CONFLICT DO NOTHING"
        )
        with self._lock:
            try:
                cursor = self._connection.execute(insert, values)
                if cursor.rowcount:
                    return entry._replace(number=int(cursor.lastrowid or 0)), True
                earlier = self._select("request = ?", request)
                if any(row[2:7] != content for row in earlier):
                    raise RequestError(USED)
                if not earlier:  # the same undo under another request
                    earlier = self._select("kind = 'undo' AND value = ?", entry.value)
                return earlier[0], False
            except sqlite3.Error as problem:
                raise self._failed(problem) from None

    def entries(self, after: int = 0) -> list[Entry]:
        """Return the entries after a number, the oldest first."""
        with self._lock:
            return self._select("number > ? ORDER BY number", after)

    def entry(self, number: int) -> Entry | None:
        """Return an entry."""
        with self._lock:
            return next(iter(self._select("number = ?", number)), None)

    def of_request(self, request: str | None) -> Entry | None:
        """Return the entry of a request that came before."""
        with self._lock:
            return next(iter(self._select("request = ?", request)), None)

    def _select(self, where: str, *values: object) -> list[Entry]:
        query = f"SELECT {_COLUMNS} FROM entries WHERE {where}"
        with closing(self._connection.execute(query, values)) as rows:
            return [Entry(*row)._replace(drawn=bool(row[9])) for row in rows]

    def secret(self, name: str) -> str | None:
        """Return a secret that was kept, such as the hash of a password."""
        with self._lock:
            rows = self._connection.execute("SELECT value FROM secrets WHERE name = ?", (name,))
            row = rows.fetchone()
        return None if row is None else str(row[0])

    def keep_secret(self, name: str, value: str) -> None:
        """Keep a secret; only the owner can read the file."""
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO secrets VALUES (?, ?)", (name, value))

    def copy_to(self, path: Path) -> None:
        """Write a copy that is whole and on the disk, and that only the owner can read."""
        path.touch(mode=0o600)
        copy = sqlite3.connect(path, isolation_level=None)
        try:
            with self._lock:
                self._connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file
        finally:
            copy.close()
        with path.open("rb") as file:
            os.fsync(file.fileno())

    def restore(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Enter rows of an earlier file under their numbers, unless they clash with others."""
        run = self._connection.execute
        with self._lock:
            try:
                run("BEGIN")
                present = {str(column[1]) for column in run("PRAGMA table_info(entries)")}
                for row in rows:
                    names = [name for name in row if name in present]
                    run(
                        f"INSERT OR IGNORE INTO entries ({', '.join(names)}) "
                        f"VALUES ({', '.join('?' * len(names))})",
                        [row[name] for name in names],
                    )
                run("COMMIT")
            except sqlite3.Error as problem:
                raise self._failed(problem) from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
