"""JSON: a list of records, one record a line, a single object, or an object of columns.

Records of exports are decoded one at a time into typed structs that skip what they do not know,
so that a large export is never in memory as Python objects.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import polars as pl
from msgspec import Raw

from ..errors import DataError
from .frames import frame_of
from .sources import Source

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_BY_HAND = 2**23  # bytes: what is larger no person has edited


def load(source: Source) -> Any:
    """Return the content of a JSON file."""
    return _parse(source, source.text())


def load_records(source: Source) -> list[dict[str, Any]]:
    """Return the records of a JSON list or of JSON lines."""
    return _checked_records(source, _load_rows(source))


def frame_of_records(source: Source) -> pl.DataFrame:
    """Return JSON records, or an object of columns, as a table."""
    rows = _load_rows(source)
    if isinstance(rows, dict) and all(isinstance(values, list) for values in rows.values()):
        return frame_of({name: list(map(_plain, rows[name])) for name in rows}, source.fail)
    if rows == []:
        raise source.fail("no rows")
    rows = _checked_records(source, rows)
    names = dict.fromkeys(name for row in rows for name in row)
    return frame_of({name: [_plain(row.get(name)) for row in rows] for name in names}, source.fail)


def records(source: Source, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Yield every record with its number, from 1."""
    return decode(source, _read_bytes(source), kind)


def entries(source: Source, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield every entry of one JSON object with its name."""
    body = _read_bytes(source)
    whole = _decoded(source, body, msgspec.json.Decoder(dict[str, Raw]).decode)
    _check_keys(source, body)
    decoder = msgspec.json.Decoder(kind)
    for name, raw in whole.items():
        short = name if len(name) <= 40 else f"{name[:39]}…"
        yield name, _decode_one(source, decoder, raw, repr(short))


def decode(
    source: Source, body: bytes, kind: type[T], *, by_hand: bool = True
) -> Iterator[tuple[int, T]]:
    """Yield the records in a JSON list, in JSON lines, or in a single object.

    What people may have edited `by_hand` is searched for keys that appear twice.
    """
    start = body[:4096].lstrip()
    if not start:
        raise source.fail("empty")
    if start.startswith(b"["):
        split = msgspec.json.Decoder(list[Raw]).decode
    else:
        split = msgspec.json.Decoder(Raw).decode_lines  # a single object, however it is laid out
    decoder = msgspec.json.Decoder(kind)
    raws = _decoded(source, body, split)
    if by_hand and len(body) < _BY_HAND:
        _check_keys(source, body)
    for number, raw in enumerate(raws, 1):
        yield number, _decode_one(source, decoder, raw, f"record {number}")


def _checked_records(source: Source, rows: Any) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise source.fail("neither a list of records nor {item: {annotator: label}}")
    return rows


def _load_rows(source: Source) -> Any:
    if source.format != "jsonl":
        return load(source)
    return [_parse(source, line, n) for n, line in enumerate(source.lines(), 1) if line.strip()]


def _parse(source: Source, body: str, line: int | None = None) -> Any:
    try:
        return json.loads(body, object_pairs_hook=_unique)
    except _RepeatedKeyError as problem:
        where = f"line {line}: " if line else ""
        raise source.fail(f"{where}{problem}") from None
    except json.JSONDecodeError as problem:
        raise source.fail(f"line {line or problem.lineno}: not JSON ({problem.msg})") from None
    except RecursionError:
        raise source.fail("JSON nested too deep") from None
    except ValueError:  # Python reads no numbers of more than 4300 digits
        where = f"line {line}: " if line else ""
        raise source.fail(f"{where}a number with thousands of digits") from None


class _RepeatedKeyError(Exception):
    """A key that appears twice in one object, so that one of its values would be lost."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        times = Counter(name for name, _ in pairs)
        name = next(name for name, count in times.items() if count > 1)
        short = name if len(name) <= 40 else f"{name[:39]}…"
        raise _RepeatedKeyError(f"{short!r} appears twice in one object, and one would be lost")
    return record


def _check_keys(source: Source, body: bytes) -> None:
    """Refuse an object with a key twice; other faults are found elsewhere."""
    text = body.decode("utf-8", errors="replace")
    for part in (text, *text.splitlines()):  # one document, or one a line
        try:
            json.loads(part, object_pairs_hook=_unique)
        except _RepeatedKeyError as problem:
            raise source.fail(str(problem)) from None
        except (ValueError, RecursionError):
            continue
        if part is text:
            return


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list)) else value


def _read_bytes(source: Source) -> bytes:
    """Return all of a file, unpacked, without a byte-order mark."""
    if source.packed:
        return source.text().encode()
    with source.file() as file:
        return file.read().removeprefix(_BOM)


def _decoded(source: Source, body: bytes, decode: Any) -> Any:
    """Return the decoded content, with null for Python's NaN; raise an error about other faults."""
    try:
        try:
            return decode(body)
        except msgspec.DecodeError:
            if b"NaN" not in body and b"Infinity" not in body:
                raise
            return decode(_without_nan(body))
    except msgspec.ValidationError as problem:
        raise source.fail(_message(problem)) from None
    except msgspec.DecodeError as problem:
        raise _malformed(source, body, str(problem)) from None
    except RecursionError:
        raise source.fail("JSON nested too deep") from None


def _decode_one(source: Source, decoder: msgspec.json.Decoder[T], raw: Raw, where: str) -> T:
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError as problem:
        raise source.fail(f"{where}: {_message(problem)}") from None
    except UnicodeDecodeError:
        raise source.fail(f"{where}: not UTF-8; save it again as UTF-8") from None
    except RecursionError:
        raise source.fail(f"{where}: JSON nested too deep") from None


def _without_nan(body: bytes) -> bytes:
    """Return the same records with null for NaN, a line each if they were on lines."""
    for parts in ([body], body.splitlines()):
        try:
            lines = [msgspec.json.encode(json.loads(part)) for part in parts if part.strip()]
        except (ValueError, TypeError, msgspec.MsgspecError):
            continue
        return b"\n".join(lines)
    return body  # so that the first error is raised


def _malformed(source: Source, body: bytes, message: str) -> DataError:
    position = re.search(r"\(byte (\d+)\)", message)
    if position is None:
        return source.fail("not JSON to its end; it was cut off")
    line = body.count(b"\n", 0, int(position[1])) + 1
    reason = message.removeprefix("JSON is malformed: ")[: -len(position[0]) - 1]
    return source.fail(f"line {line}: not JSON ({reason})")


def _message(problem: Exception) -> str:
    """Return which type was expected, and where in the record."""
    message, _, position = str(problem).replace("`", "").partition(" - at ")
    where = position.removeprefix("$").removeprefix(".")
    message = message[:1].lower() + message[1:]
    return f"{where}: {message}" if where else message
