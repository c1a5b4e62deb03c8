"""What the default would be if its set had no say: `python benchmarks/pool_choice.py`.

Members of the pool, whether their evidence is tempered, their temperature and the equal part of the
weights are chosen on 22 sets with known truth, by mean accuracy or by mean log loss, and scored on
the one left out. Only what is in the table of settings is chosen so; that a pool is linear, and
which settings are worth trying, was decided in sight of all sets.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from calibration import Scores, known_items, left_out, scores, summary
from dissensus import aggregate, aggregators
from dissensus._content import content_sample
from dissensus.aggregation import auto
from dissensus.calibration import EXPONENT, label_temperature, temper
from dissensus.heldout import held_out, mixture_weights, stopped_early
from gold_sets import SETS, load
from pages import Section, Table

CROSSED, LEVELS = auto.MEMBERS[-1], auto.MEMBERS[-2]
CROSSED_EFFECTS = (
    (),
    (CROSSED,),
    *(
        (f"crossed-effects[max_iter=12,strength={own},item_strength={item}]",)
        for own, item in ((1, 4), (2, 2), (2, 8), (4, 4))
    ),
)
TWO_LEVELS = ((LEVELS,), ("two-level[max_iter=20]",))
OTHERS = (
    auto.MEMBERS[:-2],
    (*auto.MEMBERS[:-2], "bcc", "zbs", "catd"),
    tuple(one for one in auto.MEMBERS[:-2] if one not in ("wawa", "one-coin")),
)
MEMBERS = [sum(parts, ()) for parts in product(OTHERS, TWO_LEVELS, CROSSED_EFFECTS)]
ALL = list(dict.fromkeys(spec for members in MEMBERS for spec in members))
EVIDENCE = (None, auto._SCALE)  # temperature of the members while weights are found
SCALES, EQUAL = (2.5, 3.0, 3.5), (0.0, 0.1, 0.3)
SETTINGS = list(product(MEMBERS, EVIDENCE, SCALES, EQUAL))
PRESENT = (auto.MEMBERS, auto._SCALE, auto._SCALE, auto._EQUAL)


def measured(name: str) -> tuple[list[Scores], float, Scores]:
    """Return the scores of every setting on a set, its best present member, and majority vote."""
    annotations, truth = load(name)
    item, true = known_items(annotations, truth)
    methods = [stopped_early(aggregators.create(spec)) for spec in ALL]
    posterior = [method.fit(annotations).posterior[item] for method in methods]
    best = max(scores(posterior[ALL.index(spec)], true).accuracy for spec in auto.MEMBERS)
    sample = content_sample(annotations, auto._SAMPLE, 0)
    weight = {}
    for scale in EVIDENCE:
        left = held_out(sample, methods, folds=auto.Auto().folds, scale=scale).probability
        for members in MEMBERS:
            weight[members, scale] = mixture_weights(left[[ALL.index(one) for one in members]])
    tempered: dict[float, list[Any]] = {}
    for scale in SCALES:
        temperature = label_temperature(annotations.labels_per_item[item], scale)
        tempered[scale] = [temper(one, temperature) for one in posterior]
    found = []
    for members, evidence, scale, equal in SETTINGS:
        each = (1 - equal) * weight[members, evidence] + equal / len(members)
        parts = (tempered[scale][ALL.index(one)] for one in members)
        pooled = sum(share * part for share, part in zip(each, parts, strict=True))
        found.append(scores(pooled, true))
    print(name, flush=True)
    return found, best, scores(aggregate(annotations, "majority").posterior[item], true)


def main() -> None:
    """Run the study and write its section."""
    section = Section("choice of the pool", "CALIBRATION.md")
    found, best, majority = zip(*map(measured, SETS), strict=True)
    now = SETTINGS.index(PRESENT)
    rows = [summary("auto as it is", [each[now] for each in found], best, majority)]
    chosen = {}
    for what, key in (
        ("accuracy", lambda one: -one.accuracy),
        ("log loss", lambda one: one.log_loss),
    ):
        losses = np.array([[key(one) for one in each] for each in found]).T  # (setting, set)
        which = chosen[what] = left_out(losses)
        outside = [each[setting] for each, setting in zip(found, which, strict=True)]
        rows.append(summary(f"every choice without the set, by {what}", outside, best, majority))
    means = 100 * np.array([[one.accuracy for one in each] for each in found]).mean(axis=0)
    low, middle, high = np.quantile(means, (0.1, 0.5, 0.9))
    note = (
        f"{len(SETTINGS)} settings: {len(MEMBERS)} lists of members, evidence of members as they "
        f"are or tempered, temperature {SCALES} with exponent {EXPONENT}, equal part {EQUAL}. "
        f"Mean accuracies are {means.min():.2f} to {means.max():.2f}; eight of ten are between "
        f"{low:.2f} and {high:.2f}, half above {middle:.2f}. Without a set, "
        + " and ".join(
            f"{len(set(which))} settings are chosen by {what}" for what, which in chosen.items()
        )
        + ". Regret is to the best member of the present pool."
    )
    columns = ["default", "accuracy", "log loss", "ECE", "|gap|", "regret", "worst"]
    section.add(Table("Chosen without the set", [*columns, "below majority"], rows, note))
    section.write()


if __name__ == "__main__":
    main()
