"""Pictures of methods, from the tables in benchmarks/: what was measured, with one method marked.

`draw(folder)` writes <family>/<name>.svg for every method that a table has, and returns the text
beside each. Strategies of simulation are drawn from a crowd that they simulate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from dissensus import aggregate, evaluate, simulate
from dissensus.cli.methods import Entry, outlines
from generate import where
from measurements import Measured, number, tables

MARKED, OTHER, TEXT = "#1f5f8b", "#9aa5b1", "#3e4c59"
SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "dissensus", "font.size": 9}
# Rows of the tables whose names are not those of the registry.
NAMES = {
    "shared head": "linear",
    "consensus × confusion": "confused-consensus",
    "base": "qumatl",
    "embeddings E_a": "annotator-embedding",
    "embeddings E_n": "annotator-embedding",
    "embeddings, both": "annotator-embedding",
    "protonet-mv": "prototypes",
    "protonet-ds": "prototypes",
}
CROWD = ("madl", "doctor-net")  # methods of learning, called `crowd` where they predict annotators
Drawn = tuple[Figure, str]


def draw(folder: Path) -> dict[str, str]:
    """Write the pictures, and return page → text; without those that nothing was measured of."""
    mpl.rcParams.update(SETTINGS)
    texts = {}
    for entry in outlines():
        picture = FAMILIES[entry.family](entry)
        if picture:
            figure, text = picture
            name = where(entry).removesuffix(".md")
            path = folder / f"{name}.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
            texts[f"{name}.md"] = text
    return texts


def base(row: str) -> str:
    """Return the method that a row is about."""
    if row in NAMES:
        return NAMES[row]
    return re.split(r"[\[( ,]", row)[0]


def clean(axes: mpl.axes.Axes) -> None:
    """Leave out the frame."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=TEXT, length=0)
    axes.grid(axis="x", color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)


def ranking(
    values: dict[str, float], method: str, label: str, *, low: bool = False
) -> Figure | None:
    """Return a chart of all rows, the best on top, with those of a method marked."""
    if not any(base(name) == method for name in values):
        return None
    names = sorted(values, key=values.__getitem__, reverse=low)
    figure = Figure(figsize=(6.4, 0.6 + 0.19 * len(names)))
    axes = figure.subplots()
    for y, name in enumerate(names):
        mine = base(name) == method
        colour = MARKED if mine else OTHER
        axes.plot(values[name], y, "o", color=colour, markersize=7 if mine else 4.5)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    for tick, name in zip(axes.get_yticklabels(), names, strict=True):
        if base(name) == method:
            tick.set(fontweight="bold", color=MARKED)
    clean(axes)
    axes.set_xlabel(label, color=TEXT)
    return figure


def of_classes(entry: Entry) -> Drawn | None:
    """Return accuracy by situation, beside the majority vote."""
    if entry.name == "judge-pool":
        return of_judge_pool()
    table = tables("situations")["Accuracy in percent, by situation"]
    if entry.name not in {row[0] for row in table.rows}:
        return None
    names = table.columns[1:]
    mine = [number(cell) for cell in table.of(entry.name)[1:]]
    votes = [number(cell) for cell in table.of("majority")[1:]]
    best = [max(filter(None, (number(r[k + 1]) for r in table.rows))) for k in range(len(names))]
    figure = Figure(figsize=(6.4, 0.7 + 0.3 * len(names)))
    axes = figure.subplots()
    y = np.arange(len(names))[::-1]
    axes.plot(best, y, "|", color=TEXT, markersize=11, label="best of all methods")
    axes.plot(votes, y, "o", color=OTHER, markersize=6, label="majority")
    for at, own, vote in zip(y, mine, votes, strict=True):
        if own is not None:
            axes.plot([vote, own], [at, at], color=MARKED, linewidth=1.2)
    own = [np.nan if one is None else one for one in mine]
    axes.plot(own, y, "o", color=MARKED, markersize=8, label=entry.name)
    axes.set_yticks(y, names)
    axes.set_xlabel("right labels in percent, simulated crowds", color=TEXT)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    clean(axes)
    return figure, (
        f"Right labels by `{entry.name}` in ten simulated situations, beside the majority vote "
        "and the best of "
        "all methods. [All figures](../../benchmarks/SITUATIONS.md)."
    )


