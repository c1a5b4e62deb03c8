"""Votes and weighted votes: against plain loops, the notes' right-if lines, published numbers."""

import json
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import Annotations, DataError, MethodError, aggregate, aggregators, evaluate
from dissensus.aggregation import GoldMajority, MMsr, Plantnet, TwoThirds, Weighted
from dissensus.aggregation.m_msr import complete
from dissensus.readers.side_tables import read_authors, read_scores, read_skills
from dissensus.simulation._assign import assign_loads
from tests.support import annotation_rows, relation, shared, shared_truth

LOG_2_1 = math.log(2.1)


def answers_of(annotations: Annotations) -> list[tuple[int, int, int]]:
    columns = (annotations.item, annotations.annotator, annotations.label)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def plain_scores(annotations: Annotations, weight) -> np.ndarray:
    score = np.zeros((annotations.n_items, annotations.n_classes))
    for item, annotator, label in answers_of(annotations):
        score[item, label] += weight[annotator]
    return score


def plain_accuracy(annotations: Annotations, score, gold=None) -> np.ndarray:
    """Return agreement with the best classes of scores, split where several are best."""
    right, count = np.zeros(annotations.n_annotators), np.zeros(annotations.n_annotators)
    for item, annotator, label in answers_of(annotations):
        best = np.flatnonzero(score[item] >= score[item].max() - 1e-9)
        if gold and annotations.items[item] in gold:
            best = np.array([annotations.classes.tolist().index(gold[annotations.items[item]])])
        right[annotator] += (label in best) / len(best)
        count[annotator] += 1
    return right / count


def plain_shares(annotations: Annotations, weight) -> np.ndarray:
    """Return shares of weight; a negative vote counts for every other class."""
    share = np.zeros((annotations.n_items, annotations.n_classes))
    for item, annotator, label in answers_of(annotations):
        if weight[annotator] >= 0:
            share[item, label] += weight[annotator]
        else:
            share[item] -= weight[annotator]
            share[item, label] += weight[annotator]
    for item, row in enumerate(share):
        if row.sum() < 1e-12:
            share[item] = annotations.votes()[item]
    return share / share.sum(axis=1, keepdims=True)


def plain_rounds(annotations: Annotations, weigh, rounds: int) -> np.ndarray:
    """Return weights after rounds of voting and weighing."""
    score = annotations.votes()
    for _ in range(rounds):
        weight = weigh(plain_accuracy(annotations, score))
        score = plain_scores(annotations, weight)
        silent = [
            not any(weight[a] for i, a, _ in answers_of(annotations) if i == item)
            for item in range(annotations.n_items)
        ]
        score[silent] = annotations.votes()[silent]
    return weight


@given(rows=annotation_rows(40))
def test_wawa_equals_a_plain_implementation(rows):
    annotations = relation(rows)
    accuracy = plain_accuracy(annotations, annotations.votes())
    result = aggregate(annotations, "wawa")
    np.testing.assert_allclose(result.params.weight, accuracy, atol=1e-9)
    np.testing.assert_allclose(result.quality, accuracy, atol=1e-9)
    np.testing.assert_allclose(result.posterior, plain_shares(annotations, accuracy), atol=1e-9)


@pytest.mark.parametrize("rounds", [1, 3])
@settings(max_examples=50)
@given(rows=annotation_rows(40))
def test_iwmv_equals_a_plain_implementation(rounds, rows):
    annotations = relation(rows)
    for kind, weigh in (
        ("accuracy", lambda accuracy: accuracy),
        ("li-yu", lambda accuracy: annotations.n_classes * accuracy - 1),
    ):
        result = aggregate(annotations, f"iwmv[weights={kind},max_iter={rounds}]")
        weight = plain_rounds(annotations, weigh, rounds)
        np.testing.assert_allclose(result.params.weight, weight, atol=1e-9)
        np.testing.assert_allclose(result.posterior, plain_shares(annotations, weight), atol=1e-9)


@settings(max_examples=50)
@given(rows=annotation_rows(40))
def test_log_odds_equal_a_plain_implementation(rows):
    annotations = relation(rows)
    labels, others = annotations.labels_per_annotator, max(annotations.n_classes - 1, 1)

    def weigh(accuracy):
        p = (accuracy * labels + 0.5) / (labels + 0.5 * (others + 1))
        return np.log(p * others / (1 - p))

    weight = plain_rounds(annotations, weigh, 1)
    result = aggregate(annotations, "log-odds[smoothing=0.5,max_iter=1]")
    np.testing.assert_allclose(result.params.weight, weight, atol=1e-9)
    heard = plain_scores(annotations, np.abs(weight)).sum(axis=1) > 1e-9
    odds = np.exp(plain_scores(annotations, weight))
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.posterior[heard], expected[heard], atol=1e-9)


