"""Estimators of numbers, what they promise, and truth discovery for classes beside them."""

import tracemalloc

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, multivariate_normal

from dissensus import (
    Annotations,
    DataError,
    NumberAggregation,
    Numbers,
    OutputError,
    aggregate,
    estimators,
    simulate,
    write,
)
from dissensus.aggregation.gaussian import Gaussian
from dissensus.aggregation.numbers import NumberContext
from dissensus.base.engine import Local
from dissensus.formats import as_answers, kind_of_labels, read
from dissensus.params import describe_fields

from ..support import run, shared, shared_path, shared_truth

METHODS = list(estimators)
SPECS = [
    *METHODS,
    "gaussian[rate=within]",
    "student-t",
    "crh[loss=absolute]",
    "pm[loss=absolute]",
    "crh[per_label=True]",
]
each_method = pytest.mark.parametrize("name", METHODS)
each_spec = pytest.mark.parametrize("spec", SPECS)
close = {"rtol": 1e-9, "atol": 1e-9}


def answer_rows(most=25):
    """Draw rows (item, annotator, number), repeats included."""
    row = st.tuples(
        st.sampled_from("abcde"),
        st.sampled_from("vwxyz"),
        st.integers(-40, 40).map(lambda number: number / 4),
    )
    return st.lists(row, min_size=1, max_size=most)


def numbers(rows, **declared) -> Numbers:
    return Numbers.from_columns(*zip(*rows, strict=True), **declared)


def crowd(seed=1, **given):
    options = {"n_items": 80, "n_annotators": 9, "feedback": 5, "seed": seed} | given
    return simulate("numeric", **options)


# What every estimator promises


@each_spec
@settings(max_examples=20)
@given(rows=answer_rows(), order=st.randoms())
def test_the_order_of_rows_does_not_matter(spec, rows, order):
    shuffled = rows.copy()
    order.shuffle(shuffled)
    there, back = aggregate(numbers(rows), spec), aggregate(numbers(shuffled), spec)
    np.testing.assert_array_equal(there.value, back.value)
    np.testing.assert_array_equal(there.weight, back.weight)
    assert np.isfinite(there.value).all()


@pytest.mark.numeric
@each_spec
def test_names_do_not_matter(spec):
    annotations = crowd().annotations
    swapped = Numbers.from_codes(
        annotations.n_items - 1 - annotations.item.astype(int),
        annotations.n_annotators - 1 - annotations.annotator.astype(int),
        annotations.value,
        items=annotations.items[::-1],
        annotators=annotations.annotators[::-1],
    )
    there, back = aggregate(annotations, spec), aggregate(swapped, spec)
    np.testing.assert_allclose(there.value, back.value[::-1], **close)
    np.testing.assert_allclose(there.weight, back.weight[::-1], **close)


@each_spec
@pytest.mark.parametrize("by", [-3.0, 1000.0])
def test_a_shift_of_all_answers_shifts_all_values(spec, by):
    annotations = crowd().annotations
    moved = Numbers.from_codes(
        annotations.item,
        annotations.annotator,
        annotations.value + by,
        items=annotations.items,
        annotators=annotations.annotators,
    )
    there, back = aggregate(annotations, spec), aggregate(moved, spec)
    np.testing.assert_allclose(back.value, there.value + by, rtol=0, atol=1e-7)
    np.testing.assert_allclose(back.deviation, there.deviation, atol=1e-7)
    np.testing.assert_allclose(back.bias, there.bias, atol=1e-7)


@each_spec
@settings(max_examples=25)
@given(
    rows=answer_rows(),
    truth=st.dictionaries(st.sampled_from("abcde"), st.integers(-9, 9), min_size=1),
)
def test_gold_is_kept(spec, rows, truth):
    found = aggregate(numbers(rows, items="abcde"), spec, gold=truth)
    by_item = dict(zip("abcde", zip(found.value, found.deviation, strict=True), strict=True))
    for item, known in truth.items():
        assert by_item[item] == (known, 0.0)


@each_spec
@settings(max_examples=25)
@given(rows=answer_rows(), truth=st.dictionaries(st.sampled_from("abcde"), st.integers(-9, 9)))
def test_the_objective_never_falls(spec, rows, truth):
    trace = np.array(aggregate(numbers(rows, items="abcde"), spec, gold=truth).trace)
    assert (np.diff(trace) >= -1e-8 * np.maximum(1, np.abs(trace[1:]))).all()


