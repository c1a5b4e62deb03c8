"""Packed files, gzip and Zstandard, and how far they may grow when they are unpacked.

A file of a megabyte can be made to unpack to gigabytes. Tables and exports shrink to a fiftieth
at most, so what would grow two hundredfold is refused before it fills the memory.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

from ..errors import DataError

__all__ = ["MOST_GROWTH", "is_packed", "unpacked"]

MOST_GROWTH = 200
_SMALL = 2**26  # bytes that anything may unpack to
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 2**17  # bytes that a block of Zstandard can hold
_CHUNK = 2**20


def is_packed(content: Path | bytes) -> bool:
    """Return whether a file is packed."""
    return _beginning(content).startswith((_GZIP, _ZSTD))


def unpacked(content: Path | bytes, name: str) -> Path | bytes:
    """Return what a gzip file holds, or a Zstandard file as it is, if it does not grow too much."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    most = max(_SMALL, MOST_GROWTH * size)
    if _beginning(content).startswith(_ZSTD):  # polars unpacks it
        raw = content if isinstance(content, bytes) else content.read_bytes()
        if _blocks(raw, name) * _BLOCK > most:
            raise _too_large(name, most)
        return content
    body = bytearray()
    try:
        with gzip.open(io.BytesIO(content) if isinstance(content, bytes) else content) as file:
            while chunk := file.read(_CHUNK):
                body += chunk
                if len(body) > most:
                    raise _too_large(name, most)
    except (EOFError, OSError, zlib.error):
        raise DataError(f"{name}: cannot be unpacked; it is damaged or not text") from None
    if not body:
        raise DataError(f"{name}: empty")
    return bytes(body)


def _beginning(content: Path | bytes) -> bytes:
    if isinstance(content, bytes):
        return content[:4]
    try:
        with content.open("rb") as file:
            return file.read(4)
    except OSError as problem:
        raise DataError(f"{content}: {(problem.strerror or str(problem)).lower()}") from None


def _too_large(name: str, most: int) -> DataError:
    return DataError(f"{name}: unpacks to more than {most // 2**20} MiB; unpack it first")


def _blocks(raw: bytes, name: str) -> int:
    """Return how many blocks of at most 128 KiB are in the frames of a Zstandard file.

    Only the headers are read (RFC 8878, section 3.1.1).
    """
    position, blocks = 0, 0
    while raw[position : position + 4] == _ZSTD:
        described = raw[position + 4] if position + 4 < len(raw) else 0
        single, checked = described >> 5 & 1, described >> 2 & 1
        position += 5 + (not single) + (0, 1, 2, 4)[described & 3]
        position += (single, 2, 4, 8)[described >> 6]
        last = False
        while not last:
            header = int.from_bytes(raw[position : position + 3], "little")
            if position + 3 > len(raw):
                raise DataError(f"{name}: cannot be unpacked; it is damaged or not text")
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == 1 else size)  # one byte stands for a run of it
            blocks += 1
        position += 4 * checked
    return blocks
