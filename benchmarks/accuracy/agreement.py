"""How long measures of agreement take, and how often their intervals hold: `python
python benchmarks/run.py accuracy agreement`.

The same labels are given to every library in the forms that it takes:

    matrix    annotators × items with gaps, the form that krippendorff documents
    slots     items × slots, possible only where every item has ten labels, and without annotators
    counts    items × classes, counted beforehand: a part of the work is then already done
    rows      one row per label (dissensus, nltk)
    pairs     two columns of labels for every two annotators (scikit-learn)

Ours begins with rows always, coded and sorted. Seconds are those of the processor, with one thread
for every library, so that what else the machine does hardly matters; what a clock says is beside
them. A library that takes longer than the limit has a row that says so and is left out of larger
sizes.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

from crowds import SIZES, load, stored
from measure import Found, fresh
from pages import Section, Table

PAGE = "agreement"
OURS = "dissensus"
# measure → (library, form), the peers that have it
PEERS = {
    "percent": [],
    "alpha": [
        ("krippendorff", "matrix"),
        ("krippendorff", "slots"),
        ("krippendorff", "counts"),
        ("irrCAC", "slots"),
        ("nltk", "rows"),
    ],
    "alpha ordinal": [
        ("krippendorff", "matrix"),
        ("krippendorff", "slots"),
        ("krippendorff", "counts"),
    ],
    "alpha interval": [
        ("krippendorff", "matrix"),
        ("krippendorff", "slots"),
        ("krippendorff", "counts"),
    ],
    "fleiss": [("statsmodels", "slots"), ("statsmodels", "counts"), ("irrCAC", "slots")],
    "randolph": [("statsmodels", "slots"), ("statsmodels", "counts")],
    "ac1": [("irrCAC", "slots")],
    "brennan-prediger": [("irrCAC", "slots")],
    "conger": [],
    "cohen": [("scikit-learn", "pairs")],
}
_IRR = {"alpha": "krippendorff", "fleiss": "fleiss", "ac1": "gwet", "brennan-prediger": "bp"}


def time_measure(library: str, form: str, measure: str, crowd: str) -> Found:
    """Return the median seconds of a measure and its value."""
    annotations, _ = load(crowd)
    warnings.simplefilter("ignore")
    work = (
        _ours(measure, annotations)
        if library == OURS
        else _theirs(library, form, measure, annotations)
    )
    each, clock = [], []
    while not each or (sum(clock) < 3 and len(each) < 20):
        began, start = perf_counter(), process_time()
        value = work()
        each.append(process_time() - start)
        clock.append(perf_counter() - began)
    # The first call may import; it counts only where there is no other.
    seconds, clock = median(each[1:] or each), median(clock[1:] or clock)
    return {"seconds": seconds, "clock": clock, "value": float(value)}


def _ours(measure: str, annotations: Any) -> Callable[[], float]:
    from dissensus import metrics as agreement

    name, _, level = measure.partition(" ")
    if name == "alpha":
        return lambda: agreement.krippendorff_alpha(annotations, scale=level or "nominal")
    functions: dict[str, Callable[[Any], float]] = {
        "percent": agreement.percent_agreement,
        "fleiss": agreement.fleiss_kappa,
        "randolph": agreement.randolph_kappa,
        "ac1": agreement.gwet_ac,
        "brennan-prediger": agreement.brennan_prediger,
        "conger": agreement.conger_kappa,
        "cohen": lambda one: agreement.cohen_kappa(one, min_overlap=2),
    }
    return lambda: functions[name](annotations)


def _theirs(library: str, form: str, measure: str, annotations: Any) -> Callable[[], float]:
    name, _, level = measure.partition(" ")
    if library == "krippendorff":
        import krippendorff

        given: dict[str, Any] = {
            "reliability_data": _matrix(annotations) if form == "matrix" else _slots(annotations).T
        }
        if form == "counts":
            domain = list(range(annotations.n_classes))
            given = {"value_counts": annotations.votes().astype(int), "value_domain": domain}
        how = level or "nominal"
        return lambda: krippendorff.alpha(**given, level_of_measurement=how)
    if library == "statsmodels":
        from statsmodels.stats import inter_rater

        table = _slots(annotations) if form == "slots" else annotations.votes()
        if form == "counts":
            return lambda: inter_rater.fleiss_kappa(table, name)
        return lambda: inter_rater.fleiss_kappa(inter_rater.aggregate_raters(table)[0], name)
    if library == "irrCAC":
        import pandas as pd
        from irrCAC.raw import CAC

        frame = pd.DataFrame(_slots(annotations))
        classes = list(range(annotations.n_classes))
        return lambda: getattr(CAC(frame, categories=classes, digits=12), _IRR[name])()["est"][
            "coefficient_value"
        ]
    if library == "nltk":
        from nltk.metrics.agreement import AnnotationTask

        rows = list(
            zip(
                annotations.annotator.tolist(),
                annotations.item.tolist(),
                annotations.label.tolist(),
                strict=True,
            )
        )
        return lambda: AnnotationTask(rows).alpha()  # its other measures allow no gaps
    return _kappas_of_pairs(annotations)


def _slots(annotations: Any) -> Any:
    """Return the labels of every item in a row: (item, place)."""
    return annotations.label.reshape(annotations.n_items, -1).astype(float)


def _matrix(annotations: Any) -> Any:
    """Return the labels with gaps: (annotator, item)."""
    import numpy as np

    out = np.full((annotations.n_annotators, annotations.n_items), np.nan)
    out[annotations.annotator, annotations.item] = annotations.label
    return out


def _kappas_of_pairs(annotations: Any) -> Callable[[], float]:
    """Return the mean of scikit-learn's kappa over all pairs with two items or more."""
    import numpy as np
    from sklearn.metrics import cohen_kappa_score

    order = np.argsort(annotations.annotator, kind="stable")
    ends = np.cumsum(annotations.labels_per_annotator)[:-1]
    mine = [(annotations.item[rows], annotations.label[rows]) for rows in np.split(order, ends)]

    def work() -> float:
        values = []
        for one in range(annotations.n_annotators):
            for other in range(one):
                _, left, right = np.intersect1d(mine[one][0], mine[other][0], return_indices=True)
                if len(left) > 1:
                    values.append(cohen_kappa_score(mine[one][1][left], mine[other][1][right]))
        return float(np.nanmean(values))

    return work


