"""Pl@ntNet's weighted votes: against plain loops, newcomers, authors and machines."""

import json
import math
from collections import defaultdict

import numpy as np
import pytest

from dissensus import Annotations, MethodError, aggregate
from dissensus.aggregation import Plantnet

from ..support import relation
from .test_votes import answers_of, plain_scores

LOG_2_1 = math.log(2.1)


def unanimous(count: int, more: str = "") -> Annotations:
    rows = [("a", f"w{who}", "oak") for who in range(count)]
    return relation([*rows, *(("a", f"v{n}", label) for n, label in enumerate(more))])


def test_a_newcomer_weighs_gamma_and_three_of_them_are_needed():
    assert Plantnet().weight(np.array([0.0, 1.0])).tolist() == pytest.approx([LOG_2_1, LOG_2_1])
    steps = np.diff(Plantnet().weight(np.arange(1.0, 500)))
    assert (steps > 0).all()
    three, two = (Plantnet().fit(unanimous(count)) for count in (3, 2))
    assert three.params.confidence.tolist() == pytest.approx([3 * LOG_2_1])
    assert three.params.valid.tolist() == [True]
    assert three.labels.tolist() == ["oak"]
    assert two.params.confidence.tolist() == pytest.approx([2 * LOG_2_1])
    assert two.params.valid.tolist() == [False]
    assert two.labels.tolist() == [None]
    assert Plantnet(output_unvalidated=True).fit(unanimous(2)).labels.tolist() == ["oak"]


def plain_plantnet(annotations: Annotations, author: dict, rounds: int):
    """Return experience and labels after rounds, by loops; a tie is nobody's class."""
    experience = np.zeros(annotations.n_annotators)

    def vote():
        weight = np.where(experience > 0, experience**0.5 - experience**0.2, 0) + LOG_2_1
        score = plain_scores(annotations, weight)
        best = [np.flatnonzero(row >= row.max() - 1e-9) for row in score]
        label = [int(leading[0]) if len(leading) == 1 else -1 for leading in best]
        total = score.sum(axis=1)
        valid = [r.max() > 2 and r.max() / t > 0.7 for r, t in zip(score, total, strict=True)]
        return label, valid, score

    for _ in range(rounds):
        label, valid, _ = vote()
        seen, voted = defaultdict(set), defaultdict(set)
        for item, annotator, given_class in answers_of(annotations):
            if given_class == label[item]:
                if author.get(item) != annotator:
                    voted[annotator].add(given_class)
                elif valid[item]:
                    seen[annotator].add(given_class)
        for annotator in range(annotations.n_annotators):
            further = voted[annotator] - seen[annotator]
            experience[annotator] = len(seen[annotator]) + np.round(len(further) / 10)
    return experience, *vote()


def flora(seed: int) -> tuple[Annotations, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(60, size=300)
    item, who = np.repeat(np.arange(300), 6), rng.integers(25, size=1800)
    skill = np.linspace(0.2, 0.95, 25)
    annotations = np.where(rng.random(1800) < skill[who], truth[item], rng.integers(60, size=1800))
    return (
        Annotations.from_codes(item, who, annotations, items=300, annotators=25, classes=60),
        truth,
        rng,
    )


@pytest.mark.parametrize("with_authors", [False, True])
def test_plantnet_equals_a_plain_implementation(with_authors, tmp_path):
    annotations, truth, rng = flora(2)
    author = dict(enumerate(rng.integers(25, size=300).tolist())) if with_authors else {}
    (tmp_path / "authors.txt").write_text("".join(f"{one}\n" for one in author.values()))
    method = Plantnet(authors=str(tmp_path / "authors.txt") if with_authors else None)
    result = aggregate(annotations, method)
    assert aggregate(annotations, Plantnet(authors=author)).label.tolist() == result.label.tolist()
    assert result.converged
    experience, label, valid, score = plain_plantnet(annotations, author, 40)
    assert experience.max() > 3
    np.testing.assert_array_equal(result.params.experience, experience)
    np.testing.assert_array_equal(result.params.valid, valid)
    np.testing.assert_array_equal(result.label, np.where(valid, label, -1))
    np.testing.assert_allclose(result.posterior, score / score.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(result.params.confidence, score.max(axis=1))
    assert np.mean(result.label[result.params.valid] == truth[result.params.valid]) > 0.9


def with_machine(label: str) -> Annotations:
    """Three newcomers say oak, the machine says something; on another item it is alone."""
    rows = [("a", f"w{n}", "oak") for n in range(3)] + [("a", "AI", label), ("b", "AI", "elm")]
    return relation(rows, classes=["elm", "oak"])


@pytest.mark.parametrize(
    ("ai", "label", "confidence", "share", "alone"),
    [
        ("ignored", "elm", 3 * LOG_2_1, 1.0, None),
        ("worker", "elm", 3 * LOG_2_1, 3 / 4, "elm"),
        ("worker", "oak", 4 * LOG_2_1, 1.0, "elm"),
        ("fixed", "elm", 3 * LOG_2_1, 3 * LOG_2_1 / (3 * LOG_2_1 + 2), "elm"),
        ("fixed", "oak", 3 * LOG_2_1 + 2, 1.0, "elm"),
        ("invalidating", "elm", 3 * LOG_2_1, 3 * LOG_2_1 / (3 * LOG_2_1 + 2), None),
        ("invalidating", "oak", 3 * LOG_2_1, 1.0, None),
    ],
)
def test_what_a_machine_says(ai, label, confidence, share, alone):
    method = Plantnet(ai=ai, ai_weight=2, output_unvalidated=True)
    result = method.fit(with_machine(label))
    assert result.params.confidence[0] == pytest.approx(confidence)
    assert result.params.share[0] == pytest.approx(share)
    assert result.labels.tolist() == ["oak", alone]


def test_a_machine_counts_where_it_is_sure(tmp_path):
    (tmp_path / "scores.json").write_text(json.dumps({"a": 0.9, "b": 0.1}))
    method = Plantnet(ai="confident", ai_weight=9, scores=str(tmp_path / "scores.json"))
    for threshold, label in ((0.5, "elm"), (0.95, "oak")):
        sure = Plantnet(
            ai="confident", ai_weight=9, scores=method.scores, threshold_scores=threshold
        )
        assert aggregate(with_machine("elm"), sure).labels.tolist() == [label, None]
    with pytest.raises(MethodError, match="needs scores"):
        aggregate(with_machine("elm"), "plantnet[ai=confident]")
