"""Shares and means beside cje-eval.

Run it with `python benchmarks/run.py judge judge_cje`, where it is installed.

The same resamples for all: n items of one person's labels each, the judge's labels on all items.
Coverage of 95 % intervals, and their width relative to people's own labels.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from dissensus.base.probability import proportion
from dissensus.judging.true_mean import powered_mean
from dissensus.judging.true_shares import stratified_share
from judge import _peer, load, one_label
from pages import Section, Table

CASES = (
    ("alt_cebab_aspects", "Positive"),
    ("alt_cebab_aspects", "Negative"),
    ("alt_framing", "yes"),
)
N, RESAMPLES = 50, 80


def cje_interval(cje: Any, judge: Any, known: dict[int, float]) -> tuple[float, float]:
    """Return the interval of the mean label by cje-eval."""
    rows = [
        {"prompt_id": str(i), "judge_score": float(s), "oracle_label": known.get(i)}
        for i, s in enumerate(judge)
    ]
    found = cje.analyze_dataset(fresh_draws_data={"all": rows})
    low, high = found.confidence_interval(alpha=0.05)
    return float(np.ravel(low)[0]), float(np.ravel(high)[0])


def main() -> None:
    cje = _peer("cje")
    if cje is None:
        raise SystemExit("cje-eval is not installed")
    logging.disable(logging.WARNING)
    rows = []
    for name, label in CASES:
        rng, data = np.random.default_rng(0), load(name)
        code = data.classes.tolist().index(label)
        says = data.judge_repeats[data.judge_names.index("gpt-4o")][0].label == code
        found: dict[str, list[tuple[bool, float]]] = {}
        for repeat in range(RESAMPLES):
            y = (one_label(data, rng) == code).astype(float)
            chosen, truth = rng.choice(len(y), N, replace=False), float(y.mean())
            rest, f = np.setdiff1d(np.arange(len(y)), chosen), says.astype(float)
            wilson = proportion(np.array([y[chosen].sum()]), np.array([float(N)]))
            ends = {
                "people": (float(wilson.low[0]), float(wilson.high[0])),
                "strata": stratified_share(y[chosen], says[chosen], says, seed=repeat)[1:],
                "PPI++ t": powered_mean(y[chosen], f[chosen], f[rest])[1:],
            }
            if 0 < y[chosen].sum() < N:
                known = dict(zip(chosen.tolist(), y[chosen].tolist(), strict=True))
                ends["cje-eval"] = cje_interval(cje, f, known)
            for method, (low, high, *_) in ends.items():
                found.setdefault(method, []).append((low <= truth <= high, high - low))
        wide = np.mean([width for _, width in found["people"]])
        cells = [
            f"{np.mean([one for one, _ in each]):.3f} ({np.mean([w for _, w in each]) / wide:.2f})"
            for each in found.values()
        ]
        rows.append((name, label, N, *cells))
    section = Section("judge beside cje-eval", "judge")
    columns = ("set", "class", "n", *found)
    note = f"{RESAMPLES} resamples; cje-eval only where both outcomes are among the labels."
    section.add(Table("Class shares, judge gpt-4o", columns, rows, note))
    section.write()


if __name__ == "__main__":
    main()
