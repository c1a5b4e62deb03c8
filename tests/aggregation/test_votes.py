"""Votes and weighted votes: against plain loops, the notes' right-if lines, published numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import Annotations, DataError, MethodError, aggregate, aggregators, evaluate
from dissensus.aggregation import GoldMajority, TwoThirds, Weighted
from dissensus.datasets.strategy import assign_loads
from dissensus.formats.side_tables import read_authors, read_scores, read_skills

from ..support import annotation_rows, relation, shared, shared_truth


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
    heard = alone.answers.labels_per_item > 0
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
        zip(by_mean.answers.annotators, by_mean.params.weight, strict=True)
    ) == pytest.approx({"new": 0.5, "x": 2 / 3, "y": 1 / 3, "z": 0.5})
    summary = GoldMajority(default=0.9).fit(relation(stranger), gold={"a": "0"})
    assert summary.params.weight[summary.answers.annotators.tolist().index("new")] == 0.9


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