@settings(max_examples=30)
@given(rows=annotation_rows(40))
def test_zero_based_skill_equals_a_plain_implementation(rows):
    annotations = relation(rows)
    skill, step = np.full(annotations.n_annotators, 1 / annotations.n_classes + 1e-5), 1.0
    for turn in range(1, 31):
        if turn % 4 == 0:
            step *= 0.5
        skill = skill + step * (
            plain_accuracy(annotations, plain_scores(annotations, skill)) - skill
        )
    result = aggregate(annotations, "zbs[max_iter=30,every=4]")
    np.testing.assert_allclose(result.params.weight, skill, atol=1e-9)
    np.testing.assert_allclose(result.posterior, plain_shares(annotations, skill), atol=1e-9)


@settings(max_examples=30)
@given(rows=annotation_rows(40))
def test_wds_weighs_votes_by_the_diagonal_of_dawid_skene(rows):
    annotations = relation(rows)
    confusion = aggregate(annotations, "dawid-skene").params.confusion
    score = np.zeros((annotations.n_items, annotations.n_classes))
    for item, annotator, label in answers_of(annotations):
        score[item, label] += confusion[annotator, label, label]
    expected = score / score.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(aggregate(annotations, "wds").posterior, expected, atol=1e-9)


def plain_kos(annotations: Annotations, rounds: int) -> np.ndarray:
    """Return the sum of messages to every item, edge by edge; no repeats."""
    sign = {(i, a): 2 * label - 1 for i, a, label in answers_of(annotations)}
    trust = dict.fromkeys(sign, 1.0)
    for _ in range(rounds):
        lean = {
            (i, a): sum(sign[j, b] * trust[j, b] for j, b in sign if j == i and b != a)
            for i, a in sign
        }
        trust = {
            (i, a): sum(sign[j, b] * lean[j, b] for j, b in sign if b == a and j != i)
            for i, a in sign
        }
        size = math.sqrt(sum(value**2 for value in trust.values()) / len(trust)) or 1.0
        trust = {edge: value / size for edge, value in trust.items()}
    score = np.zeros(annotations.n_items)
    for (item, annotator), value in trust.items():
        score[item] += sign[item, annotator] * value
    score[np.abs(score) < 1e-9] = 0
    votes = annotations.votes()
    return -score if np.sign(score) @ (votes[:, 1] - votes[:, 0]) < 0 else score


@settings(max_examples=30)
@given(rows=annotation_rows(25, classes="01"))
def test_kos_equals_a_plain_implementation(rows):
    annotations = relation({row[:2]: row for row in rows}.values(), classes="01")
    score = plain_kos(annotations, 3)
    result = aggregate(annotations, "kos[max_iter=3]")
    clear = score != 0
    np.testing.assert_array_equal(result.label[clear], score[clear] > 0)


def test_labels_that_are_repeated_are_one_edge_for_kos():
    rows = [("a", "x", "0"), ("a", "y", "0"), ("b", "x", "1"), ("b", "y", "1"), ("b", "z", "0")]
    there = aggregate(relation([*rows, ("a", "x", "0")]), "kos")
    assert there.labels.tolist() == ["0", "1"]
    lone = [("a", "x", "0"), ("a", "x", "0"), ("b", "y", "1"), ("b", "z", "1")]
    assert aggregate(relation(lone), "kos").params.weight.tolist()[0] == 0


def hammers(share: float, seed: int) -> tuple[Annotations, np.ndarray]:
    """Return a random regular design, nine of each, in which a share of annotators is right."""
    rng = np.random.default_rng(seed)
    who = assign_loads(500, np.full(500, 9), rng).astype(int)
    truth, good = rng.integers(2, size=500), rng.random(500) < share
    annotations = np.where(good[who], truth[:, None], rng.integers(2, size=who.shape))
    item = np.repeat(np.arange(500), 9)
    made = Annotations.from_codes(
        item, who.ravel(), annotations.ravel(), items=500, annotators=500, classes=2
    )
    return made, truth


