"""The hardest items: images as a contact sheet, anything else as a page.

Names, labels and texts are data: drawn as pixels here, escaped by Jinja2 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import DataError
from ..pages.embedding import as_image, enlarged, fill, pillow, shorten

_SIDE, _GAP, _LINE, _TEXT, _TITLE = 168, 14, 18, 13, 16  # pixels
_COLUMNS = 6
_INK, _DIM, _PAPER, _WARN, _EMPTY = "#1b2330", "#5c6675", "#ffffff", "#a33a2c", "#f4f6f9"
_MOST_LABELS = 3  # classes named below a picture


class HardItem(NamedTuple):
    """A hard item as readers see it."""

    name: str
    score: float
    too_hard: bool
    labels: tuple[tuple[str, int], ...]  # class and number of labels, the most frequent first
    content: Any  # the image's file or pixels, the text, or nothing

    def summary(self, most: int | None = None) -> str:
        """Return how often each label was given."""
        words = [f"{name}: {count}" for name, count in self.labels[:most]]
        return ", ".join(words + ["…"] * (len(words) < len(self.labels))) or "no label"


def contact_sheet(items: Sequence[HardItem], title: str) -> bytes:
    """Return the images of items side by side as PNG, with scores and labels below each."""
    image, draw_on = pillow()
    columns = max(min(len(items), _COLUMNS), 1)
    rows = -(-len(items) // columns)
    wide, high = _SIDE + _GAP, _SIDE + 3 * _LINE + _GAP
    sheet = image.new("RGB", (columns * wide + _GAP, rows * high + 3 * _LINE), _PAPER)
    draw, font, large = draw_on.Draw(sheet), _font(_TEXT), _font(_TITLE)
    draw.text((_GAP, _GAP), shorten(title, columns * wide, large), _INK, large)
    for position, item in enumerate(items):
        x = _GAP + position % columns * wide
        y = 2 * _LINE + _GAP // 2 + position // columns * high
        if is_picture(item.content):
            small = _thumbnail(item.content)
            draw.rectangle((x, y, x + _SIDE - 1, y + _SIDE - 1), _EMPTY)
            sheet.paste(small, (x + (_SIDE - small.width) // 2, y + (_SIDE - small.height) // 2))
        if item.too_hard:
            draw.rectangle((x - 2, y - 2, x + _SIDE + 1, y + _SIDE + 1), outline=_WARN, width=2)
        lines = [
            (f"{position + 1}.  {item.score:.3f}", _WARN if item.too_hard else _INK),
            (item.summary(_MOST_LABELS), _INK),
            (item.name, _DIM),
        ]
        for number, (words, colour) in enumerate(lines):
            start = (x, y + _SIDE + 3 + number * _LINE)
            draw.text(start, shorten(words, _SIDE, font), colour, font)
    png = BytesIO()
    sheet.save(png, "PNG")
    return png.getvalue()


def hard_page(items: Sequence[HardItem], title: str) -> str:
    """Return a page that lists items with their texts, scores and labels; one file, no scripts."""
    has_texts = any(isinstance(item.content, str) for item in items)
    return fill("hardest.html", scripts=(), title=title, items=items, has_texts=has_texts)


def is_picture(content: Any) -> bool:
    """Return whether it can be drawn: a file, or pixels (channel, row, column) or with them last.

    >>> is_picture(Path("a.png")), is_picture("a text"), is_picture(np.zeros((3, 8, 8)))
    (True, False, True)
    """
    if isinstance(content, np.ndarray):
        return content.ndim == 3 and (content.shape[0] in (1, 3) or content.shape[2] in (1, 3))
    return isinstance(content, Path)


def _thumbnail(content: Any) -> Any:
    if isinstance(content, np.ndarray):
        small = as_image(content, _SIDE)
    else:
        image, _ = pillow()
        try:
            with image.open(content) as opened:
                small = enlarged(opened.convert("RGB"), _SIDE)
        except (OSError, ValueError, image.DecompressionBombError) as problem:
            raise DataError(f"{content}: not a readable image ({problem})") from None
    small.thumbnail((_SIDE, _SIDE))
    return small


def _font(size: int) -> Any:
    """Return a font with many scripts if the machine has one, else Pillow's own, which is Latin."""
    from PIL import ImageFont

    for name in ("NotoSans-Regular.ttf", "DejaVuSans.ttf", "arial.ttf", "Arial Unicode.ttf"):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)
