"""CROWDLAB and ActiveLab beside cleanlab: `python benchmarks/run.py accuracy crowdlab`.

Both get the same labels and the same probabilities of a classifier that is right about seven times
in ten. cleanlab wants labels as a dense matrix with gaps; it is filled before anything is timed.
Compared are all scores of items, labels, annotators and the classifier.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from crowds import OUT, SIZES, load, stored
from measure import Found, fresh
from peers import version_of

_OURS, _PEER = "dissensus", "cleanlab"
_JOBS = ("crowdlab", "activelab")


def predictions(truth: np.ndarray[Any, Any], n_classes: int) -> np.ndarray[Any, Any]:
    """Return what a classifier says that sees the truth through noise: (item, class)."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(len(truth), n_classes))
    logits[np.arange(len(truth)), truth] += 2.2
    posterior = np.exp(logits)
    return posterior / posterior.sum(axis=1, keepdims=True)


def ours(what: str, crowd: str, out: str) -> Found:
    """Score with our own, and keep the scores."""
    from dissensus.quality.crowdlab import activelab, crowdlab

    annotations, truth = load(crowd)
    posterior = predictions(truth, annotations.n_classes)
    start, used = perf_counter(), process_time()
    if what == "activelab":
        scores = {"active": activelab(annotations, posterior, as_cleanlab=True)}
    else:
        found = crowdlab(annotations, posterior)
        names = ("label", "consensus_quality", "consensus_agreement", "label_quality")
        names += ("annotator_quality", "annotator_agreement", "annotator_weight", "model_weight")
        scores = {name: getattr(found, name) for name in (*names, "worst_class")}
    taken = {"seconds": perf_counter() - start, "cpu": process_time() - used}
    np.savez(out, **scores)
    return taken


def theirs(what: str, crowd: str, out: str) -> Found:
    """Score with cleanlab, and keep the scores under our names."""
    from cleanlab import multiannotator

    annotations, truth = load(crowd)
    posterior = predictions(truth, annotations.n_classes)
    matrix = np.full((annotations.n_items, annotations.n_annotators), np.nan)
    matrix[annotations.item, annotations.annotator] = annotations.label
    start, used = perf_counter(), process_time()
    if what == "activelab":
        active, _ = multiannotator.get_active_learning_scores(matrix, posterior)
        scores = {"active": active}
    else:
        found = multiannotator.get_label_quality_multiannotator(
            matrix, posterior, return_weights=True, verbose=False
        )
        items, annotators = found["label_quality"], found["annotator_stats"].sort_index()
        detailed = found["detailed_label_quality"].to_numpy()
        scores = {
            "label": items["consensus_label"],
            "consensus_quality": items["consensus_quality_score"],
            "consensus_agreement": items["annotator_agreement"],
            "label_quality": detailed[annotations.item, annotations.annotator],
            "annotator_quality": annotators["annotator_quality"],
            "annotator_agreement": annotators["agreement_with_consensus"],
            "annotator_weight": found["annotator_weight"],
            "model_weight": np.atleast_1d(found["model_weight"]),
            "worst_class": annotators["worst_class"],
        }
    taken = {"seconds": perf_counter() - start, "cpu": process_time() - used}
    np.savez(out, **{name: np.asarray(values) for name, values in scores.items()})
    return taken


def difference(one: Path, other: Path) -> float:
    """Return the largest difference between two sets of scores."""
    with np.load(one) as mine, np.load(other) as peer:
        return max(float(np.nanmax(np.abs(mine[name] - peer[name]))) for name in peer.files)


def rows_of(job: str, size: str, repeats: int, limit: float) -> list[list[Any]]:
    """Return a row for each library; ours runs as often before cleanlab as after."""
    files = {name: OUT / f"{job}-{size}-{name}.npz" for name in (_OURS, _PEER)}
    given = {"what": job, "crowd": stored(size)}
    mine = [fresh("crowdlab:ours", out=str(files[_OURS]), **given) for _ in range(repeats)]
    peer = fresh("crowdlab:theirs", limit=limit, out=str(files[_PEER]), **given)
    mine += [fresh("crowdlab:ours", out=str(files[_OURS]), **given) for _ in range(repeats)]
    failed = next((one["failed"] for one in mine if "failed" in one), None)
    if failed:
        raise SystemExit(f"{job} {size}: {failed}")
    summary = [median(one[name] for one in mine) for name in ("seconds", "cpu", "peak")]
    start = [job, size, SIZES[size].answers]
    if "failed" in peer:
        return [[*start, _OURS, *summary, None, None], [*start, _PEER, peer["failed"], *[None] * 4]]
    times, apart = peer["cpu"] / summary[1], difference(files[_OURS], files[_PEER])
    their = [peer[name] for name in ("seconds", "cpu", "peak")]
    return [[*start, _OURS, *summary, times, apart], [*start, _PEER, *their, None, None]]


def main() -> None:
    """Measure and write the page."""
    from pages import Section, Table

    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--sizes", default="S,SM,M", help="S, SM, M: 1e4, 1e5, 1e6 answers")
    summary.add_argument("--repeats", type=int, default=2, help="runs of ours before and after")
    summary.add_argument("--limit", type=float, default=3000, help="seconds that cleanlab gets")
    given = summary.parse_args()
    if version_of(_PEER) is None:
        raise SystemExit("cleanlab is not installed; pip install -e '.[bench]'")
    section = Section("crowdlab", "crowdlab")
    rows = [
        row
        for job in _JOBS
        for size in given.sizes.split(",")
        for row in rows_of(job, size, given.repeats, given.limit)
    ]
    columns = ["what", "size", "answers", "library", "seconds", "CPU seconds", "peak GiB"]
    columns += ["times faster", "largest difference"]
    note = (
        f"Beside cleanlab {version_of(_PEER)}. Times faster is by CPU seconds, which other work on "
        "the machine disturbs less; the largest difference is over all scores. Peak memory counts "
        "everything in the process, also the labels and, for cleanlab, their matrix."
    )
    section.add(Table("CROWDLAB and ActiveLab", columns, rows, note))
    section.write()


if __name__ == "__main__":
    main()