def of_judge_pool() -> Drawn:
    """Return people, models and both, by set."""
    table = tables("judge")["The pool against held-out people"]
    figure = Figure(figsize=(6.4, 0.8 + 0.24 * len(table.rows)))
    axes = figure.subplots()
    y = np.arange(len(table.rows))[::-1]
    for what, colour in (("people", OTHER), ("models", "#e0a458"), ("pool", MARKED)):
        at = table.columns.index(f"{what}: accuracy")
        axes.plot([float(row[at]) for row in table.rows], y, "o", color=colour, label=what)
    axes.set_yticks(y, [f"{row[0]}, {row[1]} seen" for row in table.rows], fontsize=8)
    axes.set_xlabel("share of held-out people who gave the label", color=TEXT)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    clean(axes)
    return figure, (
        "Labels of people, of models and of both together, scored by people who were not seen. "
        "[All figures](../../benchmarks/JUDGE.md)."
    )


def of_numbers(entry: Entry) -> Drawn | None:
    """Return errors by situation."""
    table = tables("situations")["Root mean squared error of numbers, by situation"]
    names = [row[0] for row in table.rows]
    figure = Figure(figsize=(6.4, 0.7 + 0.24 * len(names)))
    for at, situation in enumerate(table.columns[1:]):
        axes = figure.add_subplot(1, len(table.columns) - 1, at + 1)
        values = table.values(situation)
        for y, name in enumerate(names[::-1]):
            colour = MARKED if base(name) == entry.name else OTHER
            axes.barh(y, values[name], color=colour, height=0.65)
        axes.set_yticks(range(len(names)), names[::-1] if at == 0 else [""] * len(names))
        axes.set_title(situation, fontsize=9, color=TEXT)
        clean(axes)
    return figure, (
        "Root mean squared error in three simulated situations: shorter is better. "
        "[All figures](../../benchmarks/SITUATIONS.md)."
    )


