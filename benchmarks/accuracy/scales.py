"""The scale that is detected for the labels of every shared set.

    python benchmarks/run.py accuracy scales ../shared/data

The second table shows the rule on other codes of the same labels: classes of unordered sets in 200
random orders, where the share taken for an ordinal scale should be near 3 %, and ordered ones among
fewer items.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dissensus.answers.annotations import Annotations
from dissensus.errors import DataError
from dissensus.formats import examine
from dissensus.formats.scales import ordered_by, pair_counts

UNORDERED = (
    *("cifar10n", "cifar10s", "dog", "face4", "labelme", "reuters_crowd", "weather_amt"),
    *("weather_cf", "music", "jobs_q1", "jobs_q2", "jobs_q3", "subjective_discourse", "alt_wax"),
)
ORDERED = ("alt_10k_prompts", "alt_summeval", "lewidi_csc", "lewidi_paraphrase", "s_adult")
SIZES = (50, 100, 200, 400)  # items
REPEATS = 200


def main(folder: str) -> None:
    """Print both tables."""
    known: dict[str, Annotations] = {}
    for file in sorted(Path(folder).glob("*/answers.csv.gz")):
        name = file.parent.name
        try:
            reading = examine(file)
        except DataError:
            continue  # spans, boxes, rankings
        known[name] = reading.annotations
        classes = known[name].classes.tolist()
        print(f"{name:24} {known[name].scale:9} {len(classes):6} classes  {reading.reason[:80]}")
    rng = np.random.default_rng(0)
    print("\nunordered classes in random orders: share taken for an ordinal scale")
    shares = []
    for name in UNORDERED:
        pairs = pair_counts(known[name].votes())
        orders = (rng.permutation(len(pairs)) for _ in range(REPEATS))
        found = [ordered_by(pairs[np.ix_(one, one)]).scale == "ordinal" for one in orders]
        shares.append(np.mean(found))
        print(f"{name:24} {shares[-1]:.3f}")
    print(f"{'mean':24} {np.mean(shares):.3f}")
    print("\nordered classes: share taken for an ordinal scale, by items", *SIZES)
    for name in ORDERED:
        votes = known[name].recode("GPRX").votes() if name == "s_adult" else known[name].votes()
        row = []
        for size in SIZES:
            draws = (rng.choice(len(votes), size, replace=False) for _ in range(REPEATS))
            found = [ordered_by(pair_counts(votes[one])).scale == "ordinal" for one in draws]
            row.append(f"{np.mean(found):.2f}")
        print(f"{name:24} {'  '.join(row)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
