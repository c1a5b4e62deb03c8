"""What is shown about models and people: a page of their own, and a section of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..pages import charts
from ..pages.charts import BLUE, GREY, ORANGE, Figure
from ..pages.page import PageReport
from ..pages.sections import Column, Download, Page, Section, SortableTable, Table
from ..pages.wording import amount, formatted, percent
from . import Judging

_MAX_POINTS = 200  # of the escalation curve
_MAX_CELLS = 40  # judges in a heat map
_MAX_SHARES = 12  # rows of the figure of shares
_WRITTEN = 12  # judges up to which correlations are written into the cells


@dataclass(frozen=True, repr=False)
class JudgingReport(PageReport):
    """A page about models as annotators."""

    judging: Judging
    name: str

    @property
    def seed(self) -> int:  # type: ignore[override]
        """The random seed."""
        return self.judging.seed

    @property
    def sentences(self) -> list[str]:
        """The sentences that a reader should see first, one of every section."""
        sections = self.judging.sections
        leading = [sections[name][0] for name in sections if sections[name] and name != "labels"]
        return [*sections["labels"][:1], *leading]

    def layout(self) -> Page:
        """Return what the page shows."""
        judging = self.judging
        drawn = judging_figures(judging)
        worth, pool = judging.panel, judging.pool
        facts = {
            "models": (str(len(judging.judges)), "judges"),
            "people": (amount(judging.data.people.n_annotators), "replacement"),
            "items": (amount(judging.data.n_items), "check"),
            "with human labels": (amount(judging.n_labels), "rates"),
            "independent judges": (
                formatted(math.nan if worth is None else worth.worth, ".1f"),
                "panel",
            ),
            "people on an item": (
                formatted(pool.worth if pool and pool.learned else math.nan, ".1f"),
                "panel",
            ),
        }
        present = {section.name for section in _sections(judging, drawn)}
        facts = {
            name: (value, at if at in present else "judges") for name, (value, at) in facts.items()
        }
        checks = {} if judging.escalation is None else dict(judging.escalation.table)
        return Page(
            facts,
            _sections(judging, drawn),
            drawn,
            downloads={
                "judges": Download("judges", _columns(judging.tables["judges"])),
                "shares": Download(
                    "shares", _columns(judging.tables["shares"] or judging.tables["means"])
                ),
                "check": Download("items to check", checks),
            },
            terms=("epsilon", "effective", "corrected"),
            method="judge",
            picture="judges" if "judges" in drawn else "",
        )


def judging_section(judging: Judging) -> Section:
    """Return the section of a report where people and models labelled."""
    drawn = judging_figures(judging)
    text = [
        sentence
        for name in ("labels", "replacement", "judges", "rates", "panel", "check")
        for sentence in judging.sections[name]
    ]
    panels: list[list[Table | str]] = [
        [f"models-{name}" for name in row if name in drawn]
        for row in (("judges", "correlation"), ("shares", "escalation"))
    ]
    return Section("models", "Models and people", text, panels=[row for row in panels if row])


def section_figures(judging: Judging) -> dict[str, Figure]:
    """Return the figures of that section, by the names it uses."""
    return {f"models-{name}": figure for name, figure in judging_figures(judging).items()}


def judging_figures(judging: Judging) -> dict[str, Figure]:
    """Return the charts that the data allow."""
    drawn = {
        "judges": _judges_figure(judging),
        "correlation": _correlation_figure(judging),
        "shares": _shares_figure(judging),
        "escalation": _escalation_figure(judging),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _sections(judging: Judging, drawn: Mapping[str, Figure]) -> list[Section]:
    """Return a section for every question that the data have an answer to."""
    sentences = judging.sections
    questions: list[tuple[str, str, list[list[Table | str]], SortableTable | None]] = [
        ("judges", "How good is each judge?", [], _judges_table(judging)),
        ("replacement", "May a model replace an annotator?", [[_replacement_table(judging)]], None),
        ("rates", "What is the true rate?", [["shares"]], _rates_table(judging)),
        ("panel", "What is the panel worth?", [["correlation"]], None),
        ("check", "Which items should people check?", [["escalation"]], None),
        ("pairs", "Biases in pairs", [[_biases_table(judging)]], None),
        ("transport", "Does the correction hold elsewhere?", [[_transport_table(judging)]], None),
    ]
    out = []
    for name, title, panels, table in questions:
        visible = [
            [
                panel
                for panel in row
                if (panel in drawn if isinstance(panel, str) else bool(panel.rows))
            ]
            for row in panels
        ]
        text = [*(sentences["labels"] if name == "judges" else []), *sentences[name]]
        if text or table is not None or any(visible):
            out.append(
                Section(name, title, text, panels=[row for row in visible if row], table=table)
            )
    return out


def _judges_figure(judging: Judging) -> Figure | None:
    """Return the agreement of every judge with a person, and that of two people as a line."""
    rows: list[dict[str, Any]] = [
        {
            "judge": _short(judge.judge),
            "agreement": judge.agreement,
            "low": judge.low,
            "high": judge.high,
        }
        for judge in (*judging.judges, *judging.code)
        if not math.isnan(judge.agreement)
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: -float(row["agreement"]))
    people = [judge.people for judge in judging.judges if not math.isnan(judge.people)]
    names = [str(row["judge"]) for row in rows]
    x = charts.number(
        "agreement", "agreement with a person", axis=charts.PERCENT, scale={"zero": False}
    )
    y: dict[str, Any] = {"field": "judge", "type": "nominal", "title": None, "sort": names}
    y["axis"] = {"labelLimit": 180}
    tooltip = charts.tooltip(judge="", agreement=".1%", low=".1%", high=".1%")
    layers = charts.dots(x, y, tooltip, along="x", color=BLUE)
    words = "Dots are judges, with 95% intervals."
    if people:
        level = float(np.mean(people))
        layers.append(
            {
                "data": {"values": [{"agreement": level, "two": "two people"}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": ORANGE, "size": 2},
                "encoding": {"x": x},
            }
        )
        words += f" The dashed line is the agreement of two people, {percent(level)}."
    spec = charts.chart(rows, height=max(26 * len(rows), 80), layer=layers)
    numbers = [
        (str(row["judge"]), *(percent(float(row[key])) for key in ("agreement", "low", "high")))
        for row in rows
    ]
    return Figure(
        "Judges and people", words, spec, (("judge", "agreement", "low", "high"), *numbers)
    )


def _correlation_figure(judging: Judging) -> Figure | None:
    """Return the correlations of judges' errors as a heat map."""
    panel = judging.panel
    if panel is None or math.isnan(panel.rho) or len(panel.judges) > _MAX_CELLS:
        return None
    names = _distinct(panel.judges)
    cells = [
        {
            "one": names[i],
            "other": names[j],
            "correlation": round(float(panel.correlation[i, j]), 3),
        }
        for i in range(len(names))
        for j in range(len(names))
        if i != j and not math.isnan(panel.correlation[i, j])
    ]
    axis = {
        "labelLimit": 140,
        "ticks": False,
        "domain": False,
        "grid": False,
        "labelOverlap": False,
    }
    place = {
        "type": "nominal",
        "sort": names,
        "scale": {"domain": names},
        "title": None,
        "axis": axis,
    }
    scale = {"domain": [-1, 0, 1], "range": ["#2166ac", "#f7f7f7", "#b2182b"]}
    encoding: dict[str, Any] = {"x": {**place, "field": "one"}, "y": {**place, "field": "other"}}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rect"},
            "encoding": {
                **encoding,
                "color": charts.number("correlation", scale=scale, legend={"title": None}),
                "tooltip": charts.tooltip(one="", other="", correlation=".2f"),
            },
        }
    ]
    if len(names) <= _WRITTEN:
        dark = {
            "condition": {"test": "abs(datum.correlation) > 0.65", "value": "white"},
            "value": "#222",
        }
        text = charts.number("correlation", format=".2f")
        layers.append(
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {**encoding, "text": text, "color": dark},
            }
        )
    size = 32 if len(names) <= _WRITTEN else 18
    spec = charts.chart(cells, height=max(size * len(names), 100), layer=layers)
    words = f"The mean over pairs of judges is {panel.rho:.2f}"
    words += (
        "." if math.isnan(panel.people_rho) else f", over pairs of people {panel.people_rho:.2f}."
    )
    return Figure("Correlation of errors", words, spec)


