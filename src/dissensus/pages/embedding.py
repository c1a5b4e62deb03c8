"""What a page embeds: data as JSON, pictures, the chart library and the content policy.

Names and texts are data, so nothing in them may end a script or open a tag. A page lets only the
scripts run whose hashes it names, and makes no requests. Pictures need Pillow: images that texts
name, made small, and those of pixels, with texts that fit.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from functools import lru_cache
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..base.files import atomic_file, cache_folder
from ..base.storage import as_plain
from ..errors import OptionError, install_command

# These scripts, inline styles and images, no requests.
_POLICY = "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data:"
_EXPORTS = "window.vegaEmbed = vegaEmbed;"
_IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
_ENDINGS = (".png", ".jpg", ".jpeg", ".gif")
_MAX_BYTES = 100_000  # of an image
_MAX_PATH = 400  # characters
_MAX_ORIGINAL = 50_000_000  # bytes of an image that is made small
_MAX_SIDE = 800  # pixels of one that is drawn on


def as_json(data: Any) -> str:
    r"""Return JSON that can stand inside a page: nothing in it ends a script or opens a tag.

    >>> as_json({"name": "</script><b>", "value": float("nan")})
    '{"name":"\\u003c/script\\u003e\\u003cb\\u003e","value":null}'
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(as_plain(data), ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def fill(
    template: str,
    data: Any = None,
    *,
    scripts: tuple[str, ...] = ("charts.js", "report.js"),
    styles: tuple[str, ...] = ("report.css",),
    charts: bool = False,
    **values: Any,
) -> str:
    """Return a template filled with values, its data, style and scripts.

    Parameters
    ----------
    template
        Name of the template.
    data
        What the script reads, as JSON.
    scripts, styles
        Names of resources.
    charts
        Whether the chart library is needed.
    """
    from jinja2 import Environment, FunctionLoader
    from markupsafe import Markup

    from .terminal import with_flags

    library, code = bundle() if charts else "", "".join(map(resource, scripts))
    digests = [
        hashlib.sha256(code_part.encode()).digest() for code_part in (library, code) if code_part
    ]
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    environment = Environment(
        loader=FunctionLoader(resource), autoescape=True, trim_blocks=True, finalize=with_flags
    )
    environment.filters["with_flags"] = with_flags  # before a part of a note is taken
    return environment.get_template(template).render(
        policy=_POLICY.format(hashes),
        css=Markup("".join(map(resource, styles))),
        bundle=Markup(library),
        script=Markup(code),
        data=Markup(as_json(data)),
        version=__version__,
        **values,
    )


def framed(page: str) -> str:
    """Return a page for a notebook, in a frame that it cannot reach out of."""
    return (
        '<iframe sandbox="allow-scripts allow-downloads allow-popups" '
        f'style="width:100%;height:80vh;border:0" srcdoc="{escape(page, quote=True)}"></iframe>'
    )


@lru_cache
def bundle() -> str:
    """Return the chart library; cached in the user's folder because bundling it is slow."""
    import vl_convert

    cached = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    try:
        return cached.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass
    library = str(vl_convert.javascript_bundle(_EXPORTS)).replace("</script", "<\\/script")
    try:
        with atomic_file(cached) as draft:
            draft.write_text(library, encoding="utf-8")
    except OSError:  # a home that cannot be written to is no reason to fail
        pass
    return library


@lru_cache
def resource(name: str) -> str:
    """Return one of the templates."""
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


# Pictures.


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


def embedded_image(text: str | None, folder: Path | None = None) -> str | None:
    """Return the small image that a text names as a data URL; `None` for other texts.

    Texts are untrusted: a path counts only inside the folder of the data, and only if the file
    begins like an image.

    >>> embedded_image("a nice text") is None
    True
    """
    if text is None:
        return None
    if text.startswith(tuple(f"data:image/{kind};base64," for kind in _IMAGES.values())):
        return text if len(text) <= 2 * _MAX_BYTES else None
    raw = _image_bytes(text, folder, _MAX_BYTES)
    if raw is None:
        return None
    kind = next((kind for magic, kind in _IMAGES.items() if raw.startswith(magic)), None)
    return None if kind is None else f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"


def _image_bytes(text: str, folder: Path | None, most: int) -> bytes | None:
    """Return the content of an image inside a folder, unless it is too large."""
    if folder is None or len(text) > _MAX_PATH or not text.lower().endswith(_ENDINGS):
        return None
    try:
        root = folder.resolve()
        path = (root / text).resolve()
        if not path.is_relative_to(root) or not path.is_file() or path.stat().st_size > most:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


class Picture(NamedTuple):
    """An image to draw on, perhaps smaller than the original, whose size in pixels this is."""

    url: str
    width: int
    height: int


def item_picture(text: str | None, folder: Path | None = None) -> Picture | None:
    """Return the image that a text names, made small; `None` for other texts or without Pillow.

    The same rules hold as for `embedded_image`.
    """
    if text is None:
        return None
    if text.startswith("data:image/") and len(text) <= 2 * _MAX_BYTES:
        raw: bytes | None = _decoded(text)
    else:
        raw = _image_bytes(text, folder, _MAX_ORIGINAL)
    if raw is None or not raw.startswith(tuple(_IMAGES)):
        return None
    try:
        image, _ = pillow()
    except OptionError:
        return None
    try:
        with image.open(io.BytesIO(raw)) as opened:
            width, height = opened.size
            small = opened.convert("RGB")
    except (OSError, ValueError, image.DecompressionBombError):
        return None
    small.thumbnail((_MAX_SIDE, _MAX_SIDE))
    encoded = io.BytesIO()
    small.save(encoded, "JPEG", quality=80)
    data = base64.b64encode(encoded.getvalue()).decode()
    return Picture(f"data:image/jpeg;base64,{data}", width, height)


def _decoded(url: str) -> bytes | None:
    """Return the content of a data URL."""
    try:
        return base64.b64decode(url.partition(",")[2], validate=True)
    except ValueError:
        return None