@pytest.mark.parametrize("spec", ["lfc-n", "gaussian", "student-t", "catd", "crh"])
def test_methods_with_an_objective_report_it(spec):
    summary = []
    found = aggregate(crowd().annotations, spec, progress=lambda *row: summary.append(row))
    assert summary == list(enumerate(found.trace, 1))
    assert len(summary) > 2
    assert found.converged


@each_spec
def test_a_result_is_saved_and_loaded(spec, tmp_path):
    found = aggregate(crowd().annotations, spec)
    found.save(tmp_path / "kept")
    again = NumberAggregation.load(tmp_path / "kept")
    assert (again.method, again.trace, again.converged) == (
        found.method,
        found.trace,
        found.converged,
    )
    assert again.answers == found.answers
    for table in ("items", "annotators"):
        there, back = getattr(found, table), getattr(again, table)
        assert there.keys() == back.keys()
        for column in there:
            np.testing.assert_array_equal(there[column], back[column])


def test_other_folders_are_distinguished_from_a_result(tmp_path):
    aggregate(Annotations.from_columns("a", "x", "0")).save(tmp_path / "classes")
    with pytest.raises(DataError, match=r"Aggregation\.load reads it"):
        NumberAggregation.load(tmp_path / "classes")
    with pytest.raises(DataError, match="not a saved result"):
        NumberAggregation.load(tmp_path)
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(OutputError, match="holds something else"):
        aggregate(crowd().annotations, "mean").save(tmp_path)


@each_spec
@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", 3.0)],
        [("a", who, number) for who, number in zip("xyz", (1.0, 2.0, 7.0), strict=True)],
        [(item, who, 2.5) for item in "abc" for who in "xyz"],
        [("a", "x", 1.0), ("a", "y", 3.0), ("b", "v", 5.0), ("b", "w", 5.0)],
        [("a", "x", 1.0), ("a", "x", 3.0), ("b", "x", 5.0)],
    ],
    ids=["one answer", "one item", "all the same", "two groups that never met", "repeats"],
)
def test_small_and_degenerate_data(spec, rows):
    found = aggregate(numbers(rows), spec)
    format_value = np.array([number for *_, number in rows])
    assert (found.value >= format_value.min() - 1e-9).all()
    assert (found.value <= format_value.max() + 1e-9).all()
    assert (found.weight >= 0).all()


@each_spec
def test_the_values_of_one_annotator_are_theirs(spec):
    format_value = np.array([4.0, 1.0, 2.0, 9.0])
    found = aggregate(Numbers.from_columns("abcd", "xxxx", format_value), spec)
    if spec.startswith(
        ("gaussian", "student-t", "peer-grading")
    ):  # values are drawn towards their mean
        assert (np.argsort(found.value) == np.argsort(format_value)).all()
    else:
        np.testing.assert_allclose(found.value, format_value)


@each_spec
def test_items_and_annotators_without_answers_are_left_open(spec):
    annotations = crowd().annotations
    more = Numbers.from_codes(
        annotations.item,
        annotations.annotator,
        annotations.value,
        items=annotations.n_items + 2,
        annotators=annotations.n_annotators + 1,
    )
    without, beside = aggregate(annotations, spec), aggregate(more, spec)
    np.testing.assert_allclose(beside.value[: annotations.n_items], without.value, **close)
    np.testing.assert_allclose(beside.weight[:-1], without.weight, **close)
    assert np.isnan(beside.value[-2:]).all()
    assert np.isnan(beside.deviation[-2:]).all()
    assert np.isnan([beside.weight[-1], beside.bias[-1], beside.noise[-1]]).all()
    assert beside.annotators["n_labels"][-1] == 0


@each_spec
def test_nothing_is_as_large_as_items_times_annotators(spec):
    size = 20_000
    item = np.repeat(np.arange(size), 2)
    annotator = (item * 7 + np.tile([0, 1], size)) % size
    annotations = Numbers.from_codes(item, annotator, item % 13.0, items=size, annotators=size)
    tracemalloc.start()
    aggregate(annotations, spec)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * 8 * 2 * size  # a table of both would be 250 times that