def by_method(table: Measured, column: str) -> dict[str, float]:
    """Return the mean of a column by method, where the first column is a set."""
    at, method = table.columns.index(column), table.columns.index("method")
    found: dict[str, list[float]] = {}
    for row in table.rows:
        value = number(row[at])
        if value is not None:
            found.setdefault(row[method], []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


ANSWERS = (
    ("Spans: ner_conll", "F1", False),
    ("Boxes: boxes_people", "F1 at .5", False),
    ("Masks: masks_cells", "mean IoU", False),
    ("Texts", "word error rate", True),
    ("Comparisons, held out", "log loss", True),
    ("Sets: relations_sets, held out", "log loss an answer", True),
)


def of_answers(entry: Entry) -> Drawn | None:
    """Return the table of the kind of answers that a method is for."""
    method = "rover" if entry.name == "auto" else entry.name
    for title, column, low in ANSWERS:
        values = by_method(tables("answers")[title], column)
        figure = ranking(
            values, method, f"{column}, {'lower' if low else 'higher'} is better", low=low
        )
        if figure:
            what = title.split(":")[0].split(",")[0].lower()
            return figure, (
                f"Measured on {what}: {column}, the best on top. "
                "[All figures](../../benchmarks/ANSWERS.md)."
            )
    if entry.name == "per-option":
        drawn = simulate("sets", n_items=150, n_annotators=6, seed=1)
        methods = ("joint-sets", "per-option", "medoid")
        fits = {name: aggregate(drawn.answers, name) for name in methods}
        values = {name: evaluate(fit, drawn.truth).scores["f1"].value for name, fit in fits.items()}
        figure = ranking(values, entry.name, "F1 of options, simulated sets")
        return figure and (figure, "F1 on one simulated crowd of six annotators and 150 items.")
    return of_rankings(entry)


def of_rankings(entry: Entry) -> Drawn | None:
    """Return how far simulated scores are recovered."""
    drawn = simulate("comparisons[things=12]", n_items=150, n_annotators=6, seed=1)
    values = {}
    for method in ("bradley-terry", "plackett-luce", "borda"):
        items = aggregate(drawn.answers, method).items
        true = [drawn.truth[thing] for thing in items["thing"].tolist()]
        values[method] = float(stats.kendalltau(items["score"], true).statistic)
    figure = ranking(values, entry.name, "Kendall's tau with the true order")
    return figure and (
        figure,
        "Kendall's tau of the order of twelve things with the true one, from 150 simulated pairs "
        "that six annotators "
        "compared.",
    )


def of_learning(entry: Entry) -> Drawn | None:
    """Return the mean accuracy on three sets."""
    page = tables("learning")
    sets = [
        page[f"Learning on {name}"].values("accuracy") for name in ("labelme", "music", "sentiment")
    ]
    common = set.intersection(*map(set, sets))
    values = {name: 100 * float(np.mean([one[name] for one in sets])) for name in common}
    figure = ranking(values, entry.name, "right in percent, mean of labelme, music and sentiment")
    return figure and (
        figure,
        "Accuracy on unseen items, mean of three public sets, with true labels as the ceiling. "
        "[All figures](../../benchmarks/LEARNING.md).",
    )


def of_tendency(entry: Entry) -> Drawn | None:
    """Return the log loss of predicted annotators."""
    if entry.name == "query":
        values = tables("tendency")["Images of nine patches"].values("accuracy")
        figure = ranking(values, "query", "right labels of each annotator, simulated images")
        return figure and (
            figure,
            "Accuracy of predicted labels where every annotator attends to another patch of a "
            "simulated image. "
            "[All figures](../../benchmarks/TENDENCY.md).",
        )
    values = tables("tendency")["lewidi_hs_brexit"].values("log loss")
    if entry.name == "crowd":
        values = {f"crowd[{n}]" if n in CROWD else n: value for n, value in values.items()}
    figure = ranking(
        values, entry.name, "log loss of each annotator's labels, lower is better", low=True
    )
    return figure and (
        figure,
        "Log loss of predicted labels of six annotators on unseen tweets (HS-Brexit), the best "
        "on top. "
        "[Six sets](../../benchmarks/TENDENCY.md).",
    )


def of_recovery(entry: Entry) -> Drawn | None:
    """Return the distance to the annotators' shares."""
    page = tables("recovering")
    column, text = "USQ", "unbiased squared distance to the shares of annotators, lower is better"
    for title in ("All sets together", "SeedBERT on hs_brexit"):
        figure = ranking(page[title].values(column), entry.name, text, low=True)
        if figure:
            where = "mean of six sets" if title.startswith("All") else "HS-Brexit"
            return figure, (
                f"Distance of recovered distributions to those of annotators, {where}, the best "
                "on top. "
                "[All figures](../../benchmarks/RECOVERING.md)."
            )
    return None


def of_small_tasks(entry: Entry) -> Drawn | None:
    """Return the accuracy on few-shot tasks."""
    page = tables("meta")
    for title in ("Network: clean; spammers: independent", "Other ways to learn a small task"):
        values = page[title].values("mean")
        figure = ranking(values, entry.name, "share of right labels of queries")
        if figure:
            return figure, (
                "Right labels on few-shot tasks of handwritten characters with noisy annotators "
                "(Omniglot), the "
                "best on top. [All figures](../../benchmarks/META.md)."
            )
    table = page["Items on which every annotator guesses"]
    at = table.columns.index("adapter")
    values = {f"{row[at]}, {row[0]} hard": float(number(row[at + 1]) or 0) for row in table.rows}
    figure = ranking(values, entry.name, "share of right labels of queries")
    return figure and (
        figure,
        "Right labels where every annotator guesses on a share of the items. "
        "[All figures](../../benchmarks/META.md).",
    )


def of_policies(entry: Entry) -> Drawn | None:
    """Return accuracy against labels per item."""
    figure = Figure(figsize=(6.6, 2.5))
    for at, crowd in enumerate(("hammer-spammer", "glad", "rte")):
        table = tables("next")[f"{crowd}: accuracy in % after so many labels per item"]
        axes = figure.add_subplot(1, 3, at + 1)
        for row in table.rows:
            mine = row[0] == entry.name
            x = [float(one) for one in table.columns[1:]]
            y = [number(cell) if number(cell) is not None else np.nan for cell in row[1:]]
            axes.plot(x, y, color=MARKED if mine else OTHER, linewidth=2.4 if mine else 1.1)
        axes.set_title(crowd, fontsize=9, color=TEXT)
        axes.set_xlabel("labels per item", color=TEXT, fontsize=8)
        clean(axes)
        axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
    return figure, (
        f"Right labels in percent by the number of labels per item: `{entry.name}` in blue, "
        "other policies in "
        "grey, on two simulated crowds and one real one. [All figures](../../benchmarks/NEXT.md)."
    )


def of_simulation(entry: Entry) -> Drawn | None:
    """Return a crowd that a strategy draws."""
    if entry.name in ("objects", "masks", "sets", "comparisons"):
        return of_simulated_answers(entry)
    figure = Figure(figsize=(6.4, 2.6))
    if entry.name in ("numeric", "peer-grading"):
        drawn = simulate(entry.name, n_items=60, n_annotators=5, seed=1)
        axes = figure.subplots()
        numbers = drawn.annotations
        for k in range(5):
            own = numbers.annotator == k
            axes.plot(drawn.truth[numbers.item[own]], numbers.value[own], ".", markersize=5)
        axes.plot(*[[min(drawn.truth), max(drawn.truth)]] * 2, color=TEXT, linewidth=0.8)
        axes.set_xlabel("true value", color=TEXT)
        axes.set_ylabel("answer", color=TEXT)
        return (
            figure,
            "A simulated crowd: answers of five annotators, a colour each, against true values.",
        )
    matrices = {}
    if entry.name == "given-matrices":
        matrices = {"matrices": np.stack([np.full((4, 4), 0.1) + 0.6 * np.eye(4)] * 30)}
    drawn = simulate(entry.name, n_items=400, n_annotators=30, n_classes=4, seed=1, **matrices)
    a = drawn.annotations
    right = np.bincount(a.annotator, a.label == np.asarray(drawn.truth)[a.item]) / np.bincount(
        a.annotator
    )
    left, other = figure.subplots(1, 2)
    left.bar(range(30), np.sort(right)[::-1], color=MARKED)
    left.set_xlabel("annotator", color=TEXT)
    left.set_ylabel("share of right labels", color=TEXT)
    left.set_ylim(0, 1)
    counts = np.zeros((4, 4))
    np.add.at(counts, (np.asarray(drawn.truth)[a.item], a.label), 1)
    other.imshow(counts / counts.sum(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
    other.set_xlabel("given class", color=TEXT)
    other.set_ylabel("true class", color=TEXT)
    other.set_xticks(range(4))
    other.set_yticks(range(4))
    figure.tight_layout()
    return figure, (
        "A simulated crowd of thirty, all of whom label 400 items: the share of right labels of "
        "each annotator, and "
        "the confusion of all together."
    )


def of_simulated_answers(entry: Entry) -> Drawn:
    """Return how far simulated annotators agree with the truth."""
    figure = Figure(figsize=(6.4, 2.4))
    axes = figure.subplots()
    drawn = simulate(entry.name, n_items=60, n_annotators=8, seed=1)
    answers = drawn.answers
    first, second = answers.within_item_pairs()
    axes.hist(answers.distance(first, second), bins=20, color=MARKED)
    axes.set_xlabel("distance of two answers to the same item", color=TEXT)
    axes.set_ylabel("pairs", color=TEXT)
    return (
        figure,
        "A simulated crowd of eight on 60 items: distances between answers to the same item.",
    )


FAMILIES: dict[str, Callable[[Entry], Drawn | None]] = {
    "aggregate": of_classes,
    "aggregate answers": of_answers,
    "aggregate numbers": of_numbers,
    "aggregate-deep": of_learning,
    "tendency fit": of_tendency,
    "recover fit": of_recovery,
    "meta": of_small_tasks,
    "simulate": of_simulation,
    "next": of_policies,
}


def without() -> Iterator[str]:
    """Yield the methods that no table has."""
    for entry in outlines():
        if not FAMILIES[entry.family](entry):
            yield f"{entry.family}/{entry.name}"