@pytest.mark.parametrize(("share", "kos", "majority"), [(0.3, 0.070, 0.182), (0.5, 0.007, 0.052)])
@pytest.mark.parametrize("begin", ["ones", "random"])
def test_kos_on_a_random_regular_graph(share, kos, majority, begin):
    """Seeds differ by .014 and .023 (standard deviation) at .3, by .004 and .015 at .5."""
    errors = []
    for seed in range(5):
        annotations, truth = hammers(share, seed)
        labels = [
            aggregate(annotations, name).label for name in (f"kos[begin={begin}]", "majority")
        ]
        errors.append([np.mean(label != truth) for label in labels])
    found = np.mean(errors, axis=0)
    assert found[0] == pytest.approx(kos, abs=0.015)
    assert found[1] == pytest.approx(majority, abs=0.025)


def test_kos_chooses_between_two_classes():
    with pytest.raises(MethodError, match="kos chooses between 2 classes, and there are 3"):
        aggregate(relation([("a", "x", "0"), ("a", "y", "1"), ("a", "z", "2")]), "kos")


PUBLISHED = {  # Wawa, IWMV, ZBS, KOS
    "labelme": (0.774, 0.774, 0.774, None),
    "sentiment_polarity": (0.8950, 0.9052, 0.8946, 0.8192),
    "bluebirds": (0.7593, 0.7222, 0.7593, 0.7222),
    "d_product": (0.8966, 0.9274, 0.8966, 0.8955),
    "dog": (0.8290, 0.8302, 0.8302, None),
    "face4": (0.6301, 0.6301, 0.6301, None),
    "rte": (0.9213, 0.9275, 0.9213, 0.50),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_weighted_votes_on_public_data(name):
    annotations, truth = shared(name), shared_truth(name)
    for method, expected in zip(("wawa", "iwmv", "zbs", "kos"), PUBLISHED[name], strict=True):
        if expected is not None:
            scores = evaluate(aggregate(annotations, method), truth, resamples=0).scores
            assert scores["accuracy"].value == pytest.approx(expected, abs=0.003), method


@pytest.mark.parametrize(
    ("name", "expected"),
    [("labelme", 0.775), ("bluebirds", 0.759), ("dog", 0.830), ("rte", 0.905), ("face4", 0.632)],
)
def test_wds_on_public_data(name, expected):
    result = aggregate(shared(name), "wds[smoothing=0,tol=1e-9,max_iter=3000]")
    scores = evaluate(result, shared_truth(name), resamples=0).scores
    assert scores["accuracy"].value == pytest.approx(expected, abs=0.003)


@given(rows=annotation_rows())
def test_equal_weights_are_plain_votes(rows):
    annotations = relation(rows)
    plain = aggregate(annotations, "naive-soft")
    for name in ("weighted", "weighted[default=0.3]", "gold-majority"):
        result = aggregate(annotations, name)
        np.testing.assert_allclose(result.posterior, plain.posterior, atol=1e-12)
        assert result.labels.tolist() == plain.labels.tolist()


@given(rows=annotation_rows(annotators="wxy"), more=annotation_rows(annotators="z"))
def test_a_weight_of_zero_has_no_influence(rows, more):
    skills = Weighted(skills={"w": 0.9, "x": 0.5, "y": 2, "z": 0})
    alone, beside = (
        skills.fit(relation(given_rows, items="abcde", classes="012"))
        for given_rows in (rows, rows + more)
    )
    heard = alone.annotations.labels_per_item > 0
    np.testing.assert_allclose(alone.posterior[heard], beside.posterior[heard], atol=1e-12)


def test_a_negative_weight_counts_for_every_other_class():
    annotations = relation([("a", "x", "0"), ("a", "y", "1")], classes="012")
    result = Weighted(skills={"x": 1, "y": -1}).fit(annotations)
    assert result.posterior.tolist() == [[2 / 3, 0, 1 / 3]]
    only = Weighted(skills={"x": -1}).fit(relation([("a", "x", "0")], classes="01"))
    assert only.labels.tolist() == ["1"]


def test_unanimous_annotators_are_all_skilled():
    annotations = relation([(item, who, item) for item in "012" for who in "xyz"])
    for name in ("wawa", "zbs", "iwmv[weights=accuracy]"):
        assert aggregate(annotations, name).quality.tolist() == [1, 1, 1]


def test_an_adversary_is_used_where_weights_may_be_negative():
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=400)
    probability = np.array([0.1, 0.8, 0.75, 0.7, 0.65])
    annotations = np.where(rng.random((400, 5)) < probability, truth[:, None], 1 - truth[:, None])
    made = Annotations.from_matrix(annotations)
    weights = {
        name: aggregate(made, name).params.weight[0] for name in ("wawa", "iwmv", "log-odds")
    }
    assert weights["wawa"] > 0
    assert weights["iwmv"] < -0.5
    assert weights["log-odds"] < -1.5
    for name in ("iwmv", "log-odds", "m-msr"):
        result = aggregate(made, name)
        assert np.mean(result.label == truth) > np.mean(aggregate(made, "wawa").label == truth)
        assert result.quality[0] < 0.25


