"""crowd-kit's embeddings, lists of labels, measures and postprocessing: what each must return."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from dissensus import DataError, OptionError
from dissensus.crowdkit import (
    HRRASA,
    RASA,
    BinaryRelevance,
    ClosestToAverage,
    DawidSkene,
    MajorityVote,
    TextHRRASA,
    TextRASA,
)
from dissensus.crowdkit.aggregation.embeddings import gleu
from dissensus.crowdkit.aggregation.utils import evaluate, evaluate_equal, get_accuracy
from dissensus.crowdkit.metrics.data import alpha_krippendorff, consistency, uncertainty
from dissensus.crowdkit.metrics.workers import accuracy_on_aggregates
from dissensus.crowdkit.postprocessing import entropy_threshold

from ..support import rows_of, shared
from .test_crowdkit import small

COLUMNS = ["task", "worker", "label"]


def answers(seed: int = 0, n_tasks: int = 30, n_workers: int = 6) -> tuple[pd.DataFrame, list]:
    """Return outputs with embeddings around a center each; the last worker is far off."""
    random = np.random.default_rng(seed)
    centers = random.normal(size=(n_tasks, 3)) + 3
    rows = [
        (task, f"w{worker}", f"{task} by {worker}", centers[task] + noise)
        for task in range(n_tasks)
        for worker in range(n_workers)
        for noise in [random.normal(scale=4.0 if worker == n_workers - 1 else 0.1, size=3)]
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "output", "embedding"]), list(centers)


def manhattan(one: np.ndarray, other: np.ndarray) -> float:
    return np.abs(one - other).sum()


@pytest.mark.parametrize("model", [ClosestToAverage(manhattan), RASA(), HRRASA()])
def test_the_answer_nearest_to_the_center_is_chosen(model):
    data, _ = answers()
    found = model.fit_predict(data)
    assert found.index.name == "task"
    assert found.columns.tolist() == ["output", "embedding"]
    assert sorted(found.index) == list(range(30))
    scores = model.fit_predict_scores(data)
    assert scores.columns.tolist() == ["output", "score", "embedding"]
    for task, one in scores.groupby("task"):
        nearest = one.iloc[one["score"].to_numpy().argmin()]
        assert found.loc[task, "output"] == nearest["output"]


@pytest.mark.parametrize("kind", [RASA, HRRASA])
def test_reliable_workers_draw_the_center(kind):
    data, centers = answers()
    model = kind().fit(data)
    assert model.skills_.idxmin() == "w5"
    assert model.skills_.drop("w5").min() > 50 * model.skills_["w5"]
    plain = np.stack([np.mean(list(one), axis=0) for _, one in data.groupby("task")["embedding"]])
    learned = np.stack(list(model.aggregated_embeddings_))
    far, near = (np.linalg.norm(one - np.stack(centers), axis=1).mean() for one in (plain, learned))
    assert near < far / 5
    assert model.loss_history_[-1] < model.tol


def test_rasa_is_at_the_fixed_point_of_its_formulas():
    from scipy.stats import chi2

    data, _ = answers()
    model = RASA(n_iter=500, tol=0.0).fit(data)
    far = dict.fromkeys(model.skills_.index, 0.0)
    for task, one in data.groupby("task"):
        weight = model.skills_[one["worker"]].to_numpy()
        center = weight @ np.stack(list(one["embedding"])) / weight.sum()
        np.testing.assert_allclose(model.aggregated_embeddings_[task], center, atol=1e-6)
        for worker, embedding in zip(one["worker"], one["embedding"], strict=True):
            far[worker] += ((embedding - center) ** 2).sum()
    expected = [chi2.isf(0.025, 30) / far[worker] for worker in model.skills_.index]
    np.testing.assert_allclose(model.skills_, expected, rtol=1e-5)


def test_known_embeddings_replace_the_center():
    data, _ = answers()
    known = pd.Series({3: data["embedding"][3 * 6 + 5]})
    for kind in (RASA, HRRASA):
        found = kind().fit_predict(data, known)
        assert found.loc[3, "output"] == "3 by 5"
    twice = pd.concat([known, known])
    with pytest.raises(DataError, match="several embeddings for a task"):
        RASA().fit(data, twice)


def test_without_iterations_the_center_is_a_mean():
    data, _ = answers()
    plain = ClosestToAverage(lambda a, b: 1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    expected = plain.fit_predict(data)["output"]
    assert RASA(n_iter=0).fit_predict(data)["output"].equals(expected)
    with pytest.raises(OptionError, match="n_iter = -1"):
        RASA(n_iter=-1).fit(data)


def test_answers_that_resemble_others_count_more():
    data, _ = answers(n_tasks=4, n_workers=3)
    data["output"] = ["the cat sat", "the cat sat", "a dog"] * 4
    model = HRRASA(lambda_emb=0.0, lambda_out=1.0, calculate_ranks=True, n_iter=0).fit(data)
    assert model.weights_["weight"].tolist() == [0.5, 0.5, pytest.approx(1e-5)] * 4
    assert model.ranks_.columns.tolist() == ["task", "output", "rank"]
    assert len(model.ranks_) == 12


def test_a_task_with_one_answer_keeps_it():
    data, _ = answers(n_tasks=3, n_workers=4)
    alone = pd.DataFrame([("one", "new", "it", np.ones(3))], columns=data.columns)
    assert HRRASA().fit_predict(alone)["output"].tolist() == ["it"]
    both = HRRASA().fit(pd.concat([data, alone]))
    assert np.isnan(both.skills_["new"])
    np.testing.assert_allclose(both.aggregated_embeddings_["one"], np.ones(3))
    without = HRRASA().fit(data)
    np.testing.assert_allclose(both.skills_.drop("new"), without.skills_)


def test_embeddings_must_be_of_one_length():
    data, _ = answers(n_tasks=1, n_workers=2)
    data["embedding"] = [np.ones(2), np.ones(3)]
    with pytest.raises(DataError, match="embeddings must be arrays of one length"):
        RASA().fit(data)
    with pytest.raises(KeyError, match="no column 'embedding'"):
        RASA().fit(data.drop(columns="embedding"))


@pytest.mark.parametrize("kind", [TextRASA, TextHRRASA])
def test_texts_are_chosen_by_their_embeddings(kind):
    texts = {"x": "aaa", "y": "aab", "z": "bbbb"}
    rows = [(task, worker, text) for task in "pq" for worker, text in texts.items()]
    data = pd.DataFrame(rows, columns=["task", "worker", "text"])

    def encoder(text: str) -> np.ndarray:
        return np.array([1.0, text.count("a"), text.count("b")])

    model = kind(encoder)
    found = model.fit_predict(data)
    assert found.name == "agg_text"
    assert found.to_dict() == {"p": "aab", "q": "aab"}
    assert model.skills_["z"] < model.skills_["x"]
    known = kind(encoder).fit_predict(data, pd.Series({"p": "bbbb"}))
    assert known["p"] == "bbbb"


def test_gleu_counts_common_runs_of_words():
    assert gleu("a b c d e", "a b c d e") == 1
    assert gleu("a b", "c d") == 0
    assert gleu("a b c", "a b") == 3 / 6  # a, b, "a b" of six runs
    assert gleu("", "") == 1


def lists() -> pd.DataFrame:
    rows = [
        *(("t1", "x", ["p", "q"]), ("t1", "y", ["p"]), ("t1", "z", ["q", "p", "r"])),
        *(("t2", "x", ["s"]), ("t2", "y", ["s", "r"]), ("t2", "z", [])),
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


@pytest.mark.parametrize("base", [MajorityVote(), DawidSkene(n_iter=5)])
def test_every_label_of_a_list_is_decided_alone(base):
    model = BinaryRelevance(base)
    found = model.fit_predict(lists())
    assert found.to_dict() == {"t1": ["p", "q"], "t2": ["s"]}
    assert (found.name, found.index.name) == ("agg_label", "task")
    assert list(model.aggregators_) == ["p", "q", "r", "s"]
    assert all(type(one) is type(base) for one in model.aggregators_.values())
    assert not hasattr(base, "labels_")  # a copy is fitted
    other = BinaryRelevance().fit(lists()[:3])
    assert set(other.aggregators_) == {"p", "q", "r"}  # and none is shared


def test_no_list_has_no_labels():
    found = BinaryRelevance().fit_predict(pd.DataFrame([], columns=COLUMNS))
    assert found.empty
    assert found.dtype == float
    with pytest.raises(OptionError, match="base_aggregator = 3 is no aggregator"):
        BinaryRelevance(3)


def test_consistency_is_the_posterior_of_the_label_under_the_skills():
    data = small()
    skills = {"v": 0.7, "w": 0.9, "x": 0.8, "y": 0.6, "z": 0.55}
    found = consistency(data, pd.Series(skills), by_task=True)
    labels = MajorityVote().fit_predict(data)
    for task, one in data.groupby("task"):
        joint = {
            true: np.prod([skills[w] if label == true else 1 - skills[w]
                           for w, label in zip(one["worker"], one["label"], strict=True)])
            for true in ("no", "yes")
        }  # fmt: skip
        assert found[task] == pytest.approx(joint[labels[task]] / sum(joint.values()))
    assert consistency(data, pd.Series(skills)) == pytest.approx(found.mean())
    assert consistency(data) == pytest.approx(consistency(data, MajorityVote().fit(data).skills_))
    with pytest.raises(AssertionError, match="DawidSkene estimates no skills"):
        consistency(data, aggregator=DawidSkene())


def test_consistency_of_many_answers_does_not_underflow():
    data = pd.DataFrame([(0, w, w % 2) for w in range(5001)], columns=COLUMNS)
    assert consistency(data, pd.Series(0.6, index=range(5001))) == pytest.approx(0.6)


def test_consistency_is_zero_where_the_answers_are_impossible():
    data = pd.DataFrame([(0, "x", "a"), (0, "y", "b")], columns=COLUMNS)
    assert consistency(data, pd.Series({"x": 1.0, "y": 1.0})) == 0.0


def test_uncertainty_is_the_entropy_of_labels():
    given = {"x": "aaa", "y": "bab"}
    rows = [(t, w, label) for w, labels in given.items() for t, label in enumerate(labels)]
    data = pd.DataFrame(rows, columns=COLUMNS)
    half = pytest.approx(np.log(2))
    by_task = uncertainty(data, aggregate=False)
    assert by_task.to_dict() == {0: half, 1: 0.0, 2: half}
    by_worker = uncertainty(data, compute_by="worker", aggregate=False)
    assert by_worker["x"] == 0
    assert by_worker["y"] == pytest.approx(-(1 / 3) * np.log(1 / 3) - (2 / 3) * np.log(2 / 3))
    assert by_worker.index.name == "worker"
    assert uncertainty(data) == pytest.approx(by_task.mean())
    half_right = pd.Series({"x": 0.75, "y": 0.75})
    shares = np.array([0.75, 0.25])
    task_one = uncertainty(data, half_right, aggregate=False)[1]
    assert task_one == pytest.approx(-(shares * np.log(shares)).sum())
    assert uncertainty(data, aggregator=MajorityVote()) > 0
    with pytest.raises(KeyError, match="no column 'item' to compute by"):
        uncertainty(data, compute_by="item")
    with pytest.raises(AssertionError, match="no skill for 1 workers, the first is 'y'"):
        uncertainty(data, pd.Series({"x": 1.0}))


def test_alpha_compares_pairs_of_answers_with_pairs_of_all():
    data = small()
    counts = data.groupby(["task", "label"]).size().unstack(fill_value=0).to_numpy()
    size = counts.sum(axis=1)
    observed = (counts * (size[:, None] - counts)).sum(axis=1) / (size - 1)
    total = counts.sum(axis=0)
    expected = (total * (total.sum() - total)).sum() / (total.sum() - 1)
    assert alpha_krippendorff(data) == pytest.approx(1 - observed.sum() / expected)
    assert alpha_krippendorff(data.assign(label="a")) == 1.0


def test_alpha_takes_any_distance():
    def jaccard(one: frozenset, other: frozenset) -> float:
        return 1 - len(one & other) / len(one | other)

    a, b, both = frozenset("a"), frozenset("b"), frozenset("ab")
    rows = [(0, "x", a), (0, "y", a), (1, "x", b), (1, "y", b), (2, "x", a), (2, "y", both)]
    data = pd.DataFrame(rows, columns=COLUMNS)
    labels = data["label"].tolist()
    within = np.mean([jaccard(labels[k], labels[k + 1]) for k in (0, 2, 4)])
    among = np.mean([jaccard(one, other) for one, other in combinations(labels, 2)])
    assert alpha_krippendorff(data, jaccard) == pytest.approx(1 - within / among)
    assert alpha_krippendorff(data) < alpha_krippendorff(data, jaccard)


def test_accuracy_is_the_share_of_right_answers():
    data = small()
    known = pd.Series({"t0": "yes", "t1": "yes"})
    assert get_accuracy(data, known) == 5 / 9
    assert get_accuracy(data, known, by="worker").tolist() == [0.5, 1.0, 1.0, 0.5, 0.0]
    by_label = get_accuracy(data, known, by="true_label")
    assert by_label.to_dict() == {"yes": 5 / 9}
    heavy = data.assign(weight=np.where(data["worker"] == "w", 3.0, 1.0))
    assert get_accuracy(heavy, known) == 9 / 13
    assert np.isnan(get_accuracy(data, pd.Series(dtype=object)))
    with pytest.raises(KeyError, match="no column 'item'; accuracies are by task, worker, label"):
        get_accuracy(data, known, by="item")


def test_accuracy_on_aggregates_is_that_against_the_vote():
    data = small()
    assert accuracy_on_aggregates(data, by="worker").to_dict() == pytest.approx(
        MajorityVote().fit(data).skills_.to_dict()
    )
    assert accuracy_on_aggregates(data) == 17 / 24
    assert accuracy_on_aggregates(data, None, pd.Series({"t3": "yes"})) == 1
    with pytest.raises(AssertionError, match="give aggregates or an aggregator"):
        accuracy_on_aggregates(data, None)


def test_predictions_are_compared_by_task():
    truth = pd.Series({"a": 1, "b": 2}).rename_axis("task").to_frame("label")
    found = truth.assign(label=[1, 1])
    assert evaluate(truth, found, evaluate_func=evaluate_equal) == 0.5
    with pytest.raises(AssertionError, match="2 tasks have a true label, 1 a prediction"):
        evaluate(truth, found[:1], evaluate_func=evaluate_equal)


def test_workers_who_always_say_the_same_are_removed():
    given = {"x": "abab", "y": "aaaa", "z": "abba", "u": "bbab", "once": "a"}
    rows = [(t, w, label) for w, labels in given.items() for t, label in enumerate(labels)]
    data = pd.DataFrame(rows, columns=COLUMNS)
    kept = entropy_threshold(data)
    assert set(kept["worker"]) == {"x", "z", "u", "once"}
    assert kept.columns.tolist() == COLUMNS
    assert kept.index.tolist() == data.index[data["worker"] != "y"].tolist()
    with pytest.warns(UserWarning, match="Removed >= 1/2 of answers"):
        few = entropy_threshold(data, percentile=100)
    assert set(few["worker"]) == {"once"}
    assert set(entropy_threshold(data, percentile=50)["worker"]) == {"x", "z", "once"}
    assert "once" not in set(entropy_threshold(data, min_answers=1)["worker"])
    assert len(entropy_threshold(data, min_answers=9)) == len(data)


def test_measures_hold_on_a_real_set():
    data = pd.DataFrame(rows_of(shared("bluebirds")), columns=COLUMNS)
    assert 0 < alpha_krippendorff(data) < 0.5
    assert 0.5 < accuracy_on_aggregates(data) < 1
    assert 0 < uncertainty(data) < np.log(2)
    assert 0.5 < consistency(data) <= 1