def _shares_figure(judging: Judging) -> Figure | None:
    """Return shares or means as judged, from people alone, and corrected."""
    rows: list[dict[str, Any]] = []
    share = not judging.means
    for estimate in (judging.shares or judging.means)[:_MAX_SHARES]:
        label = getattr(estimate, "label", "")
        name = _short(" · ".join(filter(None, [estimate.group, label])) or "mean")
        judged = estimate.judge_share if hasattr(estimate, "judge_share") else estimate.judge_mean
        rows += [
            {"what": name, "by": "models", "value": judged, "low": judged, "high": judged},
            {
                "what": name,
                "by": "people",
                "value": estimate.people,
                "low": estimate.people_low,
                "high": estimate.people_high,
            },
            {
                "what": name,
                "by": "corrected",
                "value": estimate.estimate,
                "low": estimate.low,
                "high": estimate.high,
            },
        ]
    rows = [row for row in rows if not math.isnan(float(row["value"]))]
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["what"]) for row in rows))
    x = charts.number("value", "share" if share else "mean", scale={"zero": False})
    if share:
        x["axis"] = charts.PERCENT
    y = {
        "field": "what",
        "type": "nominal",
        "title": None,
        "sort": names,
        "axis": {"labelLimit": 200},
    }
    palette = {"models": GREY, "people": ORANGE, "corrected": BLUE}
    form = ".1%" if share else ".3f"
    tooltip = charts.tooltip(what="", by="", value=form, low=form, high=form)
    layers = charts.dots(x, y, tooltip, along="x")
    for layer in layers:
        layer["encoding"] |= {
            "color": charts.colour("by", palette),
            "yOffset": {"field": "by", "type": "nominal", "sort": [*palette]},
        }
    spec = charts.chart(rows, height=max(44 * len(names), 90), layer=layers)
    written = percent if share else (lambda value: formatted(value, ".3g"))
    numbers = [
        (
            str(row["what"]),
            str(row["by"]),
            *(written(float(row[key])) for key in ("value", "low", "high")),
        )
        for row in rows
    ]
    words = "As the models have it, from human labels alone, and corrected by them; 95% intervals."
    return Figure(
        "Shares" if share else "Means", words, spec, (("", "by", "value", "low", "high"), *numbers)
    )


