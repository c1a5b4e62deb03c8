"""Attention maps as images: heat over an image, words on coloured ground, strips of frames.

All annotators of an item share one colour scale, from transparent at zero to dark red at the
highest of them, so that they can be compared side by side.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.arrays import Floats
from ...pages.embedding import pillow, shorten

_SIDE = 160  # pixels of an image on a sheet
_FRAME = 72
_GAP = 10
_TEXT = 13  # pixels of the height of a letter
_LEFT = 190  # pixels of names left of words and frames
_PATCH = 12  # pixels of a patch in an overlay
_MAX_COLUMNS = 24  # annotators on a sheet
_OPACITY = 255 * 0.85
_RAMP = np.array([[255, 237, 160], [254, 178, 76], [240, 59, 32], [128, 0, 38]], dtype=float)
_RED, _BLUE = np.array([215, 48, 31]), np.array([33, 102, 172])
_INK, _DIM, _PAPER = (27, 35, 48), (92, 102, 117), (255, 255, 255)
_KEY = (
    "Red: where the model attended to predict this annotator's label; faint: uniform attention.",
    "Next to it: the predicted label, its probability, and the label they gave.",
)
Pixels = npt.NDArray[np.uint8]


class ItemMaps(NamedTuple):
    """The maps of an item, with its images or words; neither for features."""

    name: str
    kind: str  # patches, frames, words or tokens
    images: list[Any]  # of Pillow: one of an image, one per frame of a video
    words: list[str]
    maps: Floats  # (annotator, position)
    shape: tuple[int, ...]
    predicted: list[tuple[str, float]]  # by annotator: label and probability
    own_labels: list[str]  # by annotator: their label, empty if unknown

    def cards(self, annotators: Sequence[str]) -> list[dict[str, Any]]:
        """Return who is shown, with the label that was predicted and the one they gave."""
        rows = zip(annotators, self.predicted, self.own_labels, strict=True)
        return [
            {"annotator": name, "label": label, "probability": probability, "given": own_label}
            for name, (label, probability), own_label in rows
        ]

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of a map."""
        rows, columns = self.shape if len(self.shape) == 2 else (1, self.maps.shape[1])
        return rows, columns


def heat(values: Floats, highest: float) -> Pixels:
    """Return colours with opacity for values between 0 and the highest: (…, 4).

    >>> heat(np.array([0.0, 1.0]), 1.0)[:, 3].tolist()
    [0, 217]
    """
    share = np.clip(values / max(highest, 1e-12), 0, 1)
    step = share * (len(_RAMP) - 1)
    low = np.minimum(step.astype(int), len(_RAMP) - 2)
    part = (step - low)[..., None]
    colour = _RAMP[low] * (1 - part) + _RAMP[low + 1] * part
    return np.concatenate([colour, _OPACITY * share[..., None]], axis=-1).round().astype(np.uint8)


def contrast(change: Floats, furthest: float) -> Pixels:
    """Return red for more and blue for less, with opacity: (row, column, 4)."""
    share = np.abs(change) / max(furthest, 1e-12)
    colour = np.where(change[..., None] > 0, _RED, _BLUE)
    return np.concatenate([colour, (_OPACITY * share)[..., None]], axis=-1).astype(np.uint8)


def overlay(colours: Pixels, smooth: bool) -> str:
    """Return colours of patches, enlarged, as a data URL."""
    image, _, _ = _pillow()
    small = image.fromarray(colours, "RGBA")
    kind = image.Resampling.BICUBIC if smooth else image.Resampling.NEAREST
    return data_url(small.resize((small.width * _PATCH, small.height * _PATCH), kind))