def test_gold_teaches_the_weights():
    rows = [(f"{n}", who, "0" if who < "c" else "1") for n in range(6) for who in "abcd"]
    annotations = relation(rows)
    for name in ("wawa", "iwmv", "log-odds", "zbs", "gold-majority", "m-msr", "kos", "wds"):
        for label in "01":
            result = aggregate(annotations, name, gold={"0": label, "1": label, "2": label})
            assert result.labels.tolist() == [label] * 6, name
            better = result.quality[:2] if label == "0" else result.quality[2:]
            worse = result.quality[2:] if label == "0" else result.quality[:2]
            assert better.min() > worse.max(), name


def test_the_known_part_of_gold_is_laplace_smoothed():
    rows = [("a", "x", "0"), ("a", "y", "1"), ("b", "x", "0"), ("b", "z", "1"), ("c", "z", "1")]
    result = aggregate(relation(rows), "gold-majority", gold={"a": "0", "b": "0"})
    assert result.params.weight[:3].tolist() == pytest.approx([3 / 4, 1 / 3, 1 / 3])
    assert result.quality.tolist() == result.params.weight.tolist()
    stranger = [*rows, ("c", "new", "0")]
    by_mean = aggregate(relation(stranger), "gold-majority", gold={"a": "0"})
    assert dict(
        zip(by_mean.annotations.annotators, by_mean.params.weight, strict=True)
    ) == pytest.approx({"new": 0.5, "x": 2 / 3, "y": 1 / 3, "z": 0.5})
    summary = GoldMajority(default=0.9).fit(relation(stranger), gold={"a": "0"})
    assert summary.params.weight[summary.annotations.annotators.tolist().index("new")] == 0.9


def test_two_thirds_need_two_labels_and_two_thirds_of_them():
    annotations = Annotations.from_dict(
        {
            "one": {"x": "0"},
            "two": {"x": "1", "y": "1"},
            "split": {"x": "0", "y": "1"},
            "just": {"x": "1", "y": "1", "z": "0"},
            "less": {"v": "1", "w": "1", "x": "1", "y": "0", "z": "0"},
            "none": {},
        }
    )
    found = dict(zip(annotations.items, aggregate(annotations, "TwoThird").labels, strict=True))
    assert found == {
        "one": None,
        "two": "1",
        "split": None,
        "just": "1",
        "less": None,
        "none": None,
    }
    easy = dict(
        zip(
            annotations.items,
            TwoThirds(least_share=0.6, least_labels=1).fit(annotations).labels,
            strict=True,
        )
    )
    assert easy["one"] == "0"
    assert easy["less"] == "1"
    assert easy["split"] is None


def test_peerannots_names_are_known():
    for name in ("TwoThird", "Wawa", "IWMV", "WDS", "PlantNet", "KOS", "MMSR", "ZeroBasedSkill"):
        aggregators.create(name)
    ten = aggregators.create("IterativeWawa")
    assert (ten.weights, ten.max_iter) == ("accuracy", 10)


# Pl@ntNet


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


# M-MSR


def test_products_of_skills_are_taken_apart():
    rng = np.random.default_rng(0)
    skill = rng.uniform(0.1, 0.9, 11)
    position = np.arange(11)
    met = abs(position[:, None] - position) % 9 == 1  # a ring and some more; nothing is left out
    met[0, 5] = met[5, 0] = True
    assert met.sum(axis=1).min() < 4
    size = np.where(met, np.outer(skill, skill), 0)
    found, still = complete(size, met, 0.01, MMsr(max_iter=10_000))
    assert still
    np.testing.assert_allclose(found, skill, atol=1e-6)


