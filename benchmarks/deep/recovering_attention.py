"""Studies of recovery: simulated texts with two spans, attention of heads, figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from dissensus import Annotations
from dissensus.deep.nn.features import Features, features_of
from dissensus.deep.recovery.evaluation import soft_scores
from dissensus.registry import recoverers
from pages import Section, Table
from pair_test import attention_of, pair_test
from recovering_ground import (
    FLOOR,
    ORACLE,
    PAGE,
    ROWS,
    fitted,
    loaded,
    measured,
    soft_set_of,
    stored,
    votes_of,
)
from soft_sets import split_of


def spans() -> None:
    """Texts with evidence for both sides, whose true split is known."""
    section = Section("two spans", PAGE)
    texts, share = two_spans(1000, np.random.default_rng(0))
    votes = np.random.default_rng(1).binomial(5, share)
    table = np.stack([5 - votes, votes], axis=1)
    label = (votes > 2).astype(int)
    item = np.repeat(np.arange(1000), 5)
    annotations = Annotations.from_codes(
        item, np.tile(np.arange(5), 1000), (np.tile(np.arange(5), 1000) < votes[item]).astype(int),
        items=1000, annotators=5, classes=2,
    )  # fmt: skip
    train, test = np.arange(800), np.arange(800, 1000)

    def features() -> Features:
        return features_of(texts, "minilm", tokens=True, raw=True)

    rows = []
    tuned = "seedbert[n=5,layers=2,lr=5e-5]"
    chosen_rows = [row for row in ROWS if "oracle" not in row[0] and row[0] != FLOOR]
    chosen_rows += [("seedbert, last 2 layers, mean", tuned, "proba"),
               ("seedbert, last 2 layers, votes", tuned, "votes"),
               (ORACLE, "ldl", "proba")]  # fmt: skip
    chosen_rows = list(dict.fromkeys(chosen_rows))
    disagreement = 1 - np.abs(2 * share[test] - 1)
    for shown, spec, what in chosen_rows:
        result = stored(
            f"spans-{spec}",
            lambda spec=spec: fitted(features(), annotations, label, train, test, spec, 0),
        )
        p = result[what]
        summary = soft_scores(p, table[test])
        rank = _spearman(p[:, 1], share[test])
        doubt = _spearman(1 - np.abs(2 * p[:, 1] - 1), disagreement)
        off = float(np.abs(p[:, 1] - share[test]).mean())
        values = rank, doubt, off, summary["unbiased_squared"], summary["accuracy"]
        rows.append([shown, *(f"{value:.3f}" for value in values)])
    note = (
        "1000 made-up texts, each with praise and blame of some strength; a person reads one of "
        "the two, praise with a probability that grows with the difference of strengths; five "
        "people, their majority is shown for 800. Spearman with the true share, and of doubt with "
        "true doubt, on the other 200."
    )
    columns = [
        "method",
        "Spearman of share",
        "Spearman of doubt",
        "mean distance",
        "USQ",
        "accuracy",
    ]
    section.add(Table("Which span people read", columns, rows, note))
    section.write()


def _spearman(one: Any, other: Any) -> float:
    if np.ptp(one) < 1e-12:
        return float("nan")
    return float(spearmanr(one, other).statistic)


def two_spans(count: int, random: np.random.Generator) -> tuple[list[str], Any]:
    """Return texts with praise and blame, and the share of people who read the praise."""
    strength = {"slightly": 0.0, "rather": 1.0, "very": 2.0, "extremely": 3.0}
    good = ["charming", "helpful", "tasty", "clever", "lovely", "reliable", "warm", "funny"]
    bad = ["dull", "noisy", "rude", "bland", "slow", "broken", "cold", "silly"]
    things = ["the waiter was", "the room was", "the film was", "the soup was", "the guide was",
              "the music was", "the train was", "the tale was"]  # fmt: skip
    texts, share = [], []
    words = list(strength)
    for _ in range(count):
        one, other = (words[int(random.integers(4))] for _ in range(2))
        first, second = random.choice(things, 2, replace=False)
        praise = f"{first} {one} {random.choice(good)}"
        blame = f"{second} {other} {random.choice(bad)}"
        spans_ = [praise, blame] if random.random() < 0.5 else [blame, praise]
        texts.append(f"{spans_[0]} and {spans_[1]}")
        share.append(1 / (1 + np.exp(-(strength[one] - strength[other]))))
    return texts, np.array(share)


def attention() -> None:
    """Whether heads that vote differently attend elsewhere."""
    section = Section("attention of heads", PAGE)
    rows = []
    for name in ("hs_brexit", "mp_en", "gwsd"):
        result = stored(f"attention-{name}", lambda n=name: attention_test(n, "attention-heads"))
        rows.append([name, *(float(v) for v in result["values"])])
    note = (
        "Five attention heads on split 0: Jensen-Shannon divergence (bits) of the attention of two "
        "heads to the words of a test item, where they vote differently and where they vote alike; "
        "p by permuting the votes of every item among the heads (2000 permutations)."
    )
    columns = ["set", "vote differently", "vote alike", "p", "pairs", "pairs alike"]
    section.add(Table("Attending elsewhere", columns, rows, note))
    section.write()


def attention_test(name: str, spec: str) -> dict[str, Any]:
    data, features = loaded(name)
    parts = split_of(len(data.texts), 0)
    train = np.sort(np.concatenate([parts.train, parts.valid]))
    result: Any = recoverers.create(spec).fit(
        features.take(train), data.label[train], n_classes=data.annotations.n_classes, seed=0
    )
    there = features.take(parts.test)
    attention = attention_of(result, there)  # (member, item, token)
    votes = result.members(there).argmax(axis=2).T
    test = pair_test(list(attention.transpose(1, 0, 2)), votes)
    return {"values": [test.different, test.equal, test.p_value, *test.pairs]}


def figures() -> None:
    """Draw splits and reliability of one set, for the docs."""
    from dissensus.deep.recovery.sections import reliability_figure, splits_figure

    folder = Path(__file__).parents[2] / "docs" / "images"
    data = soft_set_of("gwsd")
    test = split_of(len(data.texts), 0).test
    votes = votes_of("gwsd", 0)
    p = measured("gwsd", 0, "auto")["proba"]
    names = [data.texts[item] for item in test]
    classes = data.annotations.classes.tolist()
    splits_figure(p, votes, items=names, classes=classes).save(folder / "recover-splits.png")
    lines = {
        "auto": p,
        "one network": measured("gwsd", 0, "single")["proba"],
        "votes of ten seeds": measured("gwsd", 0, "seeds")["votes"],
        "oracle": measured("gwsd", 0, "ldl")["proba"],
    }
    reliability_figure(lines, votes).save(folder / "recover-reliability.png")