def speed(sizes: list[str], repeats: int, limit: float) -> list[Table]:
    """Return a table for every size."""
    out, tired = [], set()
    for size in sizes:
        rows = []
        for measure, peers in PEERS.items():
            libraries = [(OURS, "rows"), *peers]
            found: dict[tuple[str, str], list[Found]] = {one: [] for one in libraries}
            for _ in range(repeats):
                for library, form in libraries:
                    if (library, form, measure) in tired:
                        continue
                    job = {"library": library, "form": form, "measure": measure}
                    one = fresh(
                        "agreement:time_measure",
                        limit=None if library == OURS else limit,
                        crowd=stored(size),
                        **job,
                    )
                    found[library, form].append(one)
                    if "failed" in one:
                        tired.add((library, form, measure))
            ours = median(one["seconds"] for one in found[OURS, "rows"])
            for (library, form), each in found.items():
                rows.append([measure, library, form, *_cells(each, ours)])
        one = SIZES[size]
        title = f"{one.answers:,} labels: {one.items:,} items, {one.annotators:,} annotators"
        columns = ["measure", "library", "form", "seconds", "times ours", "by the clock"]
        columns += ["value", "peak GiB"]
        out.append(Table(title, columns, rows))
    return out


def _cells(each: list[Found], ours: float) -> list[Any]:
    if not each:
        return ["left out: too slow before", None, None, None, None]
    failed = [one["failed"] for one in each if "failed" in one]
    if failed:
        return [failed[0], None, None, None, None]
    seconds = median(one["seconds"] for one in each)
    clock = median(one["clock"] for one in each)
    return [seconds, seconds / ours, clock, f"{each[0]['value']:.6f}", each[0]["peak"]]


