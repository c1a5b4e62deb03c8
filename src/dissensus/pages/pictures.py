"""What pictures share: Pillow, images from pixels, and texts that fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._extras import install_command
from ..errors import OptionError


def pillow() -> tuple[Any, Any]:
    """Return Pillow's modules `Image` and `ImageDraw`; without Pillow, say how to get it."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise OptionError(f"images need Pillow: {install_command('deep')}") from None
    return Image, ImageDraw


def as_image(pixels: npt.NDArray[Any], side: int) -> Any:
    """Return pixels from 0 to 1, with channels first or last, as an image."""
    image, _ = pillow()
    pixels = pixels if pixels.shape[2] in (1, 3) else pixels.transpose(1, 2, 0)
    colours = np.broadcast_to(pixels, (*pixels.shape[:2], 3))
    return enlarged(image.fromarray((colours.clip(0, 1) * 255).round().astype(np.uint8)), side)


def enlarged(image: Any, side: int) -> Any:
    """Return an image as large as fits into a square; pixels of small images stay sharp."""
    factor = side // max(image.size)
    return image.resize((image.width * factor, image.height * factor), 0) if factor > 1 else image


def shorten(text: str, width: float, font: Any) -> str:
    """Return as much of a text as fits."""
    text = " ".join(text.split())
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(f"{text}…") > width:
        text = text[:-1]
    return f"{text}…"
