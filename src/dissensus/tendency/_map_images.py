"""Maps as pictures: heat over an image, words on a ground of colour, strips of frames.

Colours are on one scale for all annotators of an item, from none at zero to dark red at the
highest of all of them, so that side by side they can be compared.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._relation import Floats
from ..errors import OptionError

__all__ = ["Shown", "as_address", "heat", "pair_picture", "sheet"]

_SIDE = 160  # pixels of a picture on a sheet
_FRAME = 72
_GAP = 10
_TEXT = 13  # pixels of a letter's height
_MOST_COLUMNS = 24  # annotators on a sheet
_RAMP = np.array([[255, 237, 160], [254, 178, 76], [240, 59, 32], [128, 0, 38]], dtype=float)
_INK, _DIM, _PAPER = (27, 35, 48), (92, 102, 117), (255, 255, 255)
_KEY = (
    "Red: where the model looked when it foresaw this annotator's label; faint: everywhere alike.",
    "Beside or below: the label that it foresees, how probable it is, and what they said.",
)
Pixels = npt.NDArray[np.uint8]


class Shown(NamedTuple):
    """An item as people see it: pictures, or words; neither for features."""

    name: str
    kind: str  # patches, frames, words or places
    pictures: list[Any]  # of Pillow: one of an image, one per frame of a video
    words: list[str]
    maps: Floats  # (annotator, place)
    shape: tuple[int, ...]
    foreseen: list[tuple[str, float]]  # by annotator: the label, and how probable it is
    annotations: list[str]  # by annotator: what they said, or nothing


def heat(values: Floats, highest: float) -> Pixels:
    """Return colours with their strength, from values between 0 and the highest: (…, 4).

    >>> heat(np.array([0.0, 1.0]), 1.0)[:, 3].tolist()
    [0, 217]
    """
    share = np.clip(values / max(highest, 1e-12), 0, 1)
    at = share * (len(_RAMP) - 1)
    low = np.minimum(at.astype(int), len(_RAMP) - 2)
    part = (at - low)[..., None]
    colour = _RAMP[low] * (1 - part) + _RAMP[low + 1] * part
    return np.concatenate([colour, 255 * 0.85 * share[..., None]], axis=-1).round().astype(np.uint8)


def as_address(picture: Any, kind: str = "PNG") -> str:
    """Return a picture as an address that holds it."""
    out = BytesIO()
    picture.save(out, kind, **({"quality": 80} if kind == "JPEG" else {"optimize": True}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"


def pair_picture(shown: Shown, annotator: int) -> Any:
    """Return the map of one annotator over an item."""
    highest = float(shown.maps.max())
    values = shown.maps[annotator]
    if shown.kind == "words":
        return _words(shown.words, values, highest)
    if shown.kind == "frames":
        return _curve(values, highest)
    return _patches(shown, values, highest)


def sheet(items: Sequence[Shown], annotators: Sequence[str]) -> Any:
    """Return all annotators side by side, an item per row."""
    image, draw, font = _pillow()
    rows = [[pair_picture(one, position) for position in range(len(one.maps))] for one in items]
    rows = [row[:_MOST_COLUMNS] for row in rows]
    plain = [_plain(one) for one in items]
    down = items[0].kind in ("words", "frames")  # too wide to stand side by side
    gap = _GAP if not down else 4
    blocks = [
        _below(picture, one, row, annotators, gap) if down else _beside(picture, one, row)
        for picture, one, row in zip(plain, items, rows, strict=True)
    ]
    wide = max(block.width for block in blocks) + 2 * _GAP
    top = _GAP + 2 * _TEXT + 18 + (0 if down else _TEXT + 8)
    out = image.new("RGB", (wide, sum(b.height + _GAP for b in blocks) + top + _GAP), _PAPER)
    pen = draw.Draw(out)
    for line, words in enumerate(_KEY):
        down_by = _GAP + line * (_TEXT + 4)
        pen.text((_GAP, down_by), _cut(words, wide - 2 * _GAP, font), fill=_DIM, font=font)
    if not down:
        for position, name in enumerate(["item", *annotators[:_MOST_COLUMNS]]):
            at = _GAP + position * (_SIDE + _GAP)
            pen.text((at, top - _TEXT - 7), _cut(name, _SIDE, font), fill=_INK, font=font)
    at = top
    for block in blocks:
        out.paste(block, (_GAP, at))
        at += block.height + _GAP
    return out


def _beside(picture: Any, one: Shown, row: Sequence[Any]) -> Any:
    """Return an item and its maps in a row, with what is foreseen below each."""
    image, draw, font = _pillow()
    every = [picture, *row]
    out = image.new("RGB", (len(every) * (_SIDE + _GAP) - _GAP, _SIDE + 2 * _TEXT + 12), _PAPER)
    pen = draw.Draw(out)
    for position, each in enumerate(every):
        at = position * (_SIDE + _GAP)
        out.paste(each, (at, 0))
        first, second = (one.name, "") if position == 0 else _told(one, position - 1)
        pen.text((at, _SIDE + 3), _cut(first, _SIDE, font), fill=_INK, font=font)
        pen.text((at, _SIDE + _TEXT + 6), _cut(second, _SIDE, font), fill=_DIM, font=font)
    return out


def _below(picture: Any, one: Shown, row: Sequence[Any], names: Sequence[str], gap: int) -> Any:
    """Return an item and its maps one below the other, with names at the left."""
    image, draw, font = _pillow()
    left = 190
    every = list(row) if one.kind == "words" else [picture, *row]
    least = 2 * _TEXT + 8  # a name, and what is foreseen
    height = sum(max(each.height, least) + gap for each in every) + _TEXT + 12
    out = image.new("RGB", (left + max(each.width for each in every), height), _PAPER)
    pen = draw.Draw(out)
    pen.text((0, 0), _cut(one.name, 600, font), fill=_INK, font=font)
    at = _TEXT + 8
    for position, each in enumerate(every, start=len(row) - len(every)):
        if position >= 0:
            first, second = _told(one, position)
            pen.text((0, at), _cut(names[position], left - 8, font), fill=_INK, font=font)
            told = f"{first} {second}".strip()
            pen.text((0, at + _TEXT + 2), _cut(told, left - 8, font), fill=_DIM, font=font)
        out.paste(each, (left, at))
        at += max(each.height, least) + gap
    return out


def _told(one: Shown, annotator: int) -> tuple[str, str]:
    label, chance = one.foreseen[annotator]
    annotations = one.annotations[annotator]
    return f"{label} ({chance:.0%})", f"said {annotations}" if annotations else ""


def _plain(one: Shown) -> Any:
    image, _, _ = _pillow()
    if one.kind == "frames" and one.pictures:
        return _strip(one.pictures)
    if one.pictures:
        return one.pictures[0].resize((_SIDE, _SIDE))
    return image.new("RGB", (_SIDE, _SIDE), (244, 246, 249))


def _patches(shown: Shown, values: Floats, highest: float) -> Any:
    """Return an image under heat; features without a picture are plain squares."""
    image, _, _ = _pillow()
    shape = shown.shape if len(shown.shape) == 2 else (1, len(values))
    colours = image.fromarray(heat(values.reshape(shape), highest), "RGBA")
    smooth = image.Resampling.BICUBIC if shown.pictures else image.Resampling.NEAREST
    base = _plain(shown).convert("RGB")
    plain = image.new("RGB", base.size, _PAPER)
    out = image.blend(base.convert("L").convert("RGB"), plain, 0.25).convert("RGBA")
    out.alpha_composite(colours.resize(out.size, smooth))
    return out.convert("RGB")


def _strip(frames: Sequence[Any]) -> Any:
    image, _, _ = _pillow()
    out = image.new("RGB", (len(frames) * (_FRAME + 2), _FRAME), _PAPER)
    for position, frame in enumerate(frames):
        out.paste(frame.resize((_FRAME, _FRAME)), (position * (_FRAME + 2), 0))
    return out


def _curve(values: Floats, highest: float) -> Any:
    """Return a curve over frames, each above its share of the look."""
    image, draw, _ = _pillow()
    height = 44
    out = image.new("RGB", (len(values) * (_FRAME + 2), height + 4), _PAPER)
    pen = draw.Draw(out)
    colours = heat(values, highest)
    points = []
    for position, value in enumerate(values):
        left, share = position * (_FRAME + 2), value / max(highest, 1e-12)
        colour = tuple(int(each) for each in colours[position, :3])
        top = height - round(share * (height - 4))
        pen.rectangle((left, top, left + _FRAME, height), fill=colour)
        points.append((left + _FRAME // 2, top))
    pen.line(points, fill=_INK, width=2)
    pen.line((0, height + 1, out.width, height + 1), fill=(217, 222, 230))
    return out


def _words(words: Sequence[str], values: Floats, highest: float) -> Any:
    """Return words, each on a ground as strong as it is looked at."""
    image, draw, font = _pillow()
    wide, space, line = 640, 5, _TEXT + 9
    positions, x, y = [], 0, 0
    for word in words:
        length = min(round(font.getlength(word)), wide)
        if x and x + length > wide:
            x, y = 0, y + line
        positions.append((x, y, length))
        x += length + space
    out = image.new("RGB", (wide, y + line), _PAPER)
    pen = draw.Draw(out, "RGBA")
    for (x, y, length), word, colour in zip(positions, words, heat(values, highest), strict=True):
        told = tuple(int(each) for each in colour)
        pen.rectangle((x - 1, y, x + length + 1, y + line - 4), fill=told)
        dark = colour[3] > 150 and colour[:3].sum() < 420
        pen.text((x, y + 1), word, fill=_PAPER if dark else _INK, font=font)
    return out


def _cut(text: str, wide: int, font: Any) -> str:
    """Return a text, shortened where it is wider than its place."""
    text = " ".join(text.split())
    if font.getlength(text) <= wide:
        return text
    while text and font.getlength(f"{text}…") > wide:
        text = text[:-1]
    return f"{text}…"


def _pillow() -> tuple[Any, Any, Any]:
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise OptionError("pictures need Pillow: pip install 'dissensus[deep]'") from None
    return Image, ImageDraw, ImageFont.load_default(_TEXT)
