"""State files: whether one is whole, copies of it, and what can be read of a damaged one.

    answers.csv.workbench              the state
    answers.csv.workbench.backup-7     a copy of when the workbench started; the last three are kept
    answers.csv.workbench.damaged-1    a damaged state that `--recover` has put aside

A copy is made of a state that is whole and has entries, under its lock. Entries are never changed,
so those of a copy can stand for those of the state that have the same numbers.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ..base.files import reason
from ..errors import DataError, DissensusError, Note, OutputError
from .decisions import Decisions
from .journal import DAMAGE, KINDS, Entry, Journal

_KEPT = 3  # backups
_PAGE = 4096  # bytes of SQLite's pages; the first has the schema
_LEAF = 13  # first byte of a page with rows
_ROOM = 1000  # numbers beyond those that fit into the file, which repeated requests may have used
_SECRET = re.compile(r"([0-9a-f]{2})+:([0-9a-f]{2})+")  # salt and hash of a password


class Rows(NamedTuple):
    """What can be read of a state: its entries by number with all their columns, and secrets."""

    entries: dict[int, dict[str, Any]]
    secrets: dict[str, str]
    last: int  # the largest number that is known to be used


def open_state(path: str | Path, *, say: Callable[[str], None], recover: bool = False) -> Journal:
    """Return the journal of a whole state file, which is made if it is not there, and backed up.

    Parameters
    ----------
    path
        The state file.
    say
        Called with sentences for the user.
    recover
        Whether to put what can be read of a damaged state, and of its backups, into a new one.
    """
    path = Path(path)
    if recover:
        _recover(path, say)
    if path.exists():
        _check_size(path)
    else:
        _make(path)
    journal = Journal(path)
    try:
        entries = _checked_entries(journal)
        if entries:
            _back_up(journal, say)
        else:
            _mention_backup(path, say)
    except BaseException:
        journal.close()
        raise
    return journal


def unreadable(entry: Entry) -> str:
    """Return what is wrong with an entry; nothing if it can be what the workbench wrote.

    >>> unreadable(Entry(3, "", "ann", "undo", value="x"))
    "entry 3 takes back 'x'"
    """
    where, texts = f"entry {entry.number}", entry[1:8]
    if not isinstance(entry.number, int) or entry.number < 1:
        return f"{where} has no number"
    if not all(isinstance(text, str) for text in texts) or entry.kind not in KINDS:
        return f"{where} is of no known kind"
    if entry.kind == "undo" and not re.fullmatch("[0-9]{1,18}", entry.value, re.ASCII):
        return f"{where} takes back {entry.value[:40]!r}"
    if entry.kind == "change" and not _is_change(entry.value):
        return f"{where} is a change that cannot be read"
    shares = (entry.certainty, 1.0), (entry.seconds, math.inf)
    if entry.drawn not in (0, 1) or not all(_is_amount(value, most) for value, most in shares):
        return f"{where} has numbers that cannot be"
    try:
        Decisions([entry]).gold()
    except Exception as problem:  # whatever damage does
        return f"{where} cannot be read ({type(problem).__name__})"
    return ""


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _is_amount(value: Any, most: float) -> bool:
    if value is None:
        return True
    return isinstance(value, (int, float)) and 0 <= value <= most and value < math.inf


def _is_change(text: str) -> bool:
    """Return whether a text is JSON of changes as the workbench writes it."""
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(stored, dict):
        return False
    left_out, renamed = stored.get("left_out", []), stored.get("renamed", {})
    if not (isinstance(left_out, list) and isinstance(renamed, dict)):
        return False
    texts = [*left_out, *renamed.values(), stored.get("method", "")]
    return all(isinstance(text, str) for text in texts)


def _checked_entries(journal: Journal) -> list[Entry]:
    """Return the entries of a journal, all of which can be read."""
    try:
        entries, password = journal.entries(), journal.secret("password")
    except DAMAGE as problem:
        raise journal.damaged(reason(problem)) from None
    why = next(filter(None, map(unreadable, entries)), "")
    if not why and password is not None and not _SECRET.fullmatch(password):
        why = "its password cannot be read"
    if why:
        raise journal.damaged(why)
    return entries


def _check_size(path: Path) -> None:
    """Refuse a file of no bytes: SQLite would take it for a new one."""
    if path.is_file() and not path.stat().st_size:
        empty = "damaged, since it is empty"
        if not _numbered(path, "backup"):
            raise DataError(f"{empty}; remove it to begin anew", where=str(path))
        remedy = "takes what its backups have into a new file"
        raise DataError(empty, where=str(path), remedy=remedy, recover=True)


def _make(path: Path) -> None:
    """Make a new state whole at once, so that no empty file is there before."""
    draft = path.with_name(f".{path.name[:80]}.{os.getpid()}.part")
    try:
        Journal(draft).close()
        os.link(draft, path)
    except (OSError, DissensusError):  # no links here, or another was first: the journal says
        pass
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


# Backups.


def _numbered(path: Path, word: str) -> list[Path]:
    """Return the files beside a state that are called backup-1, …, the last one first."""
    pattern = re.compile(rf"{re.escape(path.name)}\.{word}-([0-9]{{1,9}})", re.ASCII)
    try:
        names = [pattern.fullmatch(name) for name in os.listdir(path.parent)]  # noqa: PTH208
    except OSError:
        return []
    numbers = sorted((int(match[1]) for match in names if match), reverse=True)
    return [path.with_name(f"{path.name}.{word}-{number}") for number in numbers]


def _next(path: Path, word: str) -> Path:
    last = next(iter(_numbered(path, word)), None)
    number = 1 if last is None else int(last.name.rpartition("-")[2]) + 1
    return path.with_name(f"{path.name}.{word}-{number}")


def _back_up(journal: Journal, say: Callable[[str], None]) -> None:
    """Copy a state under its lock, and remove all copies but the last ones."""
    target = _next(journal.path, "backup")
    draft = target.with_name(f".{target.name[:80]}.{os.getpid()}.part")
    try:
        journal.copy_to(draft)
        draft.replace(target)
        for old in _numbered(journal.path, "backup")[_KEPT:]:
            old.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as problem:  # not to back up is no reason not to open
        say(f"{journal.path}: cannot be backed up ({reason(problem)}).")
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _mention_backup(path: Path, say: Callable[[str], None]) -> None:
    """Say that a state without entries has a backup with some."""
    for backup in _numbered(path, "backup"):
        n_entries = len(_rows_of(backup).entries)
        if n_entries:
            sentence = (
                f"{path} has no decisions, but {backup.name} beside it has "
                f"{_entries(n_entries)}. To go on with these, end the workbench "
                "and open it with {}."
            )
            say(Note("", remedy=sentence, recover=True))
            return


# Recovering.


def _recover(path: Path, say: Callable[[str], None]) -> None:
    """Put what can be read of a state and its backups into a new file; keep the damaged one."""
    _refuse_open(path)
    n_entries, why = _state_of(path)
    if not why and n_entries:
        say(f"{path} is whole, with {_entries(n_entries)}; nothing to recover.")
        return
    state = _rows_of(path) if path.exists() else Rows({}, {}, 0)
    rows, source = _with_backup(path, state)
    if not rows.entries:
        why_not = "nothing can be read from it" if path.exists() else "no such file"
        why_not += ", and it has no backup"
        raise DataError(why_not, where=str(path), remedy="begin anew with another {}", state=...)
    draft = path.with_name(f".{path.name[:80]}.{os.getpid()}.part")
    try:
        n_taken = _write(draft, rows)
        aside = _put_aside(path) if path.exists() else None
        draft.replace(path)
    except OSError as problem:
        raise OutputError(
            reason(problem), where=str(path), remedy="give another {} FILE", state=...
        ) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    words = [f"{_entries(n_taken)} recovered into {path}"]
    n_from_backup = len(rows.entries.keys() - state.entries.keys())
    if n_from_backup and source is not None:
        words[0] += f", {n_from_backup} of them from {source.name}"
    lost = rows.last - n_taken
    words.append(f"{lost} of {rows.last} could not be read" if lost else "all could be read")
    if aside is not None:
        words.append(f"the file as it was is {aside.name}")
    say(f"{'; '.join(words)}.")


def _refuse_open(path: Path) -> None:
    """Refuse a state that another workbench has open, without changing anything."""
    if not path.exists():
        return
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=1.0)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except DAMAGE as problem:
        if "locked" in str(problem):
            raise DataError(f"{path}: open in another workbench; close it first") from None


def _state_of(path: Path) -> tuple[int, str]:
    """Return the number of entries of a state, and why it is damaged."""
    if not path.exists():
        return 0, ""
    try:
        _check_size(path)
        with (
            tempfile.TemporaryDirectory(prefix="dissensus-") as folder,
            closing(Journal(_copied(path, folder))) as journal,
        ):
            return len(_checked_entries(journal)), ""
    except DissensusError as problem:
        return 0, str(problem)


def _with_backup(path: Path, state: Rows) -> tuple[Rows, Path | None]:
    """Return the rows of a state together with those of its newest backup that can be read.

    After a state was removed, backups of the old one may be beside another. A backup belongs to a
    state if entries of the same number were made at the same time, or where none are in both.
    """
    for backup in _numbered(path, "backup"):
        rows = _rows_of(backup)
        in_both = state.entries.keys() & rows.entries.keys()
        n_equal = sum(state.entries[k]["at"] == rows.entries[k]["at"] for k in in_both)
        if rows.entries and 2 * n_equal >= len(in_both):
            entries = dict(sorted((state.entries | rows.entries).items()))
            last = max(state.last, rows.last)
            return Rows(entries, {**rows.secrets, **state.secrets}, last), backup
    return state, None


def _write(draft: Path, rows: Rows) -> int:
    """Write rows as a new state; return how many entries it has."""
    with closing(Journal(draft)) as journal:
        journal.restore(rows.entries.values())
        for name, value in rows.secrets.items():
            journal.keep_secret(name, value)
        return len(_checked_entries(journal))


def _put_aside(path: Path) -> Path:
    """Give a damaged state a second name; what SQLite has beside it goes there, too."""
    aside = _next(path, "damaged")
    try:
        os.link(path, aside)
    except OSError:  # no links here
        path.rename(aside)
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        log.rename(aside.with_name(f"{aside.name}-wal"))
    log.unlink(missing_ok=True)
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return aside


def _copied(path: Path, folder: str) -> Path:
    """Copy a state, with what SQLite has beside it, into a folder."""
    copy = Path(folder) / "state"
    try:
        shutil.copyfile(path, copy)
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            shutil.copyfile(log, copy.with_name("state-wal"))
    except OSError as problem:
        raise DataError(f"{path}: {reason(problem)}") from None
    return copy


def _rows_of(path: Path) -> Rows:
    """Return what can be read of a state, from a copy.

    Entries are looked up number by number, which leaves out only those on damaged pages. They are
    looked up again with the first page of a new state, since all states have the same schema, and
    page by page where some are missing, since a damaged page may hide those below it.
    """
    readings = [_looked_up(path, new_page) for new_page in (False, True)]
    entries = readings[0].entries | readings[1].entries
    last = max([readings[0].last, readings[1].last, *entries])
    return Rows(entries, readings[0].secrets | readings[1].secrets, last)


def _looked_up(path: Path, new_page: bool) -> Rows:
    with tempfile.TemporaryDirectory(prefix="dissensus-") as folder:
        copy = _copied(path, folder)
        if new_page:
            with copy.open("r+b") as file:
                file.write(_first_page())
        rows = _rows_in(copy)
        if not rows.entries or len(rows.entries) < rows.last:
            rows = rows._replace(entries=_entries_on_pages(copy) | rows.entries)
        return rows


@lru_cache
def _first_page() -> bytes:
    """Return the first page of a state, for a file of any size."""
    with tempfile.TemporaryDirectory(prefix="dissensus-") as folder:
        Journal(Path(folder) / "new").close()
        page = bytearray((Path(folder) / "new").read_bytes()[:_PAGE])
        page[24:28] = page[28:32] = page[92:96] = bytes(4)
        return bytes(page)


def _rows_in(path: Path) -> Rows:
    rows = Rows({}, {}, 0)
    most = _most(path)
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            run = connection.execute
            run("PRAGMA writable_schema = ON")  # reads on where the schema is damaged
            columns = [str(row[1]) for row in run("PRAGMA table_info(entries)")]
            last = _last_number(connection, most)
            for number in range(1, last + 1):
                with suppress(*DAMAGE):
                    values = run("SELECT * FROM entries WHERE number = ?", (number,)).fetchone()
                    row = dict(zip(columns, values or (), strict=False))
                    if values and _can_be_read(row):
                        rows.entries[number] = row
            with suppress(*DAMAGE):
                for name, value in run("SELECT name, value FROM secrets"):
                    if _SECRET.fullmatch(str(value)):
                        rows.secrets[str(name)] = str(value)
            return rows._replace(last=last)
    except DAMAGE:
        return rows


def _most(path: Path) -> int:
    """Return a number that no entry of a state of this size can have passed."""
    return path.stat().st_size // 16 + _ROOM


def _entries_on_pages(path: Path) -> dict[int, dict[str, Any]]:
    """Return the entries on every page of a copy, each taken for the whole table."""
    entries: dict[int, dict[str, Any]] = {}
    body, most = path.read_bytes(), _most(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run = connection.execute
        with suppress(*DAMAGE):
            run("PRAGMA synchronous = OFF")
            run("PRAGMA writable_schema = ON")
        for page in range(2, len(body) // _PAGE + 1):
            if body[(page - 1) * _PAGE] != _LEAF:
                continue
            with suppress(*DAMAGE):
                run("UPDATE sqlite_master SET rootpage = ? WHERE name = 'entries'", (page,))
                run(f"PRAGMA schema_version = {page}")  # so that SQLite reads it again
                cursor = run("SELECT * FROM entries")
                columns = [column[0] for column in cursor.description]
                for row in (dict(zip(columns, values, strict=True)) for values in cursor):
                    if _can_be_read(row) and row["number"] <= most:
                        entries.setdefault(row["number"], row)
    return entries


def _last_number(connection: sqlite3.Connection, most: int) -> int:
    """Return the largest number of an entry, as far as can be seen and as fits into the file."""
    last = 0
    for query in (
        "SELECT number FROM entries ORDER BY number",
        "SELECT number FROM entries ORDER BY number DESC",
        "SELECT seq FROM sqlite_sequence WHERE name = 'entries'",
    ):
        with suppress(*DAMAGE):
            for (number,) in islice(connection.execute(query), most):
                if isinstance(number, int) and number <= most:
                    last = max(last, number)
    return last


def _can_be_read(row: Mapping[str, Any]) -> bool:
    try:
        entry = Entry(**{name: row[name] for name in Entry._fields if name in row})
    except TypeError:
        return False
    request = row.get("request")
    return not unreadable(entry) and (request is None or isinstance(request, str))
