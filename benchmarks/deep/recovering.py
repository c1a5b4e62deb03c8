"""Label distributions from one label per item: `python benchmarks/run.py deep recovering`.

Methods see texts, the majority label of the training items and their numbers of votes; never a
share. Their distributions on test items are scored against all annotations, between a floor (one
distribution for all), an oracle that learns from the shares (`ldl`), and the same people asked
again. Measurements are stored in `out/recovering`; delete a file to measure it again.

    --parts sets,tuning,entropy,protocol,cost,spans,attention,figures,members,ordinal,emotions,
            together
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from dissensus.deep.recovery import base as measures
from dissensus.deep.recovery.evaluation import ceiling_scores, soft_scores
from kept import KEPT
from pages import Section, Table
from recovering_attention import attention, figures, spans
from recovering_ground import (
    FLOOR,
    HARD,
    HEADS,
    ORACLE,
    PAGE,
    PEOPLE,
    REFERENCE,
    ROWS,
    SHOWN,
    SPLITS,
    interval,
    measured,
    soft_set_of,
    votes_of,
)
from recovering_parts import cost, entropy, protocol, tuning
from recovering_variants import emotions, ordinal, together, tuned_member
from soft_sets import TESTED

FIRST = ("marginal", "single", "seeds", "bagged-heads", "kernel-ridge", "auto", "ldl")


PARTS = {
    "tuning": tuning,
    "entropy": entropy,
    "protocol": protocol,
    "cost": cost,
    "spans": spans,
    "attention": attention,
    "figures": figures,
    "members": tuned_member,
    "ordinal": ordinal,
    "emotions": emotions,
    "together": together,
}


def sets(splits: int) -> None:
    """Every method on every set, and the pooled gaps."""
    section = Section("recovering from majority labels", PAGE)
    scores: dict[str, dict[tuple[str, int], dict[str, float]]] = {}
    for name in TESTED:
        data, rows = soft_set_of(name), []
        for shown, spec, what in ROWS:
            seconds = []
            for split in range(splits):
                found = measured(name, split, spec)
                summary = soft_scores(found[what], votes_of(name, split))
                scores.setdefault(shown, {})[name, split] = summary
                seconds.append(float(found["seconds"]))
            mine = [scores[shown][name, split] for split in range(splits)]
            cells = [interval([one[key] for one in mine]) for key in (*SHOWN, *HARD)]
            rows.append([shown, *cells, float(np.mean(seconds))])
        again = []
        for split in range(splits):
            summary = ceiling_scores(votes_of(name, split), random=np.random.default_rng(split))
            scores.setdefault(PEOPLE, {})[name, split] = summary
            again.append(summary)
        cells = [interval([one[key] for one in again]) for key in (*SHOWN, *HARD)]
        rows.append([PEOPLE, *cells, None])
        note = (
            f"{len(data.texts)} texts in {data.annotations.n_classes} classes, "
            f"{data.count.mean():.1f} annotators each; share of the largest class "
            f"{np.bincount(data.label).max() / len(data.label):.3f}. Means of {splits} splits by "
            "item (80 % to learn from, 20 % to test), ± half of a 95 % interval over splits."
        )
        section.add(Table(f"Set {name}", ["method", *HEADS, "CPU s"], rows, note))
    section.add(gap_table(scores, splits))
    section.add(bars_table(scores))
    section.write()


def gap_table(scores: dict[str, Any], splits: int) -> Table:
    """Return means over sets, and the share of the way from one network to the oracle."""
    keys = [(name, split) for name in TESTED for split in range(splits)]
    drawn = bootstrap_gaps(splits)
    rows = []
    for shown, by in scores.items():
        means = [float(np.mean([by[key][score] for key in keys])) for score in (*SHOWN, *HARD)]
        gaps = []
        for score in SHOWN[:4]:
            if shown == PEOPLE:
                gaps.append("–")
                continue
            value, low, high = drawn[shown][score]
            gaps.append(f"{value:.2f} ({low:.2f} to {high:.2f})")
        rows.append([shown, *(f"{value:.4f}" for value in means), *gaps])
    note = (
        f"Plain means over {len(TESTED)} sets and {splits} splits. gap = (one network - method) / "
        f"(one network - oracle), of these means: 0 is `{REFERENCE}`, 1 is `{ORACLE}` (ten bagged "
        "networks that learn the shares). In brackets 95 % intervals from a bootstrap of the test "
        "items within every set and split; they cover neither the choice of the sets nor that of "
        "training. MD rewards sharpness rather than shares: its gap is small and unstable. " + KEPT
    )
    heads = ["method", *HEADS, "gap MD", "gap JSD", "gap USQ", "gap CE"]
    return Table("All sets together", heads, rows, note)


def bootstrap_gaps(splits: int, draws: int = 400) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return gaps with intervals: test items are resampled, the same for all methods."""
    random, total = np.random.default_rng(0), {}
    for name in TESTED:
        for split in range(splits):
            votes = votes_of(name, split)
            size = len(votes)
            weight = random.multinomial(size, np.full(size, 1 / size), draws) / size
            weight = np.concatenate([np.full((1, size), 1 / size), weight])
            q = measures.shares_of(votes)
            for shown, spec, what in ROWS:
                p = measured(name, split, spec)[what]
                each = {
                    "manhattan": measures.manhattan(p, q),
                    "jensen_shannon": measures.jensen_shannon(p, q),
                    "unbiased_squared": measures.unbiased_squared(p, votes),
                    "cross_entropy": measures.cross_entropy(q, p),
                }
                for score, values in each.items():
                    position = total.setdefault(shown, {})
                    position[score] = position.get(score, 0) + weight @ values
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for shown, by in total.items():
        found[shown] = {}
        for score, values in by.items():
            ref, best = total[REFERENCE][score], total[ORACLE][score]
            gap = (ref - values) / (ref - best)
            low, high = np.quantile(gap[1:], [0.025, 0.975])
            found[shown][score] = (float(gap[0]), float(low), float(high))
    return found


