"""JSON as the tools write it: a list of records, one record a line, or a single one.

Records are decoded one at a time into typed structs that skip what they do not know, so that a
large export is never in memory as Python objects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from ..errors import DataError
from .sources import Source

__all__ = ["decode", "entries", "read_bytes", "records"]

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


def records(source: Source, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Yield every record with its number, from 1."""
    return decode(source, read_bytes(source), kind)


def entries(source: Source, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield every entry of one JSON object with its name."""
    whole = _decoded(source, read_bytes(source), msgspec.json.Decoder(dict[str, Raw]).decode)
    decoder = msgspec.json.Decoder(kind)
    for name, raw in whole.items():
        yield name, _one(source, decoder, raw, f"{_short(name)!r}")


def decode(source: Source, body: bytes, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Yield the records in a JSON list, in JSON lines, or in a single object."""
    start = body[:4096].lstrip()
    if not start:
        raise source.fail("empty")
    if start.startswith(b"["):
        split = msgspec.json.Decoder(list[Raw]).decode
    else:
        split = msgspec.json.Decoder(Raw).decode_lines  # a single object, however it is laid out
    decoder = msgspec.json.Decoder(kind)
    for number, raw in enumerate(_decoded(source, body, split), 1):
        yield number, _one(source, decoder, raw, f"record {number}")


def read_bytes(source: Source) -> bytes:
    """Return all of a file, unpacked, without a byte-order mark."""
    with source.file() as file:
        body = file.read()
    if body.startswith(_PACKED):
        body = source.text().encode()
    return body.removeprefix(_BOM)


def _decoded(source: Source, body: bytes, decode: Any) -> Any:
    """Return what a decoder finds; Python's NaN becomes nothing, other faults are told."""
    try:
        try:
            return decode(body)
        except msgspec.DecodeError:
            if b"NaN" not in body and b"Infinity" not in body:
                raise
            return decode(_without_nan(body))
    except msgspec.ValidationError as problem:
        raise source.fail(_told(problem)) from None
    except msgspec.DecodeError as problem:
        raise _malformed(source, body, str(problem)) from None
    except RecursionError:
        raise source.fail("JSON nested too deep") from None


def _one(source: Source, decoder: msgspec.json.Decoder[T], raw: Raw, where: str) -> T:
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError as problem:
        raise source.fail(f"{where}: {_told(problem)}") from None
    except UnicodeDecodeError:
        raise source.fail(f"{where}: not UTF-8; save it again as UTF-8") from None
    except RecursionError:
        raise source.fail(f"{where}: JSON nested too deep") from None


def _without_nan(body: bytes) -> bytes:
    """Return the same records with null for NaN, a line each where they stood on lines."""
    for parts in ([body], body.splitlines()):
        try:
            found = [msgspec.json.encode(json.loads(part)) for part in parts if part.strip()]
        except (ValueError, TypeError, msgspec.MsgspecError):
            continue
        return b"\n".join(found)
    return body  # the first complaint stands


def _malformed(source: Source, body: bytes, told: str) -> DataError:
    position = re.search(r"\(byte (\d+)\)", told)
    if position is None:
        return source.fail("not JSON to its end; it was cut off")
    line = body.count(b"\n", 0, int(position[1])) + 1
    reason = told.removeprefix("JSON is malformed: ")[: -len(position[0]) - 1]
    return source.fail(f"line {line}: not JSON ({reason})")


def _told(problem: Exception) -> str:
    """Say where in a record which type was found, in our words."""
    message, _, position = str(problem).replace("`", "").partition(" - at ")
    where = position.removeprefix("$").removeprefix(".")
    message = message[:1].lower() + message[1:]
    return f"{where}: {message}" if where else message


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"