def _escalation_figure(judging: Judging) -> Figure | None:
    """Return what it adds when people check the most doubtful items first."""
    escalation = judging.escalation
    if escalation is None or len(escalation.items) < 2:
        return None
    total = len(escalation.items)
    at = np.unique(np.linspace(0, total, min(_MAX_POINTS, total + 1)).round().astype(int))
    rows = [
        {"checked": int(k), "gained": float(escalation.gained[k]), "order": "most doubtful first"}
        for k in at
    ]
    rows += [{"checked": k, "gained": k / total, "order": "random order"} for k in (0, total)]
    palette = {"most doubtful first": BLUE, "random order": GREY}
    x = charts.number("checked", "items that a person checked")
    y = charts.share("gained", "part of what all would add")
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line"},
            "encoding": {
                "x": x,
                "y": y,
                "color": charts.colour("order", palette),
                "tooltip": charts.tooltip(checked="", gained=".0%", order=""),
            },
        },
        {
            "data": {
                "values": [
                    {
                        "checked": escalation.enough,
                        "gained": float(escalation.gained[escalation.enough]),
                    }
                ]
            },
            "mark": {"type": "circle", "size": 70, "color": ORANGE},
            "encoding": {"x": x, "y": y},
        },
    ]
    words = (
        f"The dot: after {escalation.enough} of {total} items, 90% of what asking about all would "
        "add."
    )
    return Figure(
        "People check the most doubtful items", words, charts.chart(rows, height=220, layer=layers)
    )