def bars_table(scores: dict[str, Any]) -> Table:
    """Return the default compared with the floor and one network, set by set."""
    rows = []
    for name in TESTED:
        row: list[Any] = [name]
        for score in ("unbiased_squared", "cross_entropy"):
            mean = {
                shown: float(np.mean([v[score] for (of, _), v in by.items() if of == name]))
                for shown, by in scores.items()
            }
            row += [f"{mean[shown]:.4f}" for shown in ("auto", FLOOR, REFERENCE, ORACLE)]
        rows.append(row)
    heads = ["set", *(f"{score} {of}" for score in ("USQ", "CE") for of in
                      ("auto", "floor", "one network", "oracle"))]  # fmt: skip
    worse = [
        row[0]
        for row in rows
        if any(float(row[at]) > min(float(row[at + 1]), float(row[at + 2])) for at in (1, 5))
    ]
    note = f"Sets on which auto is worse than floor or one network: {', '.join(worse) or 'none'}."
    return Table("The default set by set", heads, rows, note)


def main() -> None:
    """Measure, and write the page."""
    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--parts", default="sets," + ",".join(PARTS))
    summary.add_argument("--splits", type=int, default=SPLITS)
    summary.add_argument("--only", help="measure these sets, the main methods first; write no page")
    given = summary.parse_args()
    import torch

    torch.set_num_threads(1)
    if given.only:
        specs = dict.fromkeys(spec for _, spec, _ in ROWS)
        for group in ([one for one in specs if one in FIRST], specs):
            for split in range(given.splits):
                for name in given.only.split(","):
                    for spec in group:
                        measured(name, split, spec)
        return
    for part in given.parts.split(","):
        sets(given.splits) if part == "sets" else PARTS[part]()


if __name__ == "__main__":
    main()
