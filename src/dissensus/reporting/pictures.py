"""Images of items, put into the page itself where they are at hand and small.

Texts are data: one that names an image is believed only inside the folder that the data are in, and
only if the file looks like an image.
"""

from __future__ import annotations

import base64
from pathlib import Path

__all__ = ["embedded"]

_KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
_ENDINGS = (".png", ".jpg", ".jpeg", ".gif")
_MOST_BYTES = 100_000
_LONGEST = 400  # letters of a path


def embedded(text: str | None, folder: Path | None = None) -> str | None:
    """Return a small image as an address that holds it; nothing for other texts.

    >>> embedded("a nice text") is None
    True
    """
    if text is None:
        return None
    if text.startswith(tuple(f"data:image/{kind};base64," for kind in _KINDS.values())):
        return text if len(text) <= 2 * _MOST_BYTES else None
    if folder is None or len(text) > _LONGEST or not text.lower().endswith(_ENDINGS):
        return None
    try:
        root = folder.resolve()
        path = (root / text).resolve()
        if not path.is_relative_to(root) or not path.is_file():
            return None
        if path.stat().st_size > _MOST_BYTES:
            return None
        raw = path.read_bytes()
    except (OSError, ValueError):
        return None
    kind = next((kind for magic, kind in _KINDS.items() if raw.startswith(magic)), None)
    return None if kind is None else f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"
