"""Sets of options: the data, distances, and the methods that aggregate them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from dissensus import Annotations
from dissensus.aggregation import aggregate
from dissensus.aggregation.aggregation import AnswerAggregation
from dissensus.aggregation.joint_sets import JointSets, Profiles, held_out
from dissensus.answers import Sets
from dissensus.answers.sets import join_options, split_options

from ..support import shared_path

PROFILES = ([0, 1, 2], [2, 3], [4, 5, 6, 7], [8], [9, 0])


def simulated(seed: int, profiles: bool, n_items: int = 800) -> tuple[Sets, np.ndarray]:
    """Four of forty annotators on every item; options go together in profiles, or do not."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_items, 10)) < 0.22
    if profiles:
        rate = np.full((5, 10), 0.05)
        for row, options in zip(rate, PROFILES, strict=True):
            row[options] = 0.9
        truth = rng.random((n_items, 10)) < rate[rng.integers(5, size=n_items)]
    sensitivity, specificity = rng.beta(6, 4, (40, 10)), rng.beta(18, 2, (40, 10))
    item = np.repeat(np.arange(n_items), 4)
    who = np.concatenate([rng.choice(40, 4, replace=False) for _ in range(n_items)])
    yes = np.where(truth[item], sensitivity[who], 1 - specificity[who])
    chosen = rng.random(yes.shape) < yes
    values = [np.flatnonzero(row).tolist() for row in chosen]
    return Sets.from_values(item.tolist(), who.tolist(), values, options=range(10)), truth


def f1(result: AnswerAggregation, truth: np.ndarray) -> float:
    given = np.stack([result.items[f"p:{o}"] for o in range(10)], axis=1) > 0.5
    return 2 * (given & truth).sum() / (given.sum() + truth.sum())


def test_an_empty_answer_is_an_answer():
    sets = Sets.from_values(["a", "a"], ["x", "y"], [[], ["cat"]])
    assert len(sets) == 2
    assert sets.empty.tolist() == [True, False]
    assert Sets.from_rows(sets.to_rows()) == sets


def test_options_with_the_mark_in_their_names_survive():
    options = ["a|b", "c", r"d\e"]
    assert split_options(join_options(options)) == options


def test_distances_are_those_of_masi_and_jaccard():
    values = [["a", "b"], ["a"], ["b", "c"], [], [], ["a", "b"]]
    sets = Sets.from_values(["i"] * 6, list("uvwxyz"), values)
    first, second = np.array([0, 0, 0, 3, 0]), np.array([1, 2, 3, 4, 5])
    masi = [1 - 1 / 2 * 2 / 3, 1 - 1 / 3 * 1 / 3, 1, 0, 0]
    assert sets.distance(first, second) == pytest.approx(masi)
    assert sets.distance(first, second, "jaccard") == pytest.approx([1 / 2, 2 / 3, 1, 0, 0])


def test_one_option_is_a_question_of_yes_and_no():
    rng = np.random.default_rng(0)
    item, who = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    yes = rng.random(300) < np.where(np.arange(60) % 2, 0.8, 0.1)[item]
    sets = Sets.from_values(item, who, [["o"] if y else [] for y in yes], options=["o"])
    labels = ["yes" if y else "no" for y in yes]
    annotations = Annotations.from_columns(item, who, labels, classes=["no", "yes"])
    from dissensus.aggregation import aggregate

    expected = aggregate(annotations, "dawid-skene").probabilities[:, 1]
    np.testing.assert_allclose(aggregate(sets, "dawid-skene").items["p:o"], expected, atol=1e-12)


def test_options_that_go_together_are_found_together():
    scores = []
    for seed in (100, 101):
        answers, truth = simulated(seed, profiles=True)
        methods = ("joint-sets", "majority", "dawid-skene")
        scores.append([f1(aggregate(answers, method), truth) for method in methods])
    joint, majority, dawid_skene = np.mean(scores, axis=0)
    assert joint > 0.88
    assert joint > max(majority, dawid_skene) + 0.03


def test_independent_options_do_not_suffer():
    answers, truth = simulated(100, profiles=False)
    assert f1(aggregate(answers), truth) > f1(aggregate(answers, "dawid-skene"), truth) - 0.01


