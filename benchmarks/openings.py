"""How every page of this folder begins: what was asked, the answer, a picture, what it means.

python benchmarks/openings.py            write all openings, pictures and the headlines again
python benchmarks/openings.py --check    end with 1 if a page has another opening than its tables

The figures of an answer are read from the tables of its page, never typed: `questions.py` has a
function for each page. A script that writes a section calls `write_opening` for its page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dissensus.pages.charts import BLUE, GREY, ORANGE, save_chart

__all__ = ["Answer", "Rows", "Tables", "bars", "curves", "intervals", "value", "write_opening"]

HOME = Path(__file__).parent
Rows = list[dict[str, str]]
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_FEW = {"tickCount": 4, "format": "~s"}  # of an axis with logarithms
_BY_HAND = "Written by the scripts in this folder; not by hand.\n"


@dataclass(frozen=True)
class Answer:
    """What a page answers.

    Attributes
    ----------
    sentences
        Three of them.
    chart, caption
        The picture, and what it shows.
    meaning
        What follows for a user.
    headline
        The figure that stands for the page, in a few words.
    source
        How the title of the table with that figure begins; the page's first table by default.
    """

    sentences: tuple[str, str, str]
    chart: dict[str, Any]
    caption: str
    meaning: str
    headline: str
    source: str = ""


@dataclass(frozen=True)
class Question:
    """What a page was asked, and who answers it."""

    asked: str
    answer: Callable[[Tables], Answer]


class Tables:
    """The tables of a page, by how their titles begin."""

    def __init__(self, text: str) -> None:
        self._tables: dict[str, Rows] = {}
        self._commands: dict[str, str] = {}
        for section in text.split("\nMade by `")[1:]:
            command = section.partition("`")[0]
            for part in section.split("\n### ")[1:]:
                title, _, body = part.partition("\n")
                lines = [line for line in body.splitlines() if line.startswith("| ")]
                cells = [[c.strip() for c in line.strip()[2:-2].split(" | ")] for line in lines]
                columns = _unique(cells[0])
                rows = [dict(zip(columns, row, strict=False)) for row in cells[2:]]
                self._tables[title], self._commands[title] = rows, command

    def title(self, begin: str) -> str:
        """Return the title that begins so."""
        for known in self._tables:
            if known.startswith(begin):
                return known
        raise KeyError(f"no table {begin!r}; there are {', '.join(self._tables)}")

    def __getitem__(self, begin: str) -> Rows:
        """Return the rows of the first table whose title begins so."""
        return self._tables[self.title(begin)]

    def __contains__(self, begin: str) -> bool:
        """Return whether there is such a table."""
        return any(known.startswith(begin) for known in self._tables)

    def command(self, begin: str) -> str:
        """Return the command that measured a table."""
        return self._commands[self.title(begin)]


def _unique(names: Iterable[str]) -> list[str]:
    """Return names, with a number where one occurs again."""
    found: list[str] = []
    for name in names:
        found.append(f"{name} {found.count(name) + 1}" if name in found else name)
    return found


def value(cell: str) -> float:
    """Return the first number of a cell; NaN where there is none.

    >>> value("0.903 ± 0.007"), value("–")
    (0.903, nan)
    """
    found = _NUMBER.search(cell.replace("−", "-"))
    return float(found[0]) if found else float("nan")


def pick(rows: Rows, **wanted: str) -> dict[str, str]:
    """Return the first row with these cells; `_` in a name stands for a blank."""
    for row in rows:
        if all(row.get(name.replace("_", " ")) == cell for name, cell in wanted.items()):
            return row
    raise KeyError(f"no row with {wanted}")


# Charts: a few kinds are enough, and all look alike.


def _chart(rows: Sequence[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    look = {
        "view": {"stroke": None},
        "axis": {"labelLimit": 320, "labelFontSize": 12, "titleFontSize": 12, "domain": False},
        "legend": {"orient": "top", "title": None, "labelFontSize": 12, "labelLimit": 320},
    }
    return {"background": "white", "data": {"values": list(rows)}, "config": look, **spec}


def bars(
    rows: Sequence[tuple[str, float]],
    axis: str,
    *,
    ours: Iterable[str] = (),
    log: bool = False,
    zero: bool = True,
    sort: bool = False,
) -> dict[str, Any]:
    """Return a bar for every name; those of ours in blue."""
    ours = list(ours)
    data = [{"name": name, "value": one, "ours": name in ours} for name, one in rows if one == one]
    scale = {"type": "log"} if log else {"zero": zero}
    base = {"x2": {"datum": 1}} if log else {}  # a ratio of one
    mark = "bar" if zero or log else {"type": "point", "filled": True, "size": 90, "opacity": 1}
    return _chart(
        data,
        width=440,
        height={"step": 22},
        mark=mark,
        encoding={
            "y": {
                "field": "name",
                "type": "nominal",
                "title": None,
                "sort": "-x" if sort else None,
            },
            "x": {
                "field": "value",
                "type": "quantitative",
                "title": axis,
                "scale": scale,
                "axis": _FEW if log else {},
            },
            "color": {"condition": {"test": "datum.ours", "value": BLUE}, "value": GREY},
            **base,
        },
    )


def curves(
    rows: Sequence[tuple[str, float, float]], x: str, y: str, *, log: str = "", zero: bool = False
) -> dict[str, Any]:
    """Return a line for every series of (series, x, y); `log` names the axes with logarithms."""
    data = [{"series": name, "x": a, "y": b} for name, a, b in rows if a == a and b == b]
    names = list(dict.fromkeys(row["series"] for row in data))
    scales = {one: {"type": "log"} if one in log else {"zero": zero} for one in "xy"}
    colours = [BLUE, ORANGE, "#66a182", "#8a63b8", GREY, "#d1495b"][: len(names)]
    return _chart(
        data,
        width=440,
        height=260,
        mark={"type": "line", "point": True},
        encoding={
            one: {
                "field": one,
                "type": "quantitative",
                "title": title,
                "scale": scales[one],
                "axis": _FEW if one in log else {},
            }
            for one, title in (("x", x), ("y", y))
        }
        | {
            "color": {
                "field": "series",
                "type": "nominal",
                "scale": {"domain": names, "range": colours},
            }
        },
    )


def intervals(
    rows: Sequence[tuple[str, float, float, float]], axis: str, ours: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a dot with its interval for every (name, value, low, high)."""
    ours = list(ours)
    data = [
        {"name": n, "value": v, "low": low, "high": high, "ours": n in ours}
        for n, v, low, high in rows
    ]
    y = {"field": "name", "type": "nominal", "title": None, "sort": None}
    colour = {"condition": {"test": "datum.ours", "value": BLUE}, "value": GREY}
    scale = {"zero": False}
    return _chart(
        data,
        width=440,
        height={"step": 22},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "x": {"field": "low", "type": "quantitative", "title": axis, "scale": scale},
                    "x2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": {"field": "value", "type": "quantitative", "scale": scale},
                    "color": colour,
                },
            },
        ],
    )


