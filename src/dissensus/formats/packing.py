"""Compressed files, gzip and Zstandard, and how far they may grow when they are unpacked.

A file of a megabyte can be made to unpack to gigabytes. Tables and exports shrink to a fiftieth
at most, so what would grow two hundredfold is refused before it fills the memory.
"""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from pathlib import Path

from ..base.files import reason
from ..errors import DataError

_MOST_GROWTH = 200
_SMALL = 2**26  # bytes that anything may unpack to
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 2**17  # bytes that a block of Zstandard can hold
_CHUNK = 2**20
# What a damaged zip raises.
DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError)


def largest(packed: int) -> int:
    """Return how many bytes may come out of a compressed file or an archive."""
    return max(_SMALL, _MOST_GROWTH * packed)


def check_growth(name: str, packed: int, size: int) -> None:
    """Refuse what unpacks to too much."""
    if size > largest(packed):
        most = largest(packed) // 2**20
        raise DataError(f"{name}: unpacks to more than {most} MiB; unpack it first")


def unpacked(content: Path | bytes, name: str) -> Path | bytes:
    """Return the content of a gzip file, or a Zstandard file as it is, unless it grows too much."""
    try:
        raw = content if isinstance(content, bytes) else content.read_bytes()
    except OSError as problem:
        raise DataError(f"{name}: {reason(problem)}") from None
    if raw.startswith(ZSTD):  # polars unpacks it
        check_blocks(name, raw)
        return content
    body = bytearray()
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            while chunk := file.read(_CHUNK):
                body += chunk
                check_growth(name, len(raw), len(body))
    except (EOFError, OSError, zlib.error):
        raise _damaged(name) from None
    if not body:
        raise DataError(f"{name}: empty")
    return bytes(body)


def check_blocks(name: str, raw: bytes) -> None:
    """Refuse Zstandard that unpacks to too much, or that was cut off."""
    blocks = _blocks(raw)
    if blocks is None:
        raise _damaged(name)
    check_growth(name, len(raw), blocks * _BLOCK)


def _damaged(name: str) -> DataError:
    return DataError(f"{name}: cannot be unpacked; it is damaged or not text")


def _blocks(raw: bytes) -> int | None:
    """Return how many blocks of at most 128 KiB are in a Zstandard file, `None` if it is cut off.

    Only the headers are read (RFC 8878, section 3.1.1).
    """
    position, blocks = 0, 0
    while raw[position : position + 4] == ZSTD:
        descriptor = raw[position + 4] if position + 4 < len(raw) else 0
        single, checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
        position += 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
        position += (single, 2, 4, 8)[descriptor >> 6]
        last = False
        while not last:
            header = int.from_bytes(raw[position : position + 3], "little")
            if position + 3 > len(raw):
                return None
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == 1 else size)  # a run is one byte
            blocks += 1
        position += 4 * checksum
    return blocks