@each_method
def test_it_says_what_it_is(name):
    cls = estimators.find(name)
    assert cls.__name__.removeprefix("Number") == name.title().replace("-", "")
    assert estimators.describe(cls()) == name
    assert estimators.create(estimators.describe(cls())) == cls()
    for field in describe_fields(cls):
        assert field.doc, f"{name} does not explain {field.name}"


def test_gold_has_to_be_numbers_about_items_that_are_there():
    annotations = numbers([("a", "x", 1.0), ("b", "x", 2.0)])
    assert aggregate(annotations, "mean", gold={"a": "7.5", "z": 1}).value.tolist() == [7.5, 2.0]
    with pytest.raises(DataError, match="gold says 'cat' for item 'a', which is not a number"):
        aggregate(annotations, "mean", gold={"a": "cat"})
    with pytest.raises(DataError, match="for none of the annotated items"):
        aggregate(annotations, "mean", gold={"z": 1})
    with pytest.raises(DataError, match="no answer"):
        aggregate(Numbers.from_columns([], [], []), "mean")


# Against plain loops


def per_item(annotations, function):
    bounds = zip(annotations.index[:-1], annotations.index[1:], strict=True)
    return np.array(
        [function(annotations.value[a:b], annotations.annotator[a:b]) for a, b in bounds]
    )


def per_annotator(annotations, loss):
    return np.array(
        [loss[annotations.annotator == who].sum() for who in range(annotations.n_annotators)]
    )


def test_means_and_medians_are_those_of_numpy():
    annotations = crowd(imbalance=True).annotations
    np.testing.assert_allclose(
        aggregate(annotations, "mean").value,
        per_item(annotations, lambda value, _: value.mean()),
        **close,
    )
    np.testing.assert_array_equal(
        aggregate(annotations, "median").value,
        per_item(annotations, lambda value, _: np.median(value)),
    )

    def trimmed(value, _):
        cut = int(0.25 * len(value))
        return np.sort(value)[cut : len(value) - cut].mean()

    found = aggregate(annotations, "trimmed-mean[trim=0.25]").value
    np.testing.assert_allclose(found, per_item(annotations, trimmed), **close)
    error = per_item(
        annotations, lambda v, _: v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else np.nan
    )
    np.testing.assert_allclose(aggregate(annotations, "mean").deviation, error, **close)
    np.testing.assert_allclose(
        aggregate(annotations, "trimmed-mean[trim=0]").deviation, error, **close
    )


def weighted_means(annotations, weigh, loss, rounds, start):
    value = start
    for _ in range(rounds):
        weight = weigh(
            per_annotator(annotations, loss(annotations.value - value[annotations.item]))
        )
        value = np.bincount(annotations.item, weight[annotations.annotator] * annotations.value)
        value /= np.bincount(annotations.item, weight[annotations.annotator])
    return value, weight


def test_weighted_means_are_what_the_formulas_say():
    annotations = crowd().annotations
    count, variance = annotations.labels_per_annotator, annotations.value.var()
    mean = per_item(annotations, lambda value, _: value.mean())
    median = per_item(annotations, lambda value, _: np.median(value))
    spread = per_item(annotations, lambda value, _: value.std())[annotations.item]
    quantile = chi2.ppf(0.025, count)
    cases = {
        "lfc-n": (lambda s: count / s, lambda d: d**2, mean),
        "catd": (lambda s: quantile / (s + 1e-9 * variance), lambda d: d**2, median),
        "crh": (lambda s: -np.log(s / s.sum()), lambda d: d**2 / spread, mean),
        "pm": (lambda s: np.maximum(-np.log(s / s.max()), 1e-12), lambda d: d**2 / spread, mean),
        "crh[per_label=True]": (
            lambda s: -np.log(s / count / (s / count).sum()),
            lambda d: d**2 / spread,
            mean,
        ),
    }
    for spec, (weigh, loss, start) in cases.items():
        mark = "," if "[" in spec else "["
        spec = f"{spec.rstrip(']')}{mark}tol=0,max_iter=7]"
        found = aggregate(annotations, spec)
        value, weight = weighted_means(annotations, weigh, loss, 7, start)
        np.testing.assert_allclose(found.value, value, err_msg=spec, **close)
        np.testing.assert_allclose(found.weight, weight, err_msg=spec, **close)
        assert not found.converged


