"""What stands inside a page: data as JSON, the programme that draws charts, and what is allowed.

Names and texts are data, so nothing in them may end a script or open a tag. A page lets only the
scripts run whose hashes it names, and asks nobody for anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from functools import lru_cache
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import atomic_file
from .._version import __version__

if TYPE_CHECKING:
    from .charts import Figure

__all__ = ["as_json", "bundle", "filled", "framed", "policy", "resource", "shown_charts"]

_EXPORTS = "window.vegaEmbed = vegaEmbed;"


def as_json(data: Any) -> str:
    r"""Return JSON that can stand inside a page: nothing in it ends a script or opens a tag.

    >>> as_json({"name": "</script><b>", "value": math.nan})
    '{"name":"\\u003c/script\\u003e\\u003cb\\u003e","value":null}'
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def policy(*scripts: str) -> str:
    """Return a Content-Security-Policy: these scripts, styles and images inside, no requests."""
    hashes = " ".join(f"'sha256-{_hash(one)}'" for one in scripts if one)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"


def filled(template: str, data: dict[str, Any], **words: Any) -> str:
    """Return a template with its words, and with the data, style and scripts of every page."""
    from jinja2 import Environment, FunctionLoader
    from markupsafe import Markup

    draw, script = bundle() if data["charts"] else "", resource("report.js")
    environment = Environment(loader=FunctionLoader(resource), autoescape=True, trim_blocks=True)
    return environment.get_template(template).render(
        policy=policy(draw, script),
        css=Markup(resource("report.css")),
        bundle=Markup(draw),
        script=Markup(script),
        data=Markup(as_json(data)),
        version=__version__,
        **words,
    )


def shown_charts(charts: dict[str, Figure]) -> dict[str, dict[str, Any]]:
    """Return what a template needs of charts; their script draws them from the data."""
    return {
        name: {
            "title": one.title,
            "words": one.words,
            "head": one.numbers[:1],
            "rows": one.numbers[1:],
        }
        for name, one in charts.items()
    }


def framed(page: str) -> str:
    """Return a page as a part of another, such as a notebook, that it cannot reach out into."""
    return (
        '<iframe sandbox="allow-scripts allow-downloads allow-popups" '
        f'style="width:100%;height:80vh;border:0" srcdoc="{escape(page, quote=True)}"></iframe>'
    )


@lru_cache
def bundle() -> str:
    """Return the programme that draws charts; kept in the user's cache, as making it takes long."""
    import vl_convert

    kept = _cache() / f"vega-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass
    made = str(vl_convert.javascript_bundle(_EXPORTS)).replace("</script", "<\\/script")
    try:
        with atomic_file(kept) as draft:
            draft.write_text(made, encoding="utf-8")
    except OSError:  # a home that cannot be written to is no reason to fail
        pass
    return made


@lru_cache
def resource(name: str) -> str:
    """Return one of the templates."""
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(given) if given else Path.home() / ".cache") / "dissensus"


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _plain(value: Any) -> Any:
    """Return a value for JSON: no NaN."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
