import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import Annotations, OptionError, aggregate, aggregators, simulate
from dissensus.aggregation.comparison import compare, data_warnings, groups, n_groups
from dissensus.aggregation.held_out import (
    bootstrap,
    confusion_from_posterior,
    held_out,
    predicted_probability,
)
from dissensus.aggregation.sections import methods_figure
from dissensus.base.probability import mixture_weights

from ..support import annotation_rows, relation, rows_of, run

PAIR = ["majority", "dawid-skene"]


def crowd(**options):
    given_options = {"n_items": 200, "n_annotators": 10, "n_classes": 3, "feedback": 6, **options}
    return simulate("independent-confusion", **given_options)


def test_a_held_out_label_is_predicted_by_posterior_and_confusion():
    annotations = crowd().annotations
    method = aggregators.create("dawid-skene")
    result = method.fit(annotations)
    which = np.arange(0, len(annotations), 7)
    confusion = result.params.confusion
    expected = [
        0.99 * sum(result.posterior[i, k] * confusion[j, k, g] for k in range(3)) + 0.01 / 3
        for i, j, g in zip(
            annotations.item[which],
            annotations.annotator[which],
            annotations.label[which],
            strict=True,
        )
    ]
    np.testing.assert_allclose(predicted_probability(method, result, annotations, which), expected)


def test_votes_get_confusion_matrices_counted_from_their_own_posterior():
    annotations = relation(
        [("a", "x", "0"), ("a", "y", "0"), ("b", "x", "1"), ("b", "y", "1"), ("c", "x", "0")]
    )
    result = aggregate(annotations, "majority")
    x = np.array([[2 + 2.8, 1.2], [1.2, 1 + 2.8]])
    np.testing.assert_allclose(
        confusion_from_posterior(result.answers, result.posterior)[0],
        x / x.sum(axis=1, keepdims=True),
    )


def test_left_out_labels_are_really_left_out():
    """On noise, a method that has seen the labels would do better than chance."""
    rng = np.random.default_rng(0)
    annotations = Annotations.from_matrix(rng.integers(0, 2, (400, 3)))
    left = held_out(annotations, [aggregators.create(name) for name in PAIR])
    assert np.log(left.probability).mean() < math.log(0.5) + 0.02
    assert len(left.annotation) > 0.9 * len(annotations)


def test_items_with_one_label_are_not_scored():
    annotations = relation([("a", "x", "0"), ("b", "x", "1"), ("b", "y", "1"), ("b", "z", "0")])
    left = held_out(annotations, [aggregators.create("majority")], folds=3, seed=1)
    assert "a" not in annotations.items[annotations.item[left.annotation]]


@settings(max_examples=25)
@given(rows=annotation_rows())
def test_predictions_are_probabilities(rows):
    left = held_out(relation(rows), [aggregators.create(name) for name in PAIR], folds=2)
    assert ((left.probability > 0) & (left.probability <= 1)).all()


def test_mixture_weights_are_the_best_on_a_grid():
    probability = np.random.default_rng(3).random((2, 50))
    weight = mixture_weights(probability, pseudo_count=0)
    grid = np.linspace(0, 1, 1001)
    scores = [np.log(w * probability[0] + (1 - w) * probability[1]).sum() for w in grid]
    assert weight.sum() == pytest.approx(1)
    assert weight[0] == pytest.approx(grid[int(np.argmax(scores))], abs=2e-3)


