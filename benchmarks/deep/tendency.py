"""Predicting individual annotators of real texts and photos.

Run it with `python benchmarks/run.py deep tendency`.

Items are split 70/10/20, five times: a method learns from 80 % of them, including its validation
split (networks an eighth, that is the 10 %; linear models use cross-validation), and predicts the
labels on the other 20 %. All methods use the same features of the same frozen encoder, with their
default settings. The defaults were chosen on other sets (mbic, offensive_spans,
subjective_discourse, lewidi_csc).

Scores of every run are appended to `out/tendency.jsonl` and not computed again; `--tables` only
writes the page.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
from collections import defaultdict
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from crowds import OUT
from dissensus import Annotations, read
from dissensus.deep.nn.features import Features, features_of
from dissensus.deep.nn.reading import read_inputs
from dissensus.deep.tendency import FitOptions
from dissensus.deep.tendency.scores import score
from dissensus.registry import tendencies
from pages import Section, Table

DATA = Path(__file__).parents[3] / "shared" / "data"
KEPT = OUT / "tendency.jsonl"
TEXTS = {
    "lewidi_hs_brexit": "1120 tweets, hate speech or not, 6 annotators",
    "babe_sg1": "1703 sentences of news, biased or not, 8 annotators",
    "babe_sg2": "3675 sentences of news, biased or not, 8 annotators",
    "gwsd": "2050 sentences on climate change, 3 stances, 398 annotators",
    "lewidi_md_agreement": "3000 of 10753 tweets, offensive or not, 772 annotators",
    "disaggreghateit": "1100 Italian tweets, hateful or not, 113 annotators; an English encoder",
}
VECTORS = {
    "labelme": "1000 photos in 8 classes of scenes, 59 annotators, 2547 labels; one vector "
    "of a network each instead of patches, so there are no maps"
}
SETS = TEXTS | VECTORS
MOST = 3000  # items of a set
# The published network and its training, narrower and with fewer epochs for a CPU.
PAPER = (
    "qumatl[width=128,layers=4,heads=4,hidden=512,fc=128,head_hidden=128,lr=0.001,epochs=40,"
    "patience=8]"
)
BASE = PAPER.replace("qumatl[", "qumatl[qformer=False,")
METHODS = {
    "own-majority": "own-majority",
    "consensus": "consensus",
    "shared head": "shared",
    "consensus × confusion": "confused-consensus",
    "independent": "independent",
    "base": BASE,
    "multi-task": "multi-task",
    "hubi-simple": "hubi-simple",
    "hubi-medium": "hubi-medium",
    "hubi-formula": "hubi-formula",
    "embeddings E_a": "E_a",
    "embeddings E_n": "E_n",
    "embeddings, both": "annotator-embedding",
    "d-lema": "d-lema",
    "padl": "padl",
    "madl": "madl",
    "doctor-net": "doctor-net",
    "qumatl": PAPER,
    "query, one fit": "query[fits=1,epochs=12,patience=3]",
    "published setting": "qumab[layers=2,self_attention=None,width=128,heads=4,hidden=256,"
    "cross_every=1,epochs=12,lr=0.001,patience=3]",
    "linear": "linear",
    "sim-label": "sim-label",
    "auto": "auto",
}
EXTRA = ("linear", "sim-label", "query, one fit", "published setting")  # only on request
FEW = {"base", "qumatl"}  # too costly for hundreds of annotators
SHOWN = ("log_loss", "accuracy", "accuracy_worst_decile", "macro_f1", "weighted_f1", "ece")
SHOWN += ("dic", "dic_rms", "kappa_correlation", "consensus_accuracy")
DELETED = ("lewidi_hs_brexit", "gwsd")
SHARES = (0.0, 0.2, 0.3, 0.4)
_STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 10: 2.262}  # 95 % of means of so many


class Data(NamedTuple):
    annotations: Annotations
    features: Features


def loaded(name: str, most: int | None = None) -> Data:
    """Return the annotations and features of a set, or of so many of its items."""
    annotations = read(DATA / name / "answers.csv.gz")
    most = most or (MOST if name == "lewidi_md_agreement" else annotations.n_items)
    if annotations.n_items > most:
        kept = np.zeros(annotations.n_items, dtype=bool)
        kept[np.random.default_rng(0).permutation(annotations.n_items)[:most]] = True
        annotations = annotations.subset(items=kept)
        annotations = annotations.subset(annotators=annotations.labels_per_annotator > 0)
    if name in VECTORS:
        file = DATA / name / "features.npz"
        return Data(
            annotations, features_of(read_inputs(file, annotations.items, column="x_train"))
        )
    with gzip.open(DATA / name / "tasks.csv.gz", "rt", encoding="utf-8") as file:
        texts = {row["task"]: row["text"] for row in csv.DictReader(file)}
    given = [texts[item] for item in annotations.items.tolist()]
    return Data(annotations, features_of(given, "minilm", tokens=True))


def split(annotations: Annotations, seed: int) -> tuple[Any, Any]:
    """Return training items and test items."""
    order = np.random.default_rng([seed, 2026]).permutation(annotations.n_items)
    count = round(0.2 * annotations.n_items)
    return np.sort(order[count:]), np.sort(order[:count])


def without(annotations: Annotations, share: float, seed: int) -> Annotations:
    """Return annotations of which a share is deleted at random."""
    kept = np.random.default_rng([seed, 0xDE1]).random(len(annotations)) >= share
    return annotations.keep(kept)


def measured(data: Data, spec: str, seed: int, deleted: float) -> dict[str, Any]:
    """Fit on one part and score on the other."""
    learned, held = split(data.annotations, seed)
    annotations, there = data.annotations.take(learned), data.annotations.take(held)
    if deleted:
        annotations = without(annotations, deleted, seed)
    method = tendencies.create(spec)
    features = (
        data.features if method.needs_tokens(annotations) else Features(data.features.vectors)
    )
    began = process_time()
    model = method.fit(features.take(learned), annotations, FitOptions(seed=seed))
    taken = process_time() - began
    item, annotator = there.item.astype(np.int64), there.annotator.astype(np.int64)
    found = score(
        there, model.log_probability(features.take(held), item, annotator), seed=seed
    ).summary()
    weights = {}
    if spec == "auto":
        weights = {
            name: round(float(share), 3)
            for name, share in zip(model.members, model.weight, strict=True)
        }
    return {**found, "seconds": taken, "members": weights}


def known() -> dict[tuple[str, str, int, float], dict[str, Any]]:
    """Return the rows of earlier runs."""
    if not KEPT.exists():
        return {}
    rows = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    return {(row["set"], row["method"], row["seed"], row["deleted"]): row for row in rows}


def run(sets: list[str], methods: list[str], seeds: list[int], shares: list[float]) -> None:
    """Measure what is missing; seeds are the outer loop, so that all sets are covered early."""
    have, cache = known(), {}
    for seed in seeds:
        for name in sets:
            for label in methods:
                for deleted in shares:
                    if (name, label, seed, deleted) in have:
                        continue
                    data = cache[name] if name in cache else loaded(name)
                    cache = {name: data}
                    if label in FEW and data.annotations.n_annotators > 64:
                        continue
                    found = measured(data, METHODS[label], seed, deleted)
                    row = {"set": name, "method": label, "seed": seed, "deleted": deleted, **found}
                    OUT.mkdir(exist_ok=True)
                    with KEPT.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(
                        f"{name:20s} {seed} {deleted:.1f} {label:22s} {row['log_loss']:.4f} "
                        f"{row['accuracy']:.4f} rms {row['dic_rms']:.3f} {row['seconds']:.1f} s",
                        flush=True,
                    )


def interval(values: list[float]) -> tuple[float, float]:
    """Return the mean over splits and half the width of its 95 % interval."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return float(np.mean(values)), _STUDENT.get(len(values), 2) * spread / len(values) ** 0.5