def test_weighted_medians_have_half_of_the_weight_on_either_side():
    annotations = numbers([("b", who, y) for who, y in zip("vwxyz", (1, 2, 3, 4, 50), strict=True)])
    fit = NumberContext(answers=annotations, gold=np.full(1, np.nan), engine=Local())
    for weight, median in (
        ([1, 1, 1, 1, 1], 3.0),
        ([1, 1, 1, 1, 4.5], 50.0),
        ([1, 1, 1, 1, 4], 27.0),  # a gap: its middle
        ([1, 0.5, 0.5, 1, 1], 3.5),
    ):
        assert fit.median(np.array(weight, float)).tolist() == [median]


def test_the_objective_of_normal_errors_is_their_density():
    """One over all: the likelihood after integrating the values out, and the priors."""
    annotations = crowd(n_items=30).annotations
    for rounds in (1, 4):
        found = Gaussian(max_iter=rounds).fit(annotations)
        variance, spread, mean = annotations.value.var(), *moments(annotations, rounds)
        total = 0.0
        for first, last in zip(annotations.index[:-1], annotations.index[1:], strict=True):
            who = annotations.annotator[first:last]
            covariance = np.diag(1 / found.weight[who]) + spread
            law = multivariate_normal(mean + found.bias[who], covariance)
            total += law.logpdf(annotations.value[first:last])
        total += np.sum(np.log(found.weight) - variance * found.weight)
        total -= 0.005 * np.sum(found.bias**2)
        assert found.trace[-1] == pytest.approx(total, rel=1e-9)


def moments(annotations, rounds):
    """Return spread and mean of the values by plain EM as the notes write it."""
    item, who, y = annotations.item, annotations.annotator, annotations.value
    by_item = lambda v: np.bincount(item, v)  # noqa: E731
    by_annotator = lambda v: np.bincount(who, v)  # noqa: E731
    value = by_item(y) / annotations.labels_per_item
    b, tau = np.zeros(annotations.n_annotators), np.full(annotations.n_annotators, 1 / y.var())
    mu, lam = value.mean(), 1 / value.var()
    for _ in range(rounds - 1):
        p = lam + by_item(tau[who])
        m, v = (lam * mu + by_item(tau[who] * (y - b[who]))) / p, 1 / p
        b = tau * by_annotator(y - m[item]) / (0.01 + tau * annotations.labels_per_annotator)
        squares = by_annotator((y - b[who] - m[item]) ** 2 + v[item])
        tau = (annotations.labels_per_annotator + 2) / (squares + 2 * y.var())
        mu = m.mean()
        lam = 1 / ((m - mu) ** 2 + v).mean()
    return 1 / lam, mu


def test_many_degrees_of_freedom_are_normal():
    annotations = crowd().annotations
    there, back = (
        aggregate(annotations, "gaussian"),
        aggregate(annotations, "gaussian[freedom=1e9]"),
    )
    np.testing.assert_allclose(there.value, back.value, atol=1e-5)


# Recovery and what the notes ask for


def rmse(found, truth):
    return float(np.sqrt(np.mean((found.value - truth) ** 2)))


def test_biases_and_precisions_are_recovered():
    made = crowd(n_items=600, n_annotators=20, feedback=6, seed=2)
    mean, found = (
        aggregate(made.annotations, "mean"),
        aggregate(made.annotations, "gaussian[rate=within]"),
    )
    bias, precision = made.extras["bias"], made.extras["precision"]
    assert rmse(found, made.truth) < 0.8 * rmse(mean, made.truth)
    assert np.corrcoef(found.bias, bias)[0, 1] > 0.98
    assert np.corrcoef(np.log(found.precision), np.log(precision))[0, 1] > 0.9
    off = found.value - made.truth
    off -= off.mean()  # a constant is the biases' as much as the values'
    assert 0.8 < np.std(off / found.deviation) < 1.25


def test_standard_errors_are_about_right():
    made = simulate("numeric[bias=0]", n_items=2000, n_annotators=25, feedback=6, seed=4)
    for name in ("mean", "trimmed-mean", "crh", "gaussian[rate=within]"):
        found = aggregate(made.annotations, name)
        ratio = rmse(found, made.truth) / np.sqrt(np.mean(found.deviation**2))
        assert 0.85 < ratio < 1.2, (name, ratio)


