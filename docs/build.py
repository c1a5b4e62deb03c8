"""Build the site: pages of docs/ and benchmarks/, the gallery and the API, into docs/_build/html.

python docs/build.py              needs the extra `docs`; a warning is an error

Pages are gathered in docs/_build/pages: those of docs/, those that docs/generate.py makes, and
benchmarks/ beside them, with links between the folders written again. The site is plain files,
which any server can serve.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

import method_pictures
from dissensus import __version__
from generate import PICTURE, pages
from site_links import broken

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from openings import site_pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BENCHMARKS = ROOT / "benchmarks"
PAGES = DOCS / "_build" / "pages"
HTML = DOCS / "_build" / "html"
# Pages from elsewhere: where they are, and where they are on the site.
OTHERS = {ROOT / "CHANGELOG.md": "changes.md", ROOT / "CONTRIBUTING.md": "contributing.md"}
FOLDERS = ("_build", "_static", "_templates", "__pycache__")
LINK = re.compile(r"(\]\()([^)\s#:]+\.(?:md|json))((?:#[^)\s]*)?\))")


def on_site(path: Path) -> Path | None:
    """Return where a file of the repository is on the site, relative to its root."""
    if path in OTHERS:
        return Path(OTHERS[path])
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    if path.is_relative_to(BENCHMARKS):
        if path.suffix == ".json":  # tables: the page that is made of them
            return Path("benchmarks", f"{path.stem.upper()}.md")
        return path.relative_to(ROOT)
    return None


def with_links(text: str, path: Path) -> str:
    """Return a page with links between folders as they are on the site."""
    own = on_site(path)

    def moved(match: re.Match[str]) -> str:
        target = on_site((path.parent / match[2]).resolve())
        if own is None or target is None:
            return match[0]
        up = [".."] * (len(own.parts) - 1)
        return f"{match[1]}{'/'.join([*up, *target.parts])}{match[3]}"

    return LINK.sub(moved, text)


def with_site_parts(text: str, page: str, pictures: dict[str, str]) -> str:
    """Return a page with what only the site has: pictures of methods, the list of benchmarks."""
    if page in pictures:
        name = Path(page).stem
        text = text.replace(
            PICTURE, f"![What was measured of {name}]({name}.svg)\n\n{pictures[page]}"
        )
    if page == "benchmarks/README.md":
        text += tree(":glob:\n\n[A-Z]*")
    if page == "more.md" and unlisted():
        text += tree("\n" + "\n".join(unlisted()))
    return text


def tree(inside: str) -> str:
    """Return pages for the site's navigation."""
    return f"\n```{{toctree}}\n:hidden:\n{inside}\n```\n"


def unlisted() -> list[str]:
    """Return the pages of docs/ that no page lists: they are below "More"."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    trees = re.findall(
        r"^```{toctree}\n(.*?)^```", "\n".join(texts.values()), re.DOTALL | re.MULTILINE
    )
    listed = {line.strip() for one in trees for line in one.splitlines()}
    return sorted(name for name in texts if name not in {*listed, "index", "README"})


def gather() -> None:
    """Copy the pages that have changed, and remove those that are gone."""
    sources = [p for p in DOCS.rglob("*") if p.suffix in (".md", ".png", ".svg", ".rst")]
    sources = [p for p in sources if p.relative_to(DOCS).parts[0] not in FOLDERS]
    sources += [BENCHMARKS / "README.md", *OTHERS]
    pictures = method_pictures.draw(PAGES)
    contents = {path: path.read_bytes() for path in sources}
    contents |= {DOCS / name: text.encode() for name, text in pages().items()}
    measured = site_pages(PAGES / "benchmarks" / "images")
    contents |= {
        BENCHMARKS / f"{name.upper()}.md": text.encode() for name, text in measured.items()
    }
    wanted = {}
    for path, content in contents.items():
        target = on_site(path)
        if path.suffix == ".md":
            text = with_links(content.decode(), path)
            content = with_site_parts(text, target.as_posix(), pictures).encode()
        wanted[PAGES / target] = content
    for path, content in wanted.items():
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for path in PAGES.rglob("*.md"):
        if path not in wanted:
            path.unlink()
    for written in ("gallery", "api"):  # by Sphinx
        shutil.rmtree(PAGES / written, ignore_errors=True)


def main() -> int:
    """Build the site."""
    gather()
    shutil.rmtree(HTML, ignore_errors=True)
    arguments = ["-b", "html", "-W", "--keep-going", "-q", "-c", str(DOCS), str(PAGES), str(HTML)]
    failed = sphinx(arguments)
    if not failed:
        versions = [{"version": __version__, "name": __version__, "url": "./", "preferred": True}]
        (HTML / "_static" / "versions.json").write_text(json.dumps(versions), encoding="utf-8")
        dead = broken(HTML)
        print("\n".join(dead))
        failed = int(bool(dead))
        (HTML / ".nojekyll").touch()  # else GitHub leaves out folders that begin with "_"
        print(f"The site is in {HTML.relative_to(ROOT)}: open index.html in a browser.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