def by_method(name: str, deleted: float = 0.0) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the rows of a set: method → seed → scores."""
    out: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for (there, label, seed, share), row in known().items():
        if there == name and share == deleted:
            out[label][seed] = row
    return {label: out[label] for label in METHODS if label in out}


def compared(rows: dict[str, dict[int, dict[str, Any]]], score: str, sign: int) -> dict[str, Any]:
    """Return the lead of `auto` over every other method, paired by split, with intervals."""
    mine = rows["auto"]
    out = {}
    for label, theirs in rows.items():
        seeds = sorted(set(mine) & set(theirs))
        if label != "auto" and seeds:
            out[label] = interval([sign * (mine[s][score] - theirs[s][score]) for s in seeds])
    return out


def main_table(name: str) -> tuple[Table, list[Any]]:
    """Return the scores of a set, and a row of the summary."""
    rows = by_method(name)
    cells = []
    ahead = {key: compared(rows, key, sign) for key, sign in (("log_loss", -1), ("accuracy", 1))}
    for label, runs in rows.items():
        every = list(runs.values())
        means = [
            float(np.nanmean([run[key] for run in every]))
            if any(run[key] == run[key] for run in every)
            else None
            for key in SHOWN
        ]
        gaps = [_gap(ahead[key].get(label)) for key in ("log_loss", "accuracy")]
        seconds = float(np.mean([run["seconds"] for run in every]))
        cells.append([label, *means, *gaps, seconds])
    columns = ["method", "log loss", "accuracy", "worst tenth", "macro F1", "weighted F1", "ECE"]
    columns += [
        "DIC",
        "DIC rms",
        "r of kappas",
        "vote of predictions",
        "log loss above auto's",
        "accuracy below auto's",
    ]
    columns += ["CPU s"]
    first = next(iter(rows["auto"].values()))
    floors = [run["dic_rms_floor"] for run in rows["auto"].values()]
    floor = float(np.nanmean(floors)) if any(f == f for f in floors) else None
    low = [label for label, gap in ahead["log_loss"].items() if gap[0] + gap[1] < 0]
    poor = [label for label, gap in ahead["accuracy"].items() if gap[0] + gap[1] < 0]
    members = defaultdict(list)
    for run in rows["auto"].values():
        for member, weight in run["members"].items():
            members[member].append(weight)
    n = len(rows["auto"])
    summary = ", ".join(f"{m} {sum(w) / n:.2f}" for m, w in members.items())
    dic = {
        label: float(np.mean([run["dic_rms"] for run in rows[label].values()]))
        for label in ("auto", "consensus")
    }
    judged = floor is not None and dic["consensus"] > 2 * floor
    noise = (
        f"Noise of DIC rms by halves: {floor:.3f}."
        if floor is not None
        else "Too few common items to measure the noise of DIC."
    )
    note = (
        f"{SETS[name]}; {n} splits; {first['n_annotators']:.0f} annotators have ten test labels "
        f"and {first['n_pairs_used']:.0f} pairs ten common test items on the first split. {noise} "
        f"`auto` consists of: {summary}. Significantly better than auto in log loss: "
        f"{', '.join(low) or 'none'}; in accuracy: {', '.join(poor) or 'none'}."
    )
    verdict = [
        name,
        min(rows, key=lambda label: np.mean([run["log_loss"] for run in rows[label].values()])),
        ", ".join(low) or "none",
        max(rows, key=lambda label: np.mean([run["accuracy"] for run in rows[label].values()])),
        ", ".join(poor) or "none",
        dic["auto"],
        dic["consensus"],
        floor,
        ("yes" if dic["auto"] < dic["consensus"] else "no") if judged else "not comparable",
    ]
    return Table(name, columns, cells, note), verdict


def _gap(gap: tuple[float, float] | None) -> str:
    if gap is None:
        return "–"
    return f"{gap[0]:+.3f}" + ("" if np.isnan(gap[1]) else f" ± {gap[1]:.3f}")


def deletion_table() -> Table | None:
    """Return the accuracy when labels are deleted."""
    cells = []
    for name in DELETED:
        whole = by_method(name)
        for label in ("padl", "linear", "sim-label", "auto"):
            if label not in whole:
                continue
            line: list[Any] = [name, label]
            base: dict[int, float] = {}
            for share in SHARES:
                runs = by_method(name, share).get(label, {})
                seeds = sorted(runs)
                accuracy = [runs[s]["accuracy"] for s in seeds]
                base = base or {s: runs[s]["accuracy"] for s in seeds}
                lost = [1 - runs[s]["accuracy"] / base[s] for s in seeds if s in base]
                line.append(
                    "–" if not seeds else f"{np.mean(accuracy):.3f} ({100 * np.mean(lost):.1f} %)"
                )
            loss = [by_method(name, share).get(label, {}) for share in (0.0, 0.4)]
            both = sorted(set(loss[0]) & set(loss[1]))
            rise = [loss[1][s]["log_loss"] / loss[0][s]["log_loss"] - 1 for s in both]
            line.append(f"{100 * np.mean(rise):+.1f} %" if rise else "–")
            cells.append(line)
    if not cells:
        return None
    columns = ["set", "method", *(f"{share:.0%} deleted" for share in SHARES), "log loss at 40 %"]
    return Table(
        "Labels deleted",
        columns,
        cells,
        "Mean accuracy by annotator and the share of it that is lost; training labels are deleted "
        "at random, the same ones for all methods; test labels are complete.",
    )


def write_tables(title: str, sets: dict[str, str]) -> None:
    """Write a section of the page from the rows of all runs."""
    section = Section(title, "tendency")
    verdicts, tables = [], []
    for name in sets:
        if "auto" in by_method(name):
            table, verdict = main_table(name)
            tables.append(table)
            verdicts.append(verdict)
    if not tables:
        return
    columns = ["set", "lowest log loss", "significantly below auto's", "highest accuracy"]
    columns += [
        "significantly above auto's",
        "DIC rms of auto",
        "of the consensus",
        "noise",
        "auto closer?",
    ]
    if sets is TEXTS:
        section.add(
            Table(
                "In short",
                columns,
                verdicts,
                "Significant: the 95 % interval of the mean of paired differences over splits "
                "excludes zero. Splits overlap, so intervals are somewhat narrow. DIC is compared "
                "where the rms of the consensus is more than twice the noise. "
                "Nothing was selected by DIC.",
            )
        )
    for table in tables:
        section.add(table)
    deleted = deletion_table() if sets is TEXTS else None
    if deleted is not None:
        section.add(deleted)
    section.write()


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--methods", help="with semicolons between")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--deleted", action="store_true", help="also with labels deleted")
    parser.add_argument("--tables", action="store_true", help="only write the page")
    given = parser.parse_args()
    if not given.tables:
        import torch

        torch.set_num_threads(1)
        shares = list(SHARES) if given.deleted else [0.0]
        seeds = [int(seed) for seed in given.seeds.split(",")]
        methods = [label for label in METHODS if label not in EXTRA]
        methods = given.methods.split(";") if given.methods else methods
        run(given.data.split(","), methods, seeds, shares)
    write_tables("tendency", TEXTS)
    write_tables("tendency: feature vectors", VECTORS)


if __name__ == "__main__":
    main()
