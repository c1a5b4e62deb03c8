import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dissensus import Annotations, DataError, Numbers, OptionError, aggregate, evaluate, write
from dissensus.base.names import as_names, numbered
from dissensus.formats import as_answers, read_predictions
from dissensus.metrics import scores as _classes
from dissensus.metrics import scores as _numbers
from dissensus.result import Predictions, Values

from ..support import run, shared, shared_truth

NUMBERS = ["mae", "rmse", "pearson", "spearman"]
SCORES = ["accuracy", "accuracy_as_labelled", "macro_f1", "log_loss", "brier", "ece"]


@st.composite
def cases(draw):
    """Predictions of three classes with coarse posteriors, so ties are common, and true codes.

    Code 3 is a class that was never predicted; -1 an item without truth.
    """
    n_items = draw(st.integers(1, 8))
    counts = st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any)
    votes = np.array(draw(st.lists(counts, min_size=n_items, max_size=n_items)), dtype=float)
    label = draw(st.lists(st.integers(-1, 2), min_size=n_items, max_size=n_items))
    true = draw(st.lists(st.integers(-1, 3), min_size=n_items, max_size=n_items))
    true[0] = max(true[0], 0)
    posterior = votes / votes.sum(axis=1, keepdims=True)
    return Predictions(numbered(n_items), numbered(3), np.array(label), posterior), true


def truth_of(true):
    return {str(item): str(code) for item, code in enumerate(true) if code >= 0}


def plainly(predicted, true):
    """All scores with loops, one item and one class at a time."""
    right, plain, loss, brier, rows = [], [], [], [], []
    bins = {}
    for item, code in enumerate(true):
        if code < 0:
            continue
        posterior = [*predicted.posterior[item], 0.0]
        winners = [k for k in range(4) if posterior[k] >= max(posterior) - 1e-12]
        right.append(1 / len(winners) if code in winners else 0)
        label = predicted.label[item]
        plain.append(label == code)
        loss.append(-math.log(max(posterior[code], 1e-15)))
        brier.append(sum((posterior[k] - (k == code)) ** 2 for k in range(4)))
        upper = next(b for b in range(1, 16) if max(posterior) <= b / 15 + 1e-10)
        bins.setdefault(upper, []).append((right[-1], max(posterior)))
        rows.append((code, label))
    f1 = []
    for k in range(4):
        hits = sum(t == k and g == k for t, g in rows)
        annotations, were = sum(g == k for _, g in rows), sum(t == k for t, _ in rows)
        if annotations + were:
            f1.append(2 * hits / (annotations + were))
    gaps = [abs(sum(right - sure for right, sure in inside)) for inside in bins.values()]
    values = [*map(np.mean, (right, plain, f1, loss, brier)), sum(gaps) / len(rows)]
    return dict(zip(SCORES, values, strict=True))


@given(cases())
def test_every_score_is_what_loops_say(case):
    predicted, true = case
    found = evaluate(predicted, truth_of(true), resamples=0)
    expected = plainly(predicted, true)
    assert {name: score.value for name, score in found.scores.items()} == pytest.approx(expected)


@given(cases())
def test_without_posteriors_ties_are_not_known(case):
    predicted, true = case
    bare = Predictions(predicted.items, predicted.classes, predicted.label)
    scores = evaluate(bare, truth_of(true), resamples=3).scores
    assert scores["accuracy"] == scores["accuracy_as_labelled"]
    assert scores["macro_f1"].value == pytest.approx(plainly(predicted, true)["macro_f1"])
    assert [scores[name] for name in ("log_loss", "brier", "ece")] == [None, None, None]


@given(cases(), st.integers(1, 5))
def test_chunks_change_no_value(case, cells):
    predicted, true = case
    whole = evaluate(predicted, truth_of(true), resamples=0).scores
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_classes, "_CELLS", cells)
        parts = evaluate(predicted, truth_of(true), resamples=0).scores
    for name in SCORES:
        assert parts[name].value == pytest.approx(whole[name].value)


