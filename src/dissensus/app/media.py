"""Files of items: images, sounds and videos that texts name, inside the folder of the data."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

KINDS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
}
_MAX_PATH = 400  # characters


class Media(NamedTuple):
    """A file of an item."""

    path: Path
    kind: str  # its media type


def media_of(text: str | None, folder: Path | None) -> Media | None:
    """Return the file that a text names; `None` for other texts, and for files outside the folder.

    Links are followed first, so none leads out.
    """
    if text is None or folder is None or len(text) > _MAX_PATH or "\0" in text:
        return None
    kind = KINDS.get(Path(text.strip()).suffix.lower())
    if kind is None:
        return None
    try:
        root = folder.resolve()
        path = (root / text.strip()).resolve()
        if path.is_relative_to(root) and path.is_file():
            return Media(path, kind)
    except (OSError, ValueError):
        pass
    return None


def files_by_item(folder: Path, items: list[str]) -> dict[str, str]:
    """Return the file of every item in a folder: the name of the item, with or without ending."""
    found: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in KINDS and path.is_file():
            found.setdefault(path.stem, path.name)
            found[path.name] = path.name
    return {item: found[item] for item in items if item in found}