def _judges_table(judging: Judging) -> SortableTable | None:
    judges = (*judging.judges, *judging.code)
    if not judges:
        return None
    kinds = ["model"] * len(judging.judges) + ["code"] * len(judging.code)
    columns = {
        "judge": Column([judge.judge for judge in judges]),
        "kind": Column(kinds),
        "items": Column([judge.n_items for judge in judges], "d"),
        "no answer": Column([judge.missing for judge in judges], percent),
    }
    if not judging.data.numeric:
        columns |= {
            "with a person": Column([judge.agreement for judge in judges], percent),
            "two people": Column([judge.people for judge in judges], percent),
            "accuracy": Column([judge.accuracy for judge in judges], percent),
        }
    columns["kappa"] = Column([judge.kappa for judge in judges], ".2f")
    if judging.data.ordered:
        columns |= {
            "bias": Column([judge.bias for judge in judges], "+.2f"),
            "mean absolute error": Column([judge.absolute_error for judge in judges], ".2f"),
            "correlation": Column([judge.correlation for judge in judges], ".2f"),
        }
    return SortableTable("judge-table", amount(len(judges), "judge"), columns)


def _replacement_table(judging: Judging) -> Table:
    rows = [
        (
            test.judge,
            test.verdict,
            f"{test.winning_rate:.2f}",
            f"{test.advantage:.2f} ({test.low:.2f} to {test.high:.2f})",
            formatted(test.smallest_epsilon, ".2f"),
            percent(test.stability),
        )
        for test in judging.replacement.models
        if test.n_enough > 1
    ]
    heads = [
        "model",
        "verdict",
        "winning rate",
        "advantage",
        "smallest tolerance",
        "resamples that pass",
    ]
    return Table(f"The alternative annotator test, tolerance {judging.epsilon:g}", heads, rows, 2)


def _rates_table(judging: Judging) -> SortableTable | None:
    rows: tuple[Any, ...] = judging.shares or judging.means
    if not rows:
        return None
    share = bool(judging.shares)
    form: Any = percent if share else ".3g"
    judged = "judge_share" if share else "judge_mean"
    columns = {"group": Column([row.group for row in rows])} if len(judging.data.groups) else {}
    if share:
        columns["class"] = Column([row.label for row in rows])
    columns |= {
        "models": Column([getattr(row, judged) for row in rows], form),
        "corrected": Column([row.estimate for row in rows], form),
        "95% interval": Column(
            [_interval(row.low, row.high, share) for row in rows], kind="plain number"
        ),
        "people alone": Column(
            [_interval(row.people_low, row.people_high, share) for row in rows], kind="plain number"
        ),
        "human labels": Column([row.n_labels for row in rows], "d"),
    }
    return SortableTable("rate-table", amount(len(rows), "estimate"), columns)


def _biases_table(judging: Judging) -> Table:
    rows = [
        (
            bias.judge,
            bias.kind,
            f"{100 * bias.estimate:+.0f}",
            f"{100 * bias.low:+.0f} to {100 * bias.high:+.0f}",
            str(bias.n_pairs),
            percent(bias.n_flips / bias.both_orders) if bias.both_orders else "–",
        )
        for bias in judging.pair_biases
        if not bias.problem
    ]
    heads = ["model", "bias", "points", "95% interval", "pairs", "change with the order"]
    return Table("Biases of judges who compare two answers", heads, rows, 2)


def _transport_table(judging: Judging) -> Table:
    rows = [
        (
            transported.group,
            transported.label or "mean",
            "alarm" if transported.alarm else "",
            f"{transported.error:+.3f}",
            f"{transported.low:+.3f} to {transported.high:+.3f}",
            str(transported.n_labels),
        )
        for transported in judging.transport
    ]
    heads = ["group", "of", "", "error", "95% interval", "human labels"]
    return Table("Human labels less the calibration of the reference group", heads, rows, 3)


def _interval(low: float, high: float, share: bool) -> str:
    if math.isnan(low):
        return "–"
    return f"{100 * low:.0f} to {100 * high:.0f}" if share else f"{low:.3g} to {high:.3g}"


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}


def _short(name: str) -> str:
    return name if len(name) <= 32 else f"{name[:31]}…"


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Return short names where they stay different."""
    short = [_short(name) for name in names]
    return short if len(set(short)) == len(short) else list(names)