def time_intervals(crowd: str, resamples: int) -> Found:
    """Return the seconds of the usual measures with intervals, and with a break-down."""
    from dissensus import agree

    annotations, _ = load(crowd)
    out: dict[str, Any] = {}
    for name, given in {
        "intervals": {},
        "intervals, ordinal": {"scale": "ordinal"},
        "intervals, bca": {"interval": "bca"},
        "by class, with intervals": {"by": "class"},
        "by annotator, without": {"by": "annotator", "resamples": 0},
    }.items():
        began, start = perf_counter(), process_time()
        agree(annotations, **({"resamples": resamples} | given))
        out[name] = [process_time() - start, perf_counter() - began]
    return out


def draw(seed: int, n_items: int) -> Any:
    """Return labels of five out of twenty annotators, one of three classes, skewed."""
    import numpy as np

    from dissensus import Annotations

    people = np.random.default_rng(7)  # the same in all samples
    strength = people.uniform(1, 6, size=20)
    rows = people.standard_gamma(1 + strength[:, None, None] * np.eye(3), size=(20, 3, 3))
    confusion = rows / rows.sum(axis=2, keepdims=True)
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n_items, p=[0.6, 0.3, 0.1])
    who = rng.random((n_items, 20)).argsort(axis=1)[:, :5]
    upto = confusion[who, truth[:, None]].cumsum(axis=2)  # (item, place, given)
    label = (rng.random((n_items, 5, 1)) < upto).argmax(axis=2)
    item = np.repeat(np.arange(n_items), 5)
    return Annotations.from_codes(
        item, who.ravel(), label.ravel(), items=n_items, annotators=20, classes=3
    )


def coverage(runs: int, resamples: int) -> Table:
    """Return how often intervals hold the value of a million items."""
    from dissensus import agree

    names = ["percent", "alpha", "fleiss", "ac1"]
    whole = agree(draw(10**6, 1_000_000), names, resamples=0)
    rows = []
    for n_items in (30, 100, 300):
        for interval in ("percentile", "bca"):
            held = dict.fromkeys(names, 0)
            width = dict.fromkeys(names, 0.0)
            for seed in range(runs):
                found = agree(
                    draw(seed, n_items), names, resamples=resamples, interval=interval, seed=seed
                )
                for one in found.estimates:
                    held[one.measure] += one.low <= whole[one.measure].value <= one.high
                    width[one.measure] += (one.high - one.low) / runs
            for name in names:
                value = f"{whole[name].value:.4f}"
                rows.append([name, n_items, interval, value, held[name] / runs, width[name]])
    note = "Five of twenty annotators label every item with one of three classes; level 95 %."
    columns = ["measure", "items", "interval", "in 10^6 items", "held", "mean width"]
    return Table(f"Intervals, {runs} samples of {resamples} draws", columns, rows, note)


def main() -> None:
    """Measure and write the sections."""
    summary = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    summary.add_argument("--sizes", default="S,SM,M")
    summary.add_argument("--repeats", type=int, default=3)
    summary.add_argument("--limit", type=float, default=60, help="seconds for a peer")
    summary.add_argument("--runs", type=int, default=200)
    summary.add_argument("--only", choices=["speed", "coverage"])
    given = summary.parse_args()
    sizes = given.sizes.split(",")
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    if given.only != "coverage":
        section = Section("agreement-speed", PAGE)
        for table in speed(sizes, given.repeats, given.limit):
            section.add(table)
        found = fresh("agreement:time_intervals", crowd=stored(sizes[-1]), resamples=1000)
        peak = found.pop("peak", None)
        title = f"Percent, alpha, fleiss and ac1 together, {SIZES[sizes[-1]].answers:,} labels"
        note = f"1000 draws; at most {peak:.2f} GiB." if peak else ""
        rows = [[what, *seconds] for what, seconds in found.items()]
        section.add(Table(title, ["what", "seconds", "by the clock"], rows, note))
        section.write()
    if given.only != "speed":
        section = Section("agreement-coverage", PAGE)
        section.add(coverage(given.runs, 1000))
        section.write()


if __name__ == "__main__":
    main()