def test_a_few_corrupted_rows_change_nothing():
    rng = np.random.default_rng(1)
    skill = rng.uniform(0.2, 0.9, 20)
    size = np.outer(skill, skill)
    corrupted = [3, 11, 17]
    for row in corrupted:
        size[row] = size[:, row] = rng.uniform(0, 1, 20)
    met = ~np.eye(20, dtype=bool)
    found, still = complete(np.where(met, size, 0), met, 0.01, MMsr(max_iter=10_000))
    assert still
    honest = np.setdiff1d(np.arange(20), corrupted)
    np.testing.assert_allclose(found[honest], skill[honest], atol=1e-6)


def plain_products(annotations: Annotations) -> tuple[np.ndarray, np.ndarray]:
    """Return agreement beyond probability of all pairs who share an item; no repeats."""
    given_by = defaultdict(dict)
    for item, annotator, label in answers_of(annotations):
        given_by[annotator][item] = label
    k, m = max(annotations.n_classes, 2), annotations.n_annotators
    product, met = np.zeros((m, m)), np.zeros((m, m), dtype=bool)
    for one in range(m):
        for other in range(m):
            common = given_by[one].keys() & given_by[other].keys()
            if one != other and common:
                share = np.mean([given_by[one][i] == given_by[other][i] for i in common])
                product[one, other] = (k * share - 1) / (k - 1)
                met[one, other] = True
    return product, met