@pytest.mark.parametrize(
    ("spec", "share"),
    [("lfc-n", 0.01), ("catd", 0.01), ("gaussian[rate=within]", 0.5), ("crh", 0.9), ("pm", 0.6)],
)
def test_one_exact_annotator_among_noisy_ones_is_followed(spec, share):
    rng = np.random.default_rng(5)
    truth = rng.normal(0, 10, size=200)
    format_value = truth[:, None] + rng.normal(0, 5, size=(200, 5)) * [0, 1, 1, 1, 1]
    item, annotator = np.divmod(np.arange(1000), 5)
    annotations = Numbers.from_codes(item, annotator, format_value.ravel(), items=200, annotators=5)
    found, mean = aggregate(annotations, spec), aggregate(annotations, "mean")
    assert found.weight.argmax() == 0
    assert rmse(found, truth) < share * rmse(mean, truth)


@pytest.mark.parametrize("spec", ["lfc-n", "gaussian[rate=within]", "catd", "crh", "pm"])
def test_annotators_who_are_alike_give_the_mean(spec):
    truth = np.arange(40) * 10.0
    error = np.array([[1.0, -1.0], [-1.0, 1.0]])[np.arange(40) % 2]  # (item, annotator)
    item, annotator = np.divmod(np.arange(80), 2)
    annotations = Numbers.from_codes(
        item, annotator, (truth[:, None] + error).ravel(), items=40, annotators=2
    )
    found = aggregate(annotations, spec)
    np.testing.assert_allclose(found.value, truth, atol=1e-3 * truth.std())
    assert np.ptp(found.weight) < 0.01 * found.weight.mean()


def test_wild_answers_move_students_t_less():
    made = crowd(n_items=400, n_annotators=15, feedback=7, seed=6)
    rng = np.random.default_rng(0)
    wild = np.where(
        rng.random(len(made.annotations)) < 0.05, rng.normal(0, 200, len(made.annotations)), 0
    )
    annotations = Numbers.from_codes(
        made.annotations.item,
        made.annotations.annotator,
        made.annotations.value + wild,
        items=400,
        annotators=15,
    )
    normal, robust = (
        aggregate(annotations, "gaussian"),
        aggregate(annotations, "gaussian[freedom=3]"),
    )
    assert rmse(robust, made.truth) < 0.3 * rmse(normal, made.truth)


# Figures of the notes, section 12.3; the mean and LFC-N are also printed by Zheng et al. (2017)


@pytest.mark.parametrize(
    ("name", "mae", "error"),
    [
        ("mean", 12.022, 17.835),
        ("median", 13.529, 21.264),
        ("lfc-n", 12.195, 18.969),
        ("catd", 12.137, 18.872),
        ("crh", 11.927, 17.902),
        ("pm", 12.035, 18.319),
        ("gaussian", 13.228, 18.815),
    ],
)
def test_emotion_scores_come_out_as_published(name, mae, error):
    annotations = read(shared_path("n_emotion") / "answers.csv.gz", kind="numbers")
    truths = shared_truth("n_emotion")
    truth = np.array([float(truths[item]) for item in annotations.items.tolist()])
    found = aggregate(annotations, name)
    assert np.abs(found.value - truth).mean() == pytest.approx(mae, abs=6e-4)
    assert rmse(found, truth) == pytest.approx(error, abs=6e-4)


# Truth discovery for classes


def votes_without_ties(weight, annotations):
    score = np.zeros((annotations.n_items, annotations.n_classes))
    np.add.at(score, (annotations.item, annotations.label), weight[annotations.annotator])
    return score


@pytest.mark.parametrize("name", ["catd", "crh", "pm"])
def test_weighted_votes_are_what_the_formulas_say(name):
    made = simulate("one-coin", n_items=200, n_annotators=9, n_classes=3, feedback=5, seed=8)
    votes = np.sort(made.annotations.votes(), axis=1)
    annotations = made.annotations.subset(
        items=votes[:, -1] > votes[:, -2]
    )  # ties are split, loops are plain
    count = annotations.labels_per_annotator
    weight = np.ones(annotations.n_annotators)
    for _ in range(30):
        score = votes_without_ties(weight, annotations)
        wrong = (score.argmax(axis=1)[annotations.item] != annotations.label).astype(float)
        loss = np.bincount(annotations.annotator, wrong, minlength=annotations.n_annotators)
        weight = {
            "catd": lambda s: chi2.ppf(0.025, count) / (s + 1e-9),
            "crh": lambda s: -np.log(np.maximum(s / s.sum(), 1e-12)),
            "pm": lambda s: -np.log(np.maximum(s / s.max(), 1e-12)),
        }[name](loss)
    found = aggregate(annotations, name)
    assert found.converged
    np.testing.assert_allclose(found.params.weight, weight, rtol=1e-9, atol=1e-12)
    assert (found.label == score.argmax(axis=1)).all()


