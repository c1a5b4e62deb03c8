"""The pages that are made of what was measured: what was asked, the answer, a picture, tables.

python benchmarks/openings.py            write the committed pages, their pictures and the headlines
python benchmarks/openings.py --check    end with 1 if one of them is not as its tables are

The figures of an answer are read from the tables of its page, never typed: `questions.py` has a
function for each page. Tables are kept as JSON beside the scripts. A few pages are committed, cut
to what fits on two screens; `site_pages` has all of them, whole, for the site.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dissensus.pages.charts import BLUE, GREY, ORANGE, save_chart

__all__ = [
    "Answer",
    "Rows",
    "Tables",
    "bars",
    "curves",
    "intervals",
    "path_of",
    "site_pages",
    "value",
    "write_pages",
]

HOME = Path(__file__).parent
Rows = list[dict[str, str]]
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_FEW = {"tickCount": 4, "format": "~s"}  # of an axis with logarithms
_COMMITTED = ("calibration", "camps", "judge", "methods", "performance")
_MOST_ROWS = 24  # of all tables on a committed page


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

    def __init__(self, stored: Sequence[dict[str, Any]]) -> None:
        self._made = {table["title"]: table["made"] for table in stored}
        self._tables: dict[str, Rows] = {}
        for table in stored:
            columns = _unique(table["columns"])
            rows = [dict(zip(columns, row, strict=False)) for row in table["rows"]]
            self._tables[table["title"]] = rows

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

    def made(self, begin: str) -> dict[str, str]:
        """Return how and when a table was measured."""
        return self._made[self.title(begin)]


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


def path_of(name: str) -> Path | None:
    """Return the file that keeps the tables of a page, if there is one."""
    return next(iter(sorted(HOME.glob(f"*/{name}.json"))), None)


def stored(name: str) -> list[dict[str, Any]]:
    """Return the tables of a page."""
    path = path_of(name)
    return json.loads(path.read_text(encoding="utf-8")) if path else []


def page_of(name: str, most_rows: int | None = None) -> tuple[str, Answer]:
    """Return a page made of its tables, with so many rows of them, and the answer in it."""
    from questions import QUESTIONS

    question, tables = QUESTIONS[name], stored(name)
    answer = question.answer(Tables(tables))
    parts = [
        f"# {name.replace('_', ' ').capitalize()}",
        f"**Asked.** {question.asked}",
        f"**Answer.** {' '.join(answer.sentences)}",
        f"![{answer.caption}](images/{name}.svg)",
        f"**For you.** {answer.meaning}",
        f"Made by the scripts from [{name}.json]({path_of(name).relative_to(HOME)}), not by hand.",
    ]
    rows, section = 0, ""
    for number, table in enumerate(tables):
        rows += len(table["rows"])
        if most_rows is not None and rows > most_rows and number:
            parts.append(f"{len(tables) - number} more tables are in the file named above.")
            break
        if table["section"] != section:
            section, made = table["section"], table["made"]
            changed = " **The source changed while this was measured.**" * made["changed"]
            parts += [
                f"## {section}",
                f"Made by `{made['command']}` on {made['date']}, {made['machine']}.\n"
                f"{made['versions']}; source {made['source']}.{changed}",
            ]
        lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
        if most_rows is not None:
            lines = lines[: most_rows + 2]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts += [f"### {table['title']}", body, *([table["note"]] if table["note"] else [])]
    return "\n\n".join(parts) + "\n", answer


def site_pages(pictures: Path) -> dict[str, str]:
    """Return every page by its name, whole, and draw the pictures into a folder."""
    from questions import QUESTIONS

    pictures.mkdir(parents=True, exist_ok=True)
    texts = {}
    for name in QUESTIONS:
        if path_of(name):
            texts[name], answer = page_of(name)
            save_chart(answer.chart, pictures / f"{name}.svg")
    return texts


def write_pages(name: str) -> None:
    """Write what is made of the tables of a page: itself if it is committed, and the headlines."""
    from questions import QUESTIONS

    if name not in QUESTIONS:
        print(f"{name} has no question in questions.py, so it has no page")
        return
    if name in _COMMITTED:
        text, answer = page_of(name, _MOST_ROWS)
        (HOME / f"{name.upper()}.md").write_text(text, encoding="utf-8")
        save_chart(answer.chart, HOME / "images" / f"{name}.svg")
    summary = HOME / "README.md"
    summary.write_text(with_headlines(summary), encoding="utf-8")


def with_headlines(summary: Path) -> str:
    """Return the summary with a line for every page: question, figure, date, command."""
    from questions import QUESTIONS

    lines = ["| question | figure | date | `benchmarks/run.py` |", "|---|---|---|---|"]
    for name, question in QUESTIONS.items():
        if path_of(name):
            tables = Tables(stored(name))
            answer = question.answer(tables)
            made = tables.made(answer.source)
            asked = (
                f"[{question.asked}]({name.upper()}.md)" if name in _COMMITTED else question.asked
            )
            words = made["command"].removeprefix("python benchmarks/run.py ")
            lines.append(f"| {asked} | {answer.headline} | {made['date']} | `{words}` |")
    block = "<!-- headlines -->\n" + "\n".join(lines) + "\n<!-- end of headlines -->\n"
    old = re.compile(r"<!-- headlines -->\n.*?<!-- end of headlines -->\n", re.DOTALL)
    return old.sub(lambda _: block, summary.read_text(encoding="utf-8"))


def stale() -> list[str]:
    """Return the committed pages that are not as their tables are."""
    summary = HOME / "README.md"
    found = [] if with_headlines(summary) == summary.read_text(encoding="utf-8") else ["README.md"]
    for name in _COMMITTED:
        page, picture = HOME / f"{name.upper()}.md", HOME / "images" / f"{name}.svg"
        text, _ = page_of(name, _MOST_ROWS)
        if not (page.exists() and picture.exists() and page.read_text(encoding="utf-8") == text):
            found.append(page.name)
    return found


def main() -> None:
    """Write the committed pages, or compare them."""
    sys.modules["openings"] = sys.modules["__main__"]  # one module, also for questions.py
    if "--check" in sys.argv:
        found = stale()
        print("\n".join(f"{name}: run python benchmarks/openings.py" for name in found))
        sys.exit(bool(found))
    for name in _COMMITTED:
        write_pages(name)


if __name__ == "__main__":
    main()