@pytest.mark.parametrize("pseudo_count", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_mixture_weights_are_optimal_also_for_models_that_are_alike(seed, pseudo_count):
    random = np.random.default_rng(seed)
    probability = random.beta(8, 2, size=(1, 4000)) + 1e-4 * random.random((8, 4000))
    probability[3:] *= random.uniform(0.5, 1.5, size=(5, 4000))
    weight = mixture_weights(probability, pseudo_count)
    slope = (probability / (weight @ probability)).sum(axis=1) + pseudo_count / weight
    most = 4000 + 8 * pseudo_count  # no weight can be raised to any gain, and none lowered
    assert slope.max() <= most * (1 + 1e-6)
    np.testing.assert_allclose(slope[weight > 1e-3], most, rtol=1e-6)


def test_a_comparison_ranks_methods_and_names_ties():
    made = crowd(n_items=500)
    found = compare(made.annotations, [*PAIR, "naive-soft"], truth=made.truths)
    rows = {row.method: row for row in found.methods}
    assert rows["majority"].held_out == rows["naive-soft"].held_out
    assert rows["dawid-skene"].gap == 0
    assert rows["majority"].gap > 2 * rows["majority"].error > 0
    assert not rows["majority"].tied
    assert found.methods[0].method == "dawid-skene"
    assert (
        rows["dawid-skene"].evaluation.scores["accuracy"].value
        > rows["majority"].evaluation.scores["accuracy"].value
    )
    assert "dawid-skene predicts held-out labels best" in found.verdict
    labels = np.stack([result.label for result in found.results.values()])
    assert found.n_contested == int((labels != labels[0]).any(axis=0).sum())
    assert json.dumps(found.as_dict(), allow_nan=False)
    same = compare(made.annotations, ["majority", "naive-soft"])
    assert "majority and naive-soft are tied" in same.verdict


def test_more_splits_are_more_scores():
    annotations = crowd().annotations
    once, twice = compare(annotations, PAIR), compare(annotations, PAIR, seeds=2)
    assert twice.n_scored == 2 * once.n_scored


def test_a_comparison_does_not_depend_on_the_order_of_rows():
    annotations = crowd().annotations
    rows = rows_of(annotations)
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    again = relation(shuffled, classes=annotations.classes)
    there, back = compare(annotations, PAIR), compare(again, PAIR)
    costs = {"seconds": 0, "megabytes": 0}
    first, second = ([row._replace(**costs) for row in part.methods] for part in (there, back))
    assert first == second


def test_signs_of_caution():
    assert data_warnings(crowd(n_items=2000).annotations) == []
    apart = relation([("a", "x", "0"), ("a", "y", "1"), ("b", "v", "0"), ("b", "w", "0")])
    assert any("2 groups that share no item" in sign for sign in data_warnings(apart))
    assert any("parameters of confusion matrices" in sign for sign in data_warnings(apart))
    alone = relation([("a", "x", "0"), ("b", "x", "1"), ("c", "x", "1"), ("c", "y", "1")])
    assert any("67% of the items have one label" in sign for sign in data_warnings(alone))


@given(annotation_rows(most=12, items="abcdef", annotators="uvwxyz"))
def test_annotators_are_of_one_group_if_items_join_them(rows):
    annotations = relation(rows, annotators=[*"uvwxyz"])
    joined = {name: {name} for name in "uvwxyz"}
    for item, one, _ in rows:
        for other_item, other, _ in rows:
            if item == other_item and joined[one] is not joined[other]:
                both = joined[one] | joined[other]
                joined |= dict.fromkeys(both, both)
    found = groups(annotations)
    for i, one in enumerate(annotations.annotators):
        for j, other in enumerate(annotations.annotators):
            assert (found[i] == found[j]) == (other in joined[one])
    spoke = {frozenset(joined[who]) for _, who, _ in rows}
    assert n_groups(annotations) == len(spoke)


def test_bad_options_are_refused():
    annotations = crowd().annotations
    for options in ({"folds": 1}, {"seeds": 0}, {"methods": ["majority", "MV"]}):
        with pytest.raises(OptionError):
            compare(annotations, **{"methods": PAIR, **options})
    with pytest.raises(OptionError):
        bootstrap(annotations, resamples=1)


def test_the_chart_has_every_method_inside_its_interval():
    made = crowd()
    for truth in (None, made.truths):
        figure = methods_figure(compare(made.annotations, PAIR, truth=truth))
        rows = figure.spec["data"]["values"]
        assert sorted(row["method"] for row in rows) == sorted(PAIR)
        assert all(row["low"] <= row["value"] <= row["high"] for row in rows)


def test_bootstrap_intervals_hold_the_estimate_and_shrink_with_data():
    widths = []
    for n_items in (100, 1600):
        made = crowd(n_items=n_items)
        found = bootstrap(made.annotations, "dawid-skene", resamples=40)
        inside = (found.quality[:, 0] <= found.result.quality) & (
            found.result.quality <= found.quality[:, 1]
        )
        assert inside.mean() > 0.8
        assert ((found.stability >= 0) & (found.stability <= 1)).all()
        assert (found.confidence[:, 0] <= found.confidence[:, 1]).all()
        assert (found.rank[:, 0] >= 1).all()
        assert (found.rank[:, 1] <= 10).all()
        widths.append(np.diff(found.quality, axis=1).mean())
    assert widths[1] < widths[0] / 2


def test_bootstrap_repeats_with_the_seed():
    annotations = crowd(n_items=60).annotations
    one, other = (
        bootstrap(annotations, resamples=10, seed=4),
        bootstrap(annotations, resamples=10, seed=4, threads=1),
    )
    np.testing.assert_array_equal(one.quality, other.quality)
    np.testing.assert_array_equal(one.confidence, other.confidence)
    assert not np.array_equal(one.quality, bootstrap(annotations, resamples=10, seed=5).quality)


def test_the_table_fits_a_terminal_of_80_columns_with_its_intervals(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run("demo", cwd=tmp_path)
    chosen = ("majority", "dawid-skene-map", "hierarchical[pooled=1,estimate=True]")
    options = [part for name in chosen for part in ("-s", name)]
    given_files = ("demo/answers.csv", "--truth", "demo/truth.csv")
    summary = run("compare", *given_files, *options, cwd=tmp_path).stdout.decode()
    rows = [line for line in summary.splitlines() if line.startswith("│")]
    assert max(map(len, summary.splitlines())) <= 80
    assert "…" not in summary
    assert len(re.findall(r"\d\d\.\d \(\d\d\.\d–\d\d\.\d\)", summary)) == len(chosen)
    assert "hierarchical" in "".join(row.split("│")[1].strip() for row in rows)
    assert " MB " not in summary


def test_the_command_compares(tmp_path):
    run("demo", cwd=tmp_path)
    done = run(
        *(
            "compare",
            "demo/answers.csv",
            "-s",
            "majority",
            "-s",
            "dawid-skene",
            "--truth",
            "demo/truth.csv",
        ),
        *("--chart", "chart.svg"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    summary = done.stdout.decode()
    for words in (
        "behind",
        "accuracy",
        "The methods differ on",
        "Caution:",
        "Items on which they disagree",
    ):
        assert words in summary
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")
    found = json.loads(run("compare", "demo/answers.csv", "--json", cwd=tmp_path).stdout)
    assert {row["method"] for row in found["methods"]} >= {"majority", "dawid-skene"}