@pytest.mark.parametrize(
    ("data", "name", "accuracy"),
    [
        ("d_product", "catd", 0.9266),
        ("d_product", "pm", 0.8981),
        ("d_product", "crh", 0.8987),
        ("d_possent", "catd", 0.955),
    ],
)
def test_public_data_come_out_as_seen(data, name, accuracy):
    found = aggregate(shared(data), name)
    labels = dict(zip(found.answers.items.tolist(), found.labels.tolist(), strict=True))
    truth = {item: label for item, label in shared_truth(data).items() if item in labels}
    right = np.mean([labels[item] == label for item, label in truth.items()])
    assert right == pytest.approx(accuracy, abs=2e-3)


# Reading


def test_numbers_are_read_from_a_table(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("task,worker,label,time\na,x,1.5,3\nb,x,-2,4\na,y,1e2,5\n")
    annotations = read(path)
    assert annotations == Numbers.from_columns("aba", "xxy", [1.5, -2, 100], time=[3, 4, 5])
    assert read(pl.read_csv(path)) == annotations
    assert as_answers(annotations, kind="classes").classes.tolist() == ["-2", "1.5", "100"]


def test_a_label_that_is_no_number_is_reported(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text('task,worker,label\na,x,1\nb,"y\nz",cat\na,y,nan\n')
    with pytest.raises(DataError, match=r"scores.csv: line 3: label 'cat' is not a number; 1 more"):
        read(path, kind="numbers")
    with pytest.raises(DataError, match=r"^label 'cat' is not a number; 1 more$"):
        as_answers(read(path), kind="numbers")
    path.write_text("task,worker,label\na,x,1\nb,x,\n")
    with pytest.raises(DataError, match=r"line 3: no label"):
        read(path, kind="numbers")
    assert len(read(path, kind="numbers", missing="drop")) == 1
    path.write_text("task,worker,label\n")
    with pytest.raises(DataError, match="only a header"):
        read(path, kind="numbers")
    with pytest.raises(DataError, match="row 2: 'cat' is not a number"):
        Numbers.from_columns("ab", "xx", [1, "cat"])
    with pytest.raises(DataError, match="different length: item 2, annotator 1"):
        Numbers.from_columns("ab", "x", [1, 2])


@pytest.mark.parametrize(
    ("labels", "kind", "reason"),
    [
        (["1", "2", "2.5"], "numeric", "2.5 is not a whole one"),
        ([1.0, 2.0, 3.0], "nominal", "3 whole numbers"),
        ([str(i) for i in range(21)], "numeric", "21 whole numbers are more than 20"),
        ([str(i) for i in range(20)], "nominal", "20 whole numbers, no more than 20"),
        (["1.5", "cat"], "nominal", "'cat' is not a number"),
        (["0.5", "nan"], "nominal", "'nan' is not a number"),
        ([None, ""], "nominal", "no labels"),
        ([True, False], "nominal", "'true' is not a number"),
    ],
)
def test_labels_are_recognised_as_numbers_or_classes(labels, kind, reason):
    found = kind_of_labels(labels)
    assert found.kind == kind
    assert reason in found.reason


def test_shared_emotions_are_numbers_and_others_are_classes():
    assert shared("n_emotion").kind == "numbers"
    assert kind_of_labels(shared("d_product").classes.tolist()).kind == "nominal"


def test_the_command_and_the_library_begin_with_the_same_method(tmp_path):
    write(Numbers.from_columns("aab", "xyx", [1.5, 3.5, 4]), tmp_path / "answers.csv")
    run("aggregate", tmp_path / "answers.csv", "--save", tmp_path / "kept", cwd=tmp_path)
    assert (
        NumberAggregation.load(tmp_path / "kept").method
        == aggregate(crowd().annotations).method
        == "mean"
    )
