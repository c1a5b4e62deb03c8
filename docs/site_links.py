"""Links of the built site: every one inside leads somewhere, and no page fetches from outside."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links, fetched files and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to or fetches."""
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("search", "next", "prev", "canonical"):
            self.fetched.append(found.get("href", ""))
        elif "src" in found:
            self.fetched.append(found["src"])


def broken(site: Path) -> list[str]:
    """Return a line for every dead link inside and everything that is fetched from outside."""
    found = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path: Page(path) for path in found}
    anchors = cache(lambda path: pages[path].anchors if path in pages else set())
    lines = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.fetched:
            if urlsplit(target).scheme in ("http", "https") or target.startswith("//"):
                lines.append(f"{name} fetches {target}")
        for target in (*page.links, *page.fetched):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("//"):
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.exists():
                lines.append(f"{name} links to {target}, which is not there")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in anchors(to):
                lines.append(f"{name} links to {target}, which has no such anchor")
    return lines