def test_numbers_worked_out_by_hand():
    posterior = np.array([[0.7, 0.3], [0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    label = np.array([0, 0, 1, -1])
    predicted = Predictions(as_names("abcd"), as_names(["cat", "dog"]), label, posterior)
    truth = {"a": "cat", "b": "dog", "c": "cat", "d": "cat"}
    scores = {k: s.value for k, s in evaluate(predicted, truth, resamples=0).scores.items()}
    assert scores["accuracy"] == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert scores["accuracy_as_labelled"] == pytest.approx(1 / 4)
    assert scores["macro_f1"] == pytest.approx((2 / 5 + 0) / 2)
    assert scores["log_loss"] == pytest.approx(-math.log(0.7 * 0.5 * 0.1) / 4)
    assert scores["brier"] == pytest.approx((0.18 + 0.5 + 1.62 + 0) / 4)
    assert scores["ece"] == pytest.approx((0.3 + 0 + 0.9 + 0) / 4)


def test_calibration_bins_span_all_items():
    # Right six times of ten at confidence 0.6: the gaps cancel, but not in smaller groups.
    posterior = np.tile([0.6, 0.4], (10, 1))
    predicted = Predictions(numbered(10), numbered(2), np.zeros(10, dtype=int), posterior)
    truth = {str(item): str(int(item >= 6)) for item in range(10)}
    assert evaluate(predicted, truth, resamples=0).scores["ece"].value == pytest.approx(
        0, abs=1e-12
    )


def test_counts_report_what_was_left_out():
    annotations = Annotations.from_columns("aabbcc", "xyxyxy", "001122")
    found = evaluate(aggregate(annotations, "majority"), {"a": 0, "c": 1, "z": 2, "y": 2, "w": 2})
    assert (found.n_scored, found.n_without_truth, found.n_without_prediction) == (2, 1, 3)
    assert found.scores["accuracy"].value == 0.5


def test_a_class_that_is_never_predicted_is_wrong_at_full_cost():
    annotations = Annotations.from_columns("aabb", "xyxy", "0011")
    scores = evaluate(
        aggregate(annotations, "majority"), {"a": "0", "b": "owl"}, resamples=0
    ).scores
    assert scores["accuracy"].value == 0.5
    assert scores["log_loss"].value == pytest.approx(-math.log(1e-15) / 2)
    assert scores["brier"].value == pytest.approx(1)
    assert scores["macro_f1"].value == pytest.approx(1 / 3)


def test_a_calibration_error_lies_in_its_own_interval():
    rng = np.random.default_rng(3)
    for _ in range(20):
        posterior = rng.dirichlet([2, 2], 100)
        label = posterior.argmax(axis=1)
        true = np.where(rng.random(100) < posterior.max(axis=1), label, 1 - label)
        predicted = Predictions(numbered(100), numbered(2), label, posterior)
        found = evaluate(predicted, truth_of(true), resamples=300).scores["ece"]
        assert 0 <= found.low <= found.value <= found.high


def test_an_interval_is_that_of_a_bootstrap_with_loops():
    rng = np.random.default_rng(7)
    n_items, resamples = 60, 4000
    posterior = rng.dirichlet([1, 1, 1], n_items)
    label = posterior.argmax(axis=1)
    true = np.where(rng.random(n_items) < 0.6, label, rng.integers(0, 4, n_items))
    predicted = Predictions(numbered(n_items), numbered(3), label, posterior)
    found = evaluate(predicted, truth_of(true), resamples=resamples, confidence=0.9).scores
    drawn = []
    for _ in range(500):
        rows = rng.integers(n_items, size=n_items)
        sample = Predictions(numbered(n_items), numbered(3), label[rows], posterior[rows])
        drawn.append(plainly(sample, true[rows].tolist()))
    for name in SCORES:
        values = [scores[name] for scores in drawn]
        low, high = np.quantile(values, [0.05, 0.95])
        if name == "ece":  # samples have larger gaps
            low, high = np.array([low, high]) - np.mean(values) + found[name].value
        assert found[name].low == pytest.approx(low, abs=0.4 * np.std(values)), name
        assert found[name].high == pytest.approx(high, abs=0.4 * np.std(values)), name


@pytest.mark.parametrize("cells", [1, 700, 10**6])
def test_the_spread_does_not_depend_on_chunks(cells, monkeypatch):
    monkeypatch.setattr(_classes, "_CELLS", cells)
    n_items = 100
    predicted = Predictions(numbered(n_items), numbered(2), np.zeros(n_items, dtype=int))
    truth = {str(item): str(int(item >= 70)) for item in range(n_items)}
    low, high = evaluate(predicted, truth, resamples=2000, confidence=0.6827).scores["accuracy"][1:]
    sigma = math.sqrt(0.7 * 0.3 / n_items)
    assert high - low == pytest.approx(2 * sigma, rel=0.25)
    assert (low + high) / 2 == pytest.approx(0.7, abs=0.02)


def test_a_seed_repeats_and_another_differs():
    predicted = Predictions(numbered(50), numbered(2), np.arange(50) % 2)
    truth = {str(item): str(int(item < 21)) for item in range(50)}
    one, again, other = (evaluate(predicted, truth, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.scores["macro_f1"] != other.scores["macro_f1"]


def test_it_is_ready_for_json():
    annotations = Annotations.from_columns("aabb", "xyxy", "0011")
    result = aggregate(annotations, "majority")
    summary = json.loads(
        json.dumps(evaluate(result, {"a": 0}, resamples=0).as_dict(), allow_nan=False)
    )
    assert summary["scores"]["accuracy"] == {"value": 1.0, "low": None, "high": None}
    assert summary["n_without_truth"] == 1
    bare = Predictions(as_names("a"), numbered(2), np.array([0]))
    assert evaluate(bare, {"a": 0}).as_dict()["scores"]["brier"] is None


def test_nothing_in_common_is_an_error_in_words():
    predicted = Predictions(as_names("ab"), numbered(2), np.array([0, 1]))
    for truth in ({"c": "0"}, {}):
        with pytest.raises(DataError, match=f"none of the {len(truth)} items .* the 2 predicted"):
            evaluate(predicted, truth)


def test_an_item_predicted_twice_is_an_error():
    predicted = Predictions(as_names("aba"), numbered(2), np.array([0, 1, 1]))
    with pytest.raises(DataError, match="'a' is predicted more than once"):
        evaluate(predicted, {"b": "1"})


@pytest.mark.parametrize("options", [{"resamples": -1}, {"confidence": 0}, {"confidence": 1}])
def test_options_keep_their_limits(options):
    predicted = Predictions(as_names("a"), numbered(2), np.array([0]))
    with pytest.raises(OptionError, match=f"{next(iter(options))} = .* must be"):
        evaluate(predicted, {"a": "0"}, **options)


def numbers_and_truth(n_items, seed=0, step=None):
    """Values and truths that go together; with a step, so coarse that many are equal."""
    rng = np.random.default_rng(seed)
    true = rng.normal(10, 3, n_items)
    value = true + rng.normal(1, 2, n_items)
    if step:
        value, true = (np.round(x / step) * step for x in (value, true))
    return value, true


def number_scores(value, true, resamples=0, **options):
    summary = Values(numbered(len(value)), np.array(value, dtype=float))
    truth = dict(enumerate(true))
    return evaluate(summary, truth, resamples=resamples, **options)


def plainly_numbers(value, true):
    """The four scores, with SciPy's correlations."""
    off = np.array(value) - true
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        correlations = (stats.pearsonr(value, true)[0], stats.spearmanr(value, true)[0])
    errors = np.mean([abs(x) for x in off]), math.sqrt(np.mean([x**2 for x in off]))
    return dict(zip(NUMBERS, (*errors, *correlations), strict=True))


@pytest.mark.parametrize("step", [None, 0.5, 4])
@pytest.mark.parametrize("n_items", [3, 50])
def test_scores_of_numbers_are_what_loops_say(n_items, step):
    value, true = numbers_and_truth(n_items, step=step)
    found = number_scores(value, true).scores
    assert list(found) == NUMBERS
    expected = plainly_numbers(value, true)
    assert {name: score.value for name, score in found.items()} == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=12))
def test_ranks_of_equal_numbers_are_shared(pairs):
    value, true = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    found = number_scores(value, true).scores
    expected = plainly_numbers(value, true)
    for name in NUMBERS:
        assert found[name].value == pytest.approx(expected[name], nan_ok=True), name


@pytest.mark.parametrize("cells", [1, 137, 10**6])
def test_intervals_of_numbers_are_those_of_a_bootstrap_with_loops(cells, monkeypatch):
    monkeypatch.setattr(_numbers, "_CELLS", cells)
    value, true = numbers_and_truth(40, step=1.0)
    found = number_scores(value, true, resamples=3000, confidence=0.9).scores
    rng, drawn = np.random.default_rng(3), []
    for _ in range(500):
        rows = rng.integers(len(value), size=len(value))
        drawn.append(plainly_numbers(value[rows], true[rows]))
    for name in NUMBERS:
        values = [scores[name] for scores in drawn]
        low, high = np.quantile(values, [0.05, 0.95])
        if name == "ece":  # samples have larger gaps
            low, high = np.array([low, high]) - np.mean(values) + found[name].value
        assert found[name].low == pytest.approx(low, abs=0.4 * np.std(values)), name
        assert found[name].high == pytest.approx(high, abs=0.4 * np.std(values)), name


def test_correlations_stand_however_far_from_zero_numbers_are():
    value, true = numbers_and_truth(30)
    near, far = (number_scores(value + x, true + x).scores for x in (0, 1e9))
    assert far["pearson"].value == pytest.approx(near["pearson"].value, abs=1e-6)
    assert far["rmse"].value == pytest.approx(near["rmse"].value, abs=1e-5)


def test_nothing_correlates_with_a_constant():
    found = number_scores([2, 2, 2], [1, 2, 3], resamples=50)
    assert math.isnan(found.scores["pearson"].value)
    assert math.isnan(found.scores["spearman"].low)
    assert found.scores["mae"].value == pytest.approx(2 / 3)
    summary = json.loads(json.dumps(found.as_dict(), allow_nan=False))["scores"]
    assert summary["pearson"] == {"value": None, "low": None, "high": None}


def test_numbers_that_are_missing_are_counted():
    summary = Values(as_names("abc"), np.array([1.0, math.nan, 3.0]))
    found = evaluate(summary, {"a": 2, "b": "5", "d": 1}, resamples=0)
    assert found.scores["mae"].value == 1
    assert (found.n_scored, found.n_without_truth, found.n_without_prediction) == (1, 1, 2)


def test_a_truth_that_is_no_number_is_reported():
    summary = Values(as_names("ab"), np.array([1.0, 2.0]))
    with pytest.raises(DataError, match="the truth of item 'b' is 'cat', which is not a number"):
        evaluate(summary, {"a": 1, "b": "cat"})
    with pytest.raises(DataError, match="nothing to score"):
        evaluate(summary, {"c": 1})


def test_an_estimation_is_scored_by_its_errors(tmp_path):
    random = np.random.default_rng(0)
    truth = {f"i{k}": float(value) for k, value in enumerate(random.normal(0, 10, 50))}
    rows = [(item, who, random.normal(value, 4)) for item, value in truth.items() for who in "xyz"]
    result = aggregate(Numbers.from_columns(*zip(*rows, strict=True)), "mean")
    wrong = np.array(
        [np.mean([n for i, _, n in rows if i == item]) - truth[item] for item in truth]
    )
    found = evaluate(result, truth)
    assert found.scores["mae"].value == pytest.approx(np.abs(wrong).mean())
    assert found.scores["rmse"].value == pytest.approx(np.sqrt((wrong**2).mean()))
    write(result, tmp_path / "values.csv")
    again = evaluate(read_predictions(tmp_path / "values.csv"), truth)
    assert again.scores["spearman"].value == pytest.approx(found.scores["spearman"].value)


def test_an_estimation_is_scored_like_what_it_wrote(tmp_path):
    annotations, truth = as_answers(shared("n_emotion"), kind="numbers"), shared_truth("n_emotion")
    result = aggregate(annotations, "mean")
    found = evaluate(result, truth)
    # As the README beside the data has them, counted there with other code.
    expected = {"mae": 12.022, "rmse": 17.835, "pearson": 0.725}
    assert {name: found.scores[name].value for name in expected} == pytest.approx(
        expected, abs=6e-4
    )
    assert found.scores["mae"].low < 12.022 < found.scores["mae"].high
    write(result, tmp_path / "values.csv")
    again = evaluate(read_predictions(tmp_path / "values.csv"), truth)
    assert again.scores["spearman"].value == pytest.approx(found.scores["spearman"].value)


@pytest.mark.parametrize(
    ("columns", "labels", "kind"),
    [
        ("item,label,deviation", "1,2", Values),  # beside standard errors
        ("item,label,p:1,p:2", "1,2", Predictions),  # with posteriors
        ("item,label", "1,2", Predictions),  # few whole numbers
        ("item,label", "1.5,2", Values),
        ("item,label", "cat,dog", Predictions),
    ],
)
def test_a_table_shows_whether_labels_are_numbers(columns, labels, kind, tmp_path):
    more = columns.count(",") - 1
    rows = [f"{row},{label}" + ",0.5" * more for row, label in enumerate(labels.split(","))]
    (tmp_path / "labels.csv").write_text("\n".join([columns, *rows]))
    assert type(read_predictions(tmp_path / "labels.csv")) is kind


def test_the_kind_of_labels_can_be_set(tmp_path):
    (tmp_path / "labels.csv").write_text("item,label\na,1\nb,2\n")
    (tmp_path / "truth.csv").write_text("item,label\na,1\nb,4\n")
    given = ("evaluate", tmp_path / "labels.csv", "--truth", tmp_path / "truth.csv", "--json")
    scores = json.loads(run(*given).stdout)["scores"]
    assert scores["accuracy"]["value"] == 0.5
    scores = json.loads(run(*given, "--scale", "numeric").stdout)["scores"]
    assert list(scores) == NUMBERS
    assert scores["mae"]["value"] == 1
    (tmp_path / "labels.csv").write_text("item,label\na,cat\nb,2\n")
    failed = run(*given, "--scale", "numeric")
    assert failed.returncode == 2
    assert b"label 'cat' is not a number" in failed.stderr