def plain_mmsr(size, met, n_items, few, rounds=500):
    left, right = np.ones(len(size)), np.ones(len(size))
    for _ in range(rounds):
        for own, other in ((right, left), (left, right)):
            fresh = own.copy()
            for j in range(len(size)):
                summary = sorted(size[i, j] / other[i] for i in range(len(size)) if met[i, j])
                below = sum(value < own[j] for value in summary)
                above = sum(value > own[j] for value in summary)
                rest = summary[min(few, below) : len(summary) - min(few, above)]
                if rest:
                    fresh[j] = np.mean(rest) or 1 / math.sqrt(n_items)
            own[:] = fresh
    return left * math.sqrt(np.linalg.norm(right) / np.linalg.norm(left))


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_estimates_that_are_left_out_lie_on_their_side(rounds):
    rng = np.random.default_rng(rounds)
    size, met = rng.random((14, 14)) * 1.6, ~np.eye(14, dtype=bool)
    if rounds == 1:
        size[0] = size[:, 0] = 0  # later on, what replaces zeros depends on the scale
    size = np.where(met, np.maximum(size, size.T), 0)
    expected = plain_mmsr(size, met, 100, 13 // 2 - 1, rounds)
    found, _ = complete(size, met, 0.1, MMsr(max_iter=rounds, tol=0))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_m_msr_equals_a_plain_implementation():
    rng = np.random.default_rng(4)
    truth, skill = rng.integers(3, size=200), rng.uniform(0.3, 0.95, 10)
    annotations = np.where(
        rng.random((200, 10)) < skill, truth[:, None], rng.integers(3, size=(200, 10))
    )
    annotations[rng.random((200, 10)) < 0.4] = -1
    made = Annotations.from_matrix(annotations)
    product, met = plain_products(made)
    few = met.sum(axis=1).min() // 2 - 1
    assert few == 3
    expected = np.minimum(plain_mmsr(np.abs(product), met, 200, few), 1 - 1 / math.sqrt(200))
    result = aggregate(made, "m-msr")
    assert result.converged
    np.testing.assert_allclose(result.quality, (1 + 2 * expected) / 3, atol=1e-9)
    right = skill + (1 - skill) / 3
    np.testing.assert_allclose(result.quality, right, atol=0.12)
    weight = np.log(2 * result.quality / (1 - result.quality))
    np.testing.assert_allclose(result.params.weight, weight, atol=1e-9)


def test_annotators_who_never_met_anybody_weigh_nothing():
    rows = [(f"{n}", who, str(n % 2)) for n in range(9) for who in "xyz"]
    result = aggregate(relation([*rows, ("lonely", "w", "1")]), "m-msr")
    found = dict(zip(result.annotations.annotators, result.params.weight, strict=True))
    assert found["w"] == 0
    assert found["x"] > 0
    assert dict(zip(result.annotations.items, result.labels, strict=True))["lonely"] == "1"


def test_more_annotators_than_peers_are_measured_by_the_peers():
    rng = np.random.default_rng(6)
    truth, skill = rng.integers(2, size=600), rng.uniform(0.1, 0.95, 30)
    annotations = np.where(
        rng.random((600, 30)) < skill, truth[:, None], rng.integers(2, size=(600, 30))
    )
    annotations[:, 10:][rng.random((600, 20)) < 0.3] = -1  # the first ten have most labels
    made = Annotations.from_matrix(annotations)
    everybody, some = aggregate(made, "m-msr"), aggregate(made, "m-msr[peers=10]")
    np.testing.assert_allclose(some.quality[10:], (1 + skill[10:]) / 2, atol=0.08)
    assert np.abs(some.quality - everybody.quality).max() < 0.08
    assert np.mean(some.label == everybody.label) > 0.99


def test_m_msr_finds_adversaries():
    rng = np.random.default_rng(8)
    truth = rng.integers(2, size=500)
    probability = np.array([0.9, 0.85, 0.8, 0.8, 0.75, 0.7, 0.1, 0.2])
    annotations = np.where(rng.random((500, 8)) < probability, truth[:, None], 1 - truth[:, None])
    result = aggregate(Annotations.from_matrix(annotations), "m-msr")
    np.testing.assert_allclose(result.quality, probability, atol=0.06)


# Files


def test_skills_come_from_a_table_or_an_object(tmp_path):
    annotations = relation([("a", who, "0" if who == "x" else "1") for who in "xyz"])
    (tmp_path / "skills.csv").write_text("worker,skill\nx,3\ny,1\n")
    (tmp_path / "skills.json").write_text('{"x": 3, "y": 1}')
    for name in ("skills.csv", "skills.json"):
        result = aggregate(annotations, f"weighted[skills='{tmp_path / name}']")
        assert result.params.weight.tolist() == [3, 1, 2]  # the mean for those without
        assert result.posterior.tolist() == [[0.5, 0.5]]
    skills = str(tmp_path / "skills.csv")
    assert aggregate(annotations, Weighted(skills=skills, default=5)).params.weight[2] == 5
    with pytest.raises(MethodError, match="has not been read"):
        Weighted(skills=skills).fit(annotations)


def test_given_skills_are_kept_by_predict_and_update(tmp_path):
    method = Weighted(skills={"it's": 2, 'a "b", c': 0.5})
    assert aggregators.create(
        aggregators.describe(Weighted(skills={"x": 2, "y": 0.5}))
    ) == Weighted(skills={"x": 2, "y": 0.5})
    annotations = relation([("a", "it's", "0"), ("a", 'a "b", c', "1")])
    assert method.fit(annotations).posterior.tolist() == [[0.8, 0.2]]
    known = Weighted(skills={"x": 3, "y": 1}).fit(relation([("a", "x", "0"), ("a", "y", "1")]))
    assert known.predict(relation([("b", "x", "1"), ("b", "y", "0")])).labels.tolist() == ["1"]
    assert known.update(relation([("b", "x", "1"), ("b", "y", "0")])).labels.tolist() == ["0", "1"]


@pytest.mark.parametrize("skills", ["{", '{"x": "good"}', '{"x": NaN}', '{"x": true}'])
def test_invalid_skills_are_reported(skills):
    with pytest.raises(MethodError, match="it must look like"):
        Weighted(skills=skills).fit(relation([("a", "x", "0")]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("annotator,skill\nx,good\n", "'x' has 'good', which is not a number"),
        ("annotator,skill\nx,1\nx,2\n", "annotator 'x' appears twice"),
        ("annotator,height\nx,1\n", "no column for the skill"),
        ("annotator,skill\nx,nan\n", "'x' has 'nan', which is not a number"),
    ],
)
def test_damaged_tables_of_skills_are_reported(tmp_path, text, message):
    (tmp_path / "skills.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_skills(str(tmp_path / "skills.csv"))
    with pytest.raises(DataError, match="no such file"):
        read_skills(str(tmp_path / "none.csv"))


def test_authors_and_scores_come_in_every_form(tmp_path):
    (tmp_path / "list.txt").write_text("4\n-1\n7\n")
    (tmp_path / "table.csv").write_text("task,author\n0,4\n2,7\n")
    (tmp_path / "object.json").write_text('{"0": 4, "1": -1, "2": "7"}')
    for name in ("list.txt", "table.csv", "object.json"):
        assert read_authors(str(tmp_path / name)) == {"0": "4", "2": "7"}
    (tmp_path / "scores.csv").write_text("item,score\na,0.5\n")
    (tmp_path / "scores.json").write_text('{"a": 0.5}')
    for name in ("scores.csv", "scores.json"):
        assert read_scores(str(tmp_path / name)) == {"a": 0.5}