# Writing


def with_opening(page: Path) -> tuple[str, Answer]:
    """Return a page with the opening that its tables ask for, and the answer in it."""
    from questions import QUESTIONS

    text = page.read_text(encoding="utf-8")
    question = QUESTIONS[page.name]
    answer = question.answer(Tables(text))
    block = (
        f"<!-- opening -->\n**Asked.** {question.asked}\n\n"
        f"**Answer.** {' '.join(answer.sentences)}\n\n"
        f"![{answer.caption}](images/{page.stem.lower()}.svg)\n\n*{answer.caption}*\n\n"
        f"**For you.** {answer.meaning}\n<!-- end of opening -->\n\n"
    )
    old = re.compile(r"<!-- opening -->\n.*?<!-- end of opening -->\n\n", re.DOTALL)
    return old.sub("", text).replace(_BY_HAND, block + _BY_HAND, 1), answer


def write_opening(page: Path) -> None:
    """Write the opening of a page and its picture, where its question is known."""
    from questions import QUESTIONS

    if page.name not in QUESTIONS:
        print(f"{page.name} has no question in questions.py, so it has no opening")
        return
    text, answer = with_opening(page)
    page.write_text(text, encoding="utf-8")
    picture = page.parent / "images" / f"{page.stem.lower()}.svg"
    picture.parent.mkdir(exist_ok=True)
    save_chart(answer.chart, picture)
    summary = page.parent / "README.md"
    if summary.exists():
        summary.write_text(with_headlines(summary), encoding="utf-8")


def with_headlines(summary: Path) -> str:
    """Return the summary with a line for every page: question, figure, command."""
    from questions import QUESTIONS

    lines = ["| question | figure | page | measured by |", "|---|---|---|---|"]
    for name, question in QUESTIONS.items():
        page = summary.parent / name
        if page.exists():
            tables = Tables(page.read_text(encoding="utf-8"))
            answer = question.answer(tables)
            command = tables.command(answer.source)
            place = f"[{page.stem}]({name})"
            lines.append(f"| {question.asked} | {answer.headline} | {place} | `{command}` |")
    block = "<!-- headlines -->\n" + "\n".join(lines) + "\n<!-- end of headlines -->\n"
    old = re.compile(r"<!-- headlines -->\n.*?<!-- end of headlines -->\n", re.DOTALL)
    return old.sub(lambda _: block, summary.read_text(encoding="utf-8"))


def stale() -> list[str]:
    """Return the pages whose opening is not that of their tables, or is missing."""
    from questions import QUESTIONS

    summary = HOME / "README.md"
    found = [] if with_headlines(summary) == summary.read_text(encoding="utf-8") else ["README.md"]
    for page in sorted(HOME.glob("*.md")):
        picture = HOME / "images" / f"{page.stem.lower()}.svg"
        if page == summary or (
            page.name in QUESTIONS
            and picture.exists()
            and with_opening(page)[0] == page.read_text(encoding="utf-8")
        ):
            continue
        found.append(page.name)
    return found


def main() -> None:
    """Write all openings, or compare them."""
    sys.modules["openings"] = sys.modules["__main__"]  # one module, also for questions.py
    if "--check" in sys.argv:
        found = stale()
        print("\n".join(f"{name}: run python benchmarks/openings.py" for name in found))
        sys.exit(bool(found))
    for page in sorted(HOME.glob("*.md")):
        if page.name != "README.md":
            write_opening(page)


if __name__ == "__main__":
    main()
