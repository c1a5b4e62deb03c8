"""Spans, boxes and masks against known truth, and how cost grows.

Run it with `python benchmarks/run.py accuracy answers`.

Peers are measured where they are installed: crowd-kit's segmentation and SimpleITK's STAPLE, which
both work without their requirements (`pip install --no-deps`). Intervals are 95 %, by 1000 draws of
documents or images. Nothing is fitted to these sets; `--scale` also measures 10^6 marks.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dissensus as ds
from dissensus.aggregation import Candidates, Objects, SpanPool
from dissensus.aggregation.masks import soft_mask
from dissensus.answers import Boxes, Masks, Spans
from dissensus.base.engine import Local
from dissensus.method import FitContext
from dissensus.metrics.answer_scores import Found, found_marks, mask_overlaps
from measure import fresh
from pages import Section, Table

DATA = Path(__file__).parents[3] / "shared" / "data"
DRAWS = 1000


def load(name: str) -> tuple[Any, Any, pl.DataFrame | None]:
    """Return answers, gold and the table of items of a set."""
    answers, truth = (pl.read_csv(DATA / name / f"{part}.csv.gz") for part in ("answers", "truth"))
    path = DATA / name / "tasks.csv.gz"
    tasks = pl.read_csv(path) if path.exists() else None
    items = sorted({*answers["task"], *truth["task"]})
    gold = [truth["task"].to_list(), ["gold"] * len(truth)]
    rows = [answers["task"].to_list(), answers["worker"].to_list()]
    names = {"items": items}
    if "counts" in answers.columns:
        size = {task: (height, width) for task, height, width in tasks.iter_rows()}
        columns = [table["counts"].to_list() for table in (answers, truth)]
        return (
            Masks.from_columns(*rows, columns[0], size=size, **names),
            Masks.from_columns(*gold, columns[1], size=size, **names),
            tasks,
        )
    kind, fields = (
        (Spans, ("start", "end", "label"))
        if "start" in answers.columns
        else (Boxes, ("x", "y", "w", "h"))
    )
    given, known = ([table[f].to_list() for f in fields] for table in (answers, truth))
    return (
        kind.from_columns(*rows, *given, **names),
        kind.from_columns(*gold, *known, **names),
        tasks,
    )


def interval(score: Callable[[np.ndarray], float], group: np.ndarray) -> str:
    """Return a 95 % interval by drawing groups of items."""
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(group == one) for one in np.unique(group)]
    draws = [
        score(np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))]))
        for _ in range(DRAWS)
    ]
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{low:.1f} to {high:.1f}" if high > 1 else f"{low:.3f} to {high:.3f}"


def percent(found: Found) -> list[Any]:
    return [round(100 * value, 1) for value in (found.precision, found.recall, found.f1)]


def timed(answers: Any, method: str) -> tuple[Any, float]:
    start = time.process_time()
    result = ds.aggregate(answers, method, engine=Local(1))
    return result, time.process_time() - start


def random_annotator(answers: Any, rng: np.random.Generator) -> Any:
    """Return one answer per item at random."""
    some = answers.labels_per_item > 0
    pick = answers.index[:-1][some] + rng.integers(answers.labels_per_item[some])
    kept = np.zeros(len(answers), dtype=bool)
    kept[pick] = True
    return answers.keep(kept)


def token_vote(answers: Spans, tasks: pl.DataFrame, rng: np.random.Generator) -> Spans:
    """Return spans from the majority tag of every token, ties at random."""
    table = pl.read_csv(DATA / "ner_conll" / "tags.csv.gz")
    tags: dict[str, list[str]] = {}
    for task, _, given in table.iter_rows():
        tags.setdefault(task, []).append(given)
    names = {"L": "LOC", "P": "PER", "G": "ORG", "M": "MISC"}
    rows: list[tuple[str, Any, Any, Any]] = []
    for task in tasks["task"]:
        voted = []
        for column in zip(*tags.get(task, []), strict=True):
            marks, counts = np.unique(
                [tag for tag in column if tag != "?"] or ["."], return_counts=True
            )
            voted.append(rng.choice(marks[counts == counts.max()]))
        rows.append((task, None, None, None))
        start, kind = None, ""
        for at, tag in enumerate([*voted, "."]):
            if start is not None and (tag == "." or tag.isupper() or tag.upper() != kind):
                rows.append((task, start, at, names[kind]))
                start = None
            if tag != "." and start is None:
                start, kind = at, tag.upper()
    item, first, last, label = zip(*rows, strict=True)
    return Spans.from_columns(item, ["vote"] * len(item), first, last, label, items=answers.items)


def span_table(section: Section) -> None:
    """Score spans on ner_conll."""
    answers, gold, tasks = load("ner_conll")
    doc = dict(zip(tasks["task"], tasks["doc"], strict=True))
    group = np.array([doc[item] for item in answers.items.tolist()])
    test = np.isin(
        answers.items.tolist(), tasks.filter(pl.col("split") == "test")["task"].to_list()
    )
    rng = np.random.default_rng(0)
    rows = []

    def add(name: str, spans: Any, seconds: float | None) -> None:
        found = found_marks(spans, gold)
        whole = interval(lambda items: 100 * found.take(items).f1, group)
        half = round(100 * found.take(np.flatnonzero(test)).f1, 1)
        rows.append([name, *percent(found), whole, half, seconds])

    add("one annotator at random", random_annotator(answers, rng), None)
    add("majority tag of every token", token_vote(answers, tasks, rng), None)
    for method in (
        "span-pool",
        "candidates",
        "majority",
        "one-coin",
        "mace",
        "dawid-skene",
        "bcc",
        "hierarchical",
        "candidates[favour=recall]",
        "objects",
        "sequence",
        "medoid",
    ):
        result, seconds = timed(answers, method)
        add(f"{method} (default)" if method == "span-pool" else method, result.truth, seconds)
    columns = ["method", "P", "R", "F1", "95 % interval", "F1, test half", "CPU s"]
    note = "Exact spans with labels, percent, all 6253 sentences; documents are drawn. Bar: 74.0."
    section.add(Table("Spans: ner_conll", columns, rows, note))


def choice_table(section: Section) -> None:
    """Show on what the default of spans was chosen: simulated crowds, with ner_conll left out."""
    from simulated_answers import draw_spans

    crowds = [draw_spans(n, n_annotators=who) for n, who in ((200, 20), (1000, 50), (2000, 1000))]
    rows = []
    pools = [f"span-pool[threshold={t}]" for t in (0.25, 0.3, 0.35, 0.4, 0.45, 0.5)]
    for method in (*pools, "candidates", "hierarchical", "mace", "objects", "sequence", "medoid"):
        found = [found_marks(timed(d.answers, method)[0].truth, d.gold) for d in crowds]
        scores = [round(100 * one.f1, 1) for one in found]
        rows.append([method, *scores, round(float(np.mean(scores)), 1)])
    columns = ["method", "20 annotators", "50 annotators", "1000 annotators", "mean"]
    note = (
        "F1 of exact spans. 200, 1000 and 2000 texts with 4 spans on average, 5 annotators each, "
        "who find a span with probability Beta(6, 3), place it right in 80 % and label it right in "
        "90 %. "
        "The threshold of the pool was chosen here, with ner_conll left out; that it is better "
        "than its two parts was seen on both."
    )
    section.add(Table("Spans: simulated", columns, rows, note))


def box_table(section: Section) -> None:
    """Score boxes on boxes_people."""
    answers, gold, _ = load("boxes_people")
    group = np.arange(answers.n_items)
    rng = np.random.default_rng(0)
    rows = []

    def add(name: str, boxes: Any, seconds: float | None) -> None:
        found = found_marks(boxes, gold, 0.5)
        strict = round(100 * found_marks(boxes, gold, 0.75).f1, 1)
        whole = interval(lambda items: 100 * found.take(items).f1, group)
        rows.append([name, *percent(found), whole, strict, seconds])

    add("one annotator at random", random_annotator(answers, rng), None)
    for method in (
        "objects",
        "majority",
        "dawid-skene",
        "bcc",
        "mace",
        "two-level",
        "objects[levels=1]",
        "objects[levels=3]",
        "objects[favour=recall]",
        "medoid",
    ):
        result, seconds = timed(answers, method)
        add(f"{method} (default)" if method == "objects" else method, result.truth, seconds)
    columns = ["method", "P", "R", "F1 at .5", "95 % interval", "F1 at .75", "CPU s"]
    note = "Intersection over union of at least .5, percent; images are drawn. Bar: 78.0."
    section.add(Table("Boxes: boxes_people", columns, rows, note))


def mask_rows(answers: Masks, gold: Masks, methods: tuple[str, ...]) -> list[list[Any]]:
    """Return IoU, its interval, the Brier score and time of methods."""
    rows = []
    truth = [gold.pixels(i) for i in range(len(gold))]

    def add(name: str, masks: Masks, soft: list[np.ndarray] | None, seconds: float | None) -> None:
        overlap = mask_overlaps(masks, gold)
        brier = None
        if soft is not None:
            brier = float(
                np.mean([((s - t) ** 2).mean() for s, t in zip(soft, truth, strict=True)])
            )
        within = interval(lambda items: float(overlap[items].mean()), np.arange(len(overlap)))
        rows.append([name, round(float(overlap.mean()), 4), within, brier, seconds])

    add("one annotator at random", random_annotator(answers, np.random.default_rng(0)), None, None)
    for method in methods:
        result, seconds = timed(answers, method)
        soft = None
        if "soft_value" in result.params:
            soft = [soft_mask(result, item) for item in answers.items.tolist()]
        name = f"{method} (default)" if method == "weighted-masks" else method
        add(name, result.truth, soft, seconds)
    for name, peer in mask_peers():
        start = time.process_time()
        soft = peer(answers)
        seconds = time.process_time() - start
        counts = [_runs(mask > 0.5) for mask in soft]
        size = dict(zip(answers.items.tolist(), answers.size.tolist(), strict=True))
        who = ["peer"] * len(counts)
        masks = Masks.from_columns(
            answers.items.tolist(), who, counts, size=size, items=answers.items
        )
        add(name, masks, soft if "STAPLE" in name else None, seconds)
    return rows


def _runs(mask: np.ndarray) -> list[int]:
    from simulated_answers import runs_of_mask

    return runs_of_mask(mask)


def mask_peers() -> list[tuple[str, Callable[[Masks], list[np.ndarray]]]]:
    """Return the peers that are installed."""
    peers: list[tuple[str, Callable[[Masks], list[np.ndarray]]]] = []
    if find_spec("SimpleITK"):
        peers.append(("SimpleITK STAPLE", _simple_itk))
    if find_spec("crowdkit"):
        peers += [
            (f"crowd-kit {name}", lambda masks, cls=cls: _crowd_kit(masks, cls))
            for name, cls in (
                ("MajorityVote", "SegmentationMajorityVote"),
                ("EM", "SegmentationEM"),
                ("RASA", "SegmentationRASA"),
            )
        ]
    return peers


def _simple_itk(masks: Masks) -> list[np.ndarray]:
    import SimpleITK

    out = []
    for start, stop in zip(masks.index, masks.index[1:], strict=False):
        images = [
            SimpleITK.GetImageFromArray(masks.pixels(a).astype(np.uint8))
            for a in range(start, stop)
        ]
        out.append(SimpleITK.GetArrayFromImage(SimpleITK.STAPLE(images, 1.0)))
    return out


def _crowd_kit(masks: Masks, cls: str) -> list[np.ndarray]:
    import importlib

    import pandas as pd

    module = importlib.import_module("crowdkit.aggregation.image_segmentation")
    rows = [
        (masks.items[masks.item[a]], masks.annotators[masks.annotator[a]], masks.pixels(a))
        for a in range(len(masks))
    ]
    table = pd.DataFrame(rows, columns=["task", "worker", "segmentation"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = getattr(module, cls)().fit_predict(table)
    return [result[item].astype(float) for item in masks.items.tolist()]


def mask_table(section: Section) -> None:
    """Score masks on masks_cells and simulated ones."""
    methods = (
        "weighted-masks",
        "weighted-masks[power=0]",
        "staple",
        "staple[frame=box]",
        "staple[frame=contested]",
        "medoid",
    )
    answers, gold, _ = load("masks_cells")
    columns = ["method", "mean IoU", "95 % interval", "Brier", "CPU s"]
    note = "Images are drawn; a power of 0 is the majority. Bar: .870."
    section.add(Table("Masks: masks_cells", columns, mask_rows(answers, gold, methods), note))
    from simulated_answers import draw_masks

    rows = []
    for method in methods[:4]:
        scores: list[Any] = []
        for bad in (0, 2, 3):
            drawn = draw_masks(bad)
            overlap = mask_overlaps(timed(drawn.answers, method)[0].truth, drawn.gold)
            scores.append(round(float(overlap.mean()), 3))
        rows.append([method, *scores])
    columns = ["method", "none bad", "2 of 7 bad", "3 of 7 bad"]
    section.add(Table("Simulated masks, mean IoU", columns, rows, "30 ellipses, 7 annotators."))


def reliability(section: Section) -> None:
    """Show how often candidates of a stated probability are right."""
    rows = []
    for name, method, least in (
        ("ner_conll", SpanPool(), 1.0),
        ("ner_conll", Candidates(), 1.0),
        ("ner_conll", Objects(), 0.5),
        ("boxes_people", Objects(), 0.5),
    ):
        answers, gold, _ = load(name)
        proposed = method.propose(FitContext(answers, None, Local(1)))
        exact = least == 1.0
        right = candidates_right(answers, gold, proposed, least, labels=exact)
        n_labels = len(answers.classes)
        raw, stated = proposed.probability, proposed.calibrated
        if exact:
            stated = proposed.confidence
        if isinstance(method, Candidates):
            raw = proposed.inner.posterior[:, :n_labels].max(axis=1)
        kind = type(method).__name__.lower()
        for how, value in (("posterior", raw), ("confidence", stated)):
            rows.append([name, kind, how, *_bins(value, right)])
    columns = [
        "set",
        "method",
        "what",
        "Brier",
        "ECE",
        *(f"{b / 5:.1f} to {(b + 1) / 5:.1f}" for b in range(5)),
    ]
    note = (
        "All candidates: mean probability, share that is right, number of candidates. Right is the "
        "same span and label for candidates, an overlap of .5 for objects. Confidence is the "
        "posterior at its temperature; that of objects was chosen on each set for the other."
    )
    section.add(Table("Reliability", columns, rows, note))


def candidates_right(
    answers: Any, gold: Any, proposed: Any, least: float, labels: bool = True
) -> np.ndarray:
    """Return which candidates match a known mark, one to one."""

    gold = answers.align(gold)
    place = np.vstack([proposed.place, gold.place])
    item = np.concatenate([proposed.candidates.item, gold.mark_item])
    n_candidates = len(proposed.place)
    who = (np.arange(len(item)) >= n_candidates).astype(int)
    first, second, value = answers.similar_pairs(answers.corners(place), item, who, least)
    one, two = np.minimum(first, second), np.maximum(first, second)
    if labels and answers.labelled:
        names = np.concatenate([answers.classes[proposed.label], gold.classes[gold.label]])
        same = names[one] == names[two]
        one, two, value = one[same], two[same], value[same]
    right = np.zeros(n_candidates)
    order = np.argsort(-value, kind="stable")
    used = np.zeros(len(item), dtype=bool)
    for a, b in zip(one[order].tolist(), two[order].tolist(), strict=True):
        if not used[a] and not used[b]:
            used[a] = used[b] = True
            right[a] = 1.0
    return right


def _bins(stated: np.ndarray, right: np.ndarray) -> list[Any]:
    """Return the Brier score, the calibration error in ten bins, and five bins to read."""
    tenth = np.minimum((stated * 10).astype(int), 9)
    gap = sum(abs(stated[tenth == b].sum() - right[tenth == b].sum()) for b in range(10))
    cells: list[Any] = [float(((stated - right) ** 2).mean()), float(gap / len(stated))]
    for b in range(5):
        inside = tenth // 2 == b
        if inside.any():
            cells.append(
                f"{stated[inside].mean():.2f} / {right[inside].mean():.2f} ({inside.sum()})"
            )
        else:
            cells.append(None)
    return cells


def silent_table(section: Section) -> None:
    """Add an annotator who never marks anything, on all images."""
    answers, _, _ = load("boxes_people")
    names = answers.items.tolist()
    silent = Boxes.from_columns(names, ["silent"] * len(names), *[[None] * len(names)] * 4)
    context = [FitContext(one, None, Local(1)) for one in (answers, answers.merge(silent))]
    before, after = (Objects().propose(one) for one in context)
    both = Objects().infer(context[1])
    code = both.annotators["annotator"].tolist().index("silent")
    moved = np.abs(before.probability - after.probability)
    changed = int(((before.probability > 0.5) != (after.probability > 0.5)).sum())
    rows = [
        ["found, of the silent annotator", float(both.annotators["found"][code])],
        ["mean change of the probability of a candidate", float(moved.mean())],
        ["decisions changed", f"{changed} of {len(moved)}"],
    ]
    note = "Bars: found below .02, mean change below .03."
    section.add(Table("A silent annotator on boxes_people", ["what", "value"], rows, note))


def cost(kind: str, n_items: int) -> dict[str, Any]:
    """Measure one fit on simulated marks, in a process of its own."""
    import simulated_answers

    drawn = getattr(simulated_answers, f"draw_{kind}")(n_items, per_item=14.0)
    result, seconds = timed(drawn.answers, "auto")
    found = found_marks(result.truth, drawn.gold, 0.5 if kind == "boxes" else 1.0)
    return {"marks": drawn.answers.n_elements, "seconds": seconds, "f1": found.f1}


def cost_table(section: Section, sizes: list[int]) -> None:
    """Measure how cost grows with the number of marks."""
    rows = []
    for kind in ("boxes", "spans"):
        for n_items in sizes:
            got = fresh("answers:cost", kind=kind, n_items=n_items)
            if "failed" in got:
                rows.append([kind, n_items, None, got["failed"], None, None])
                continue
            f1 = round(100 * got["f1"], 1)
            rows.append([kind, n_items, got["marks"], got["seconds"], got["peak"], f1])
    columns = ["kind", "items", "marks", "CPU s", "peak GiB", "F1"]
    note = "Simulated: 1000 annotators, 5 look at every item. Bars at 10^6 marks: 60 s, 4 GiB."
    section.add(Table("Cost", columns, rows, note))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", action="store_true", help="measure 10^6 marks too")
    options = parser.parse_args()
    section = Section("answers", "answers")
    cost_table(section, [200, 2000, 20000] if options.scale else [200, 2000])
    if DATA.exists():
        span_table(section)
    choice_table(section)
    if DATA.exists():
        box_table(section)
        mask_table(section)
        reliability(section)
        silent_table(section)
    section.write()


if __name__ == "__main__":
    main()