def data_url(picture: Any, kind: str = "PNG") -> str:
    """Return an image as a data URL."""
    out = BytesIO()
    picture.save(out, kind, **({"quality": 80} if kind == "JPEG" else {"optimize": True}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"


def pair_image(item: ItemMaps, annotator: int) -> Any:
    """Return the map of one annotator over an item."""
    highest, values = float(item.maps.max()), item.maps[annotator]
    if item.kind == "words":
        return _words(item.words, values, highest)
    if item.kind == "frames":
        return _bars(values, highest)
    return _patches(item, values, highest)


def sheet(items: Sequence[ItemMaps], annotators: Sequence[str]) -> Any:
    """Return all annotators side by side, with a row per item."""
    image, draw, font = _pillow()
    down = items[0].kind in ("words", "frames")  # too wide to be side by side
    blocks = [_column(item, annotators) if down else _row(item) for item in items]
    width = max(block.width for block in blocks) + 2 * _GAP
    top = _GAP + 2 * _TEXT + 18 + (0 if down else _TEXT + 8)
    out = image.new("RGB", (width, sum(b.height + _GAP for b in blocks) + top + _GAP), _PAPER)
    pen = draw.Draw(out)
    for line, words in enumerate(_KEY):
        y = _GAP + line * (_TEXT + 4)
        pen.text((_GAP, y), shorten(words, width - 2 * _GAP, font), fill=_DIM, font=font)
    for column, name in enumerate([] if down else ["item", *annotators[:_MAX_COLUMNS]]):
        x = _GAP + column * (_SIDE + _GAP)
        pen.text((x, top - _TEXT - 7), shorten(name, _SIDE, font), fill=_INK, font=font)
    y = top
    for block in blocks:
        out.paste(block, (_GAP, y))
        y += block.height + _GAP
    return out


def _row(item: ItemMaps) -> Any:
    """Return an item and its maps in a row, each with its prediction below."""
    image, draw, font = _pillow()
    count = min(len(item.maps), _MAX_COLUMNS)
    pictures = [_plain(item), *(pair_image(item, annotator) for annotator in range(count))]
    out = image.new("RGB", (len(pictures) * (_SIDE + _GAP) - _GAP, _SIDE + 2 * _TEXT + 12), _PAPER)
    pen = draw.Draw(out)
    captions = [(item.name, ""), *(_caption(item, annotator) for annotator in range(count))]
    for column, (picture, (first, second)) in enumerate(zip(pictures, captions, strict=True)):
        x = column * (_SIDE + _GAP)
        out.paste(picture, (x, 0))
        pen.text((x, _SIDE + 3), shorten(first, _SIDE, font), fill=_INK, font=font)
        pen.text((x, _SIDE + _TEXT + 6), shorten(second, _SIDE, font), fill=_DIM, font=font)
    return out


def _column(item: ItemMaps, names: Sequence[str]) -> Any:
    """Return an item and its maps one below the other, with names on the left."""
    image, draw, font = _pillow()
    count, gap = min(len(item.maps), _MAX_COLUMNS), 4
    pictures = [pair_image(item, annotator) for annotator in range(count)]
    captions = [
        (names[annotator], " ".join(_caption(item, annotator)).strip())
        for annotator in range(count)
    ]
    if item.kind == "frames":
        pictures, captions = [_plain(item), *pictures], [("", ""), *captions]
    heights = [max(picture.height, 2 * _TEXT + 8) + gap for picture in pictures]
    size = _LEFT + max(picture.width for picture in pictures), sum(heights) + _TEXT + 12
    out = image.new("RGB", size, _PAPER)
    pen = draw.Draw(out)
    pen.text((0, 0), shorten(item.name, 600, font), fill=_INK, font=font)
    y = _TEXT + 8
    for picture, height, (first, second) in zip(pictures, heights, captions, strict=True):
        pen.text((0, y), shorten(first, _LEFT - 8, font), fill=_INK, font=font)
        pen.text((0, y + _TEXT + 2), shorten(second, _LEFT - 8, font), fill=_DIM, font=font)
        out.paste(picture, (_LEFT, y))
        y += height
    return out


def _caption(item: ItemMaps, annotator: int) -> tuple[str, str]:
    label, probability = item.predicted[annotator]
    own_label = item.own_labels[annotator]
    return f"{label} ({probability:.0%})", f"gave {own_label}" if own_label else ""


def _plain(item: ItemMaps) -> Any:
    """Return the item without a map."""
    image, _, _ = _pillow()
    if item.kind == "frames" and item.images:
        out = image.new("RGB", (len(item.images) * (_FRAME + 2), _FRAME), _PAPER)
        for index, frame in enumerate(item.images):
            out.paste(frame.resize((_FRAME, _FRAME)), (index * (_FRAME + 2), 0))
        return out
    if item.images:
        return item.images[0].resize((_SIDE, _SIDE))
    return image.new("RGB", (_SIDE, _SIDE), (244, 246, 249))


def _patches(item: ItemMaps, values: Floats, highest: float) -> Any:
    """Return heat over an image, or over a grey square."""
    image, _, _ = _pillow()
    colours = image.fromarray(heat(values.reshape(item.grid), highest), "RGBA")
    smooth = image.Resampling.BICUBIC if item.images else image.Resampling.NEAREST
    grey = _plain(item).convert("L").convert("RGB")
    out = image.blend(grey, image.new("RGB", grey.size, _PAPER), 0.25).convert("RGBA")
    out.alpha_composite(colours.resize(out.size, smooth))
    return out.convert("RGB")


def _bars(values: Floats, highest: float) -> Any:
    """Return a bar and a curve over frames."""
    image, draw, _ = _pillow()
    height = 44
    out = image.new("RGB", (len(values) * (_FRAME + 2), height + 4), _PAPER)
    pen = draw.Draw(out)
    points = []
    for index, (value, colour) in enumerate(zip(values, heat(values, highest), strict=True)):
        start = index * (_FRAME + 2)
        top = height - round(value / max(highest, 1e-12) * (height - 4))
        pen.rectangle((start, top, start + _FRAME, height), fill=tuple(colour[:3].tolist()))
        points.append((start + _FRAME // 2, top))
    pen.line(points, fill=_INK, width=2)
    pen.line((0, height + 1, out.width, height + 1), fill=(217, 222, 230))
    return out


def _words(words: Sequence[str], values: Floats, highest: float) -> Any:
    """Return words on coloured ground."""
    image, draw, font = _pillow()
    width, space, line = 640, 5, _TEXT + 9
    boxes, x, y = [], 0, 0
    for word in words:
        length = min(round(font.getlength(word)), width)
        if x and x + length > width:
            x, y = 0, y + line
        boxes.append((x, y, length))
        x += length + space
    out = image.new("RGB", (width, y + line), _PAPER)
    pen = draw.Draw(out, "RGBA")
    for (x, y, length), word, colour in zip(boxes, words, heat(values, highest), strict=True):
        pen.rectangle((x - 1, y, x + length + 1, y + line - 4), fill=tuple(colour.tolist()))
        dark = colour[3] > 150 and colour[:3].sum() < 420
        pen.text((x, y + 1), word, fill=_PAPER if dark else _INK, font=font)
    return out


def _pillow() -> tuple[Any, Any, Any]:
    """Return Pillow's modules for images and for drawing, and a font."""
    image, draw = pillow()
    from PIL import ImageFont

    return image, draw, ImageFont.load_default(_TEXT)