def test_the_objective_never_falls():
    answers, _ = simulated(7, profiles=True, n_items=200)
    trace = np.array(aggregate(answers, "joint-sets[profiles=5,tol=0,max_iter=60]").trace)
    assert (np.diff(trace) > -1e-8 * np.abs(trace[1:])).all()


def test_names_and_order_do_not_matter():
    answers, _ = simulated(3, profiles=True, n_items=150)
    rng = np.random.default_rng(0)
    rename_item, rename_who = rng.permutation(150), rng.permutation(40)
    rename_option = rng.permutation(10)
    values = [rename_option[[int(o) for o in value]].tolist() for value in answers.values()]
    rows = rng.permutation(len(answers))
    other = Sets.from_values(
        rename_item[answers.item][rows].tolist(),
        rename_who[answers.annotator][rows].tolist(),
        [values[row] for row in rows],
        options=range(10),
    )
    one, two = aggregate(answers), aggregate(other)
    for o in range(10):
        there = two.items[f"p:{rename_option[o]}"][rename_item]
        np.testing.assert_allclose(one.items[f"p:{o}"], there, atol=1e-6)


def test_parts_make_no_difference():
    from dissensus.base.engine import Local

    answers, _ = simulated(5, profiles=True, n_items=200)
    one, many = (aggregate(answers, engine=Local(1, parts)) for parts in (1, 7))
    np.testing.assert_allclose(one.confidence, many.confidence, atol=1e-9)


def test_all_agree_and_nobody_chooses():
    same = Sets.from_values(["a"] * 5 + ["b"] * 5, list("uvwxy") * 2, [["p", "q"]] * 5 + [[]] * 5)
    result = aggregate(same)
    assert result.items["labels"].tolist() == ["p|q", ""]
    assert (result.confidence > 0.9).all()
    assert result.truth.values() == [["p", "q"], []]


def test_gold_is_kept():
    answers, truth = simulated(11, profiles=True, n_items=100)
    gold = {str(i): [str(o) for o in np.flatnonzero(truth[i])] for i in range(20)}
    for method in ("joint-sets", "per-option"):
        result = aggregate(answers, method, gold=gold)
        assert result.truth.values()[:20] == list(gold.values()), method


def test_one_profile_is_dawid_skene_per_option_with_a_pooled_prior():
    """The E-step of every option by hand."""
    answers, _ = simulated(2, profiles=False, n_items=120)
    fitted = aggregate(answers, "joint-sets[profiles=1,temperature=1,tol=0,max_iter=400]")
    a, b = fitted.params["sensitivity"], fitted.params["specificity"]
    chosen = answers.chosen().toarray()
    item, who = answers.item, answers.annotator
    rate = fitted.params["yes"][0]
    true, false = (
        np.stack([np.bincount(item, each[:, o], answers.n_items) for o in range(10)], axis=1)
        for each in (
            np.where(chosen, np.log(a[who]), np.log(1 - a[who])),
            np.where(chosen, np.log(1 - b[who]), np.log(b[who])),
        )
    )
    yes = rate * np.exp(true) / (rate * np.exp(true) + (1 - rate) * np.exp(false))
    given = np.stack([fitted.items[f"p:{o}"] for o in range(10)], axis=1)
    np.testing.assert_allclose(given, yes, atol=1e-9)


def test_relations_are_predicted_as_specified():
    """Five answers per item fitted, the others held out: log loss 1.82 in the specification."""
    frame = pl.read_csv(shared_path("relations_sets") / "answers.csv.gz", infer_schema=False)
    values = [text.split(";") if text else [] for text in frame["labels"].to_list()]
    answers = Sets.from_values(frame["task"].to_list(), frame["worker"].to_list(), values)
    random = np.random.default_rng(0).random(len(answers))
    order = np.lexsort((random, answers.item))
    place = np.empty(len(answers), dtype=int)
    place[order] = np.arange(len(answers)) - answers.index[answers.item]
    train, test = answers.keep(place < 5), answers.keep(place >= 5)
    fitted = JointSets().fit(train)
    params = Profiles(*(fitted.params[name] for name in Profiles._fields))
    loss = -held_out(train, test, params, float(fitted.params["temperature"])).mean()
    assert loss < 1.86
