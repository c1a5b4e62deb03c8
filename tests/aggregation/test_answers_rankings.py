"""Rankings and comparisons: the data, distances, and the methods that aggregate them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import kendalltau

from dissensus.aggregation import aggregate
from dissensus.answers import Rankings
from dissensus.errors import DataError

from ..support import shared_path


def simulated(seed: int, careless: float = 0.3, n: int = 3000) -> tuple[Rankings, np.ndarray, list]:
    """Sixty things, forty annotators of whom some ignore the things."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 1.5, 60)
    lazy = rng.random(40) < careless
    left = rng.integers(60, size=n)
    right = (left + rng.integers(1, 60, size=n)) % 60
    who = rng.integers(40, size=n)
    better = 1 / (1 + np.exp(-(score[left] - score[right])))
    won = rng.random(n) < np.where(lazy[who], 0.5, better)
    winner = np.where(won, left, right)
    names = [[f"t{one:02d}" for one in each] for each in (left, right, winner)]
    answers = Rankings.from_comparisons(np.arange(n).tolist(), who.tolist(), *names)
    return answers, score, [str(w) for w in np.flatnonzero(lazy)]


def test_rows_survive_with_ties_and_the_order_shown():
    values = [
        [{"value": "b", "rank": 2}, {"value": "a", "rank": 1}],
        [{"value": "a", "rank": 1}, {"value": "c", "rank": 1}],
        [],
    ]
    answers = Rankings.from_values(["p", "q", "q"], ["x", "x", "y"], values)
    assert answers.values() == values
    assert Rankings.from_rows(answers.to_rows()) == answers


def test_a_thing_ranked_twice_is_refused():
    with pytest.raises(DataError, match="row 2: 'a' is ranked twice"):
        Rankings.from_values(["p", "q"], ["x", "x"], [["a"], ["a", "b", "a"]])


def test_a_winner_that_was_not_shown_is_refused():
    with pytest.raises(DataError, match="row 1: the winner 'c' is neither 'a' nor 'b' nor a tie"):
        Rankings.from_comparisons(["p"], ["x"], ["a"], ["b"], ["c"])


def test_distance_is_kendalls_tau_over_shared_things():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(30):
        things = rng.permutation(8)[: rng.integers(3, 9)]
        values.append([{"value": f"t{t}", "rank": int(rng.integers(1, 5))} for t in things])
    answers = Rankings.from_values(["q"] * 30, [f"a{n:02d}" for n in range(30)], values)
    first, second = answers.within_item_pairs()
    ranks = [{entry["value"]: entry["rank"] for entry in value} for value in values]
    for one, other, distance in zip(first, second, answers.distance(first, second), strict=True):
        both = sorted(ranks[one].keys() & ranks[other].keys())
        mine, theirs = ([ranks[w][thing] for thing in both] for w in (one, other))
        if len(both) < 2:
            assert distance == 0.5
        elif len(set(mine)) == len(set(theirs)) == 1:
            assert distance == 0
        else:
            tau = kendalltau(mine, theirs).statistic
            assert distance == pytest.approx((1 - (0 if np.isnan(tau) else tau)) / 2)


def test_without_ties_side_and_care_it_is_logistic_regression():
    answers, _, _ = simulated(1, careless=0.0, n=600)
    spec = "bradley-terry[ties=False,side=False,honest=False,strength=0.3,tol=0,max_iter=50]"
    fitted = aggregate(answers, spec).params["score"]
    pairs = answers.pairs()

    def loss(score):
        d = score[pairs.left] - score[pairs.right]
        sign = np.where(pairs.outcome == 0, 1, -1)
        return np.logaddexp(0, -sign * d).sum() + 0.15 * score @ score

    best = minimize(loss, np.zeros(60), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(fitted, best, atol=1e-5)
    score = fitted
    d = score[pairs.left] - score[pairs.right]
    slope = (pairs.outcome == 0) - 1 / (1 + np.exp(-d))
    gradient = np.bincount(pairs.left, slope, 60) - np.bincount(pairs.right, slope, 60)
    np.testing.assert_allclose(gradient - 0.3 * score, 0, atol=1e-8)


def test_swapping_left_and_right_turns_the_side_only():
    answers, _, _ = simulated(2)
    item, who = answers.item, answers.annotator
    things = answers.things[answers.thing.reshape(-1, 2)]
    rank = answers.rank.reshape(-1, 2)
    winner = np.where(rank[:, 0] < rank[:, 1], things[:, 0], things[:, 1])
    swapped = Rankings.from_comparisons(item, who, things[:, 1], things[:, 0], winner)
    one, two = aggregate(answers), aggregate(swapped)
    np.testing.assert_allclose(one.items["score"], two.items["score"], atol=1e-6)
    assert float(one.params["side"]) == pytest.approx(-float(two.params["side"]), abs=1e-6)


def test_careless_annotators_are_found_and_do_not_count():
    taus, plain, hits = [], [], []
    for seed in range(3):
        answers, score, lazy = simulated(seed)
        result = aggregate(answers)
        taus.append(kendalltau(result.items["score"], score).statistic)
        naive = aggregate(answers, "bradley-terry[honest=False]")
        plain.append(kendalltau(naive.items["score"], score).statistic)
        honest = dict(zip(answers.annotators.tolist(), result.annotators["honest"], strict=True))
        worst = sorted(honest, key=honest.__getitem__)[: len(lazy)]
        hits.append(len(set(worst) & set(lazy)) / len(lazy))
    assert np.mean(taus) > np.mean(plain) + 0.01
    assert np.mean(hits) > 0.9


def test_intervals_cover_true_scores():
    covered = []
    for seed in range(4):
        answers, score, _ = simulated(seed, careless=0.2)
        items = aggregate(answers, "bradley-terry[strength=0.44]").items
        true = score - score.mean()
        covered.append(((items["low"] <= true) & (true <= items["high"])).mean())
    assert 0.9 <= np.mean(covered) <= 1.0


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce"])
def test_the_objective_never_falls(method):
    answers, _, _ = simulated(3)
    trace = np.array(aggregate(answers, f"{method}[tol=0,max_iter=40]").trace)
    assert (np.diff(trace) > -1e-8 * np.abs(trace[1:])).all()


def test_plackett_luce_of_two_things_is_bradley_terry():
    answers, score, _ = simulated(4, careless=0.0)
    spec = "bradley-terry[ties=False,side=False,honest=False,strength=0.01]"
    one = aggregate(answers, spec).items["score"]
    two = aggregate(answers, "plackett-luce[prior=0.01]").items["score"]
    assert np.corrcoef(one, two)[0, 1] > 0.999
    assert kendalltau(two, score).statistic > 0.7


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "borda"])
def test_groups_that_nothing_compares_are_ranked_apart(method):
    values = [["a", "b"]] * 3 + [["c", "d", "e"]] * 2
    answers = Rankings.from_values(["p"] * 3 + ["q"] * 2, list("uvwuv"), values)
    result = aggregate(answers, method)
    table = dict(zip(answers.things.tolist(), result.items["group"].tolist(), strict=True))
    assert table == {"a": 2, "b": 2, "c": 1, "d": 1, "e": 1}
    ranks = dict(zip(answers.things.tolist(), result.items["rank"].tolist(), strict=True))
    assert ranks == {"a": 1, "b": 2, "c": 1, "d": 2, "e": 3}
    assert any("2 groups of things" in note for note in result.notes)
    consensus_values = [[e["value"] for e in value] for value in result.truth.values()]
    assert consensus_values == [["a", "b"], ["c", "d", "e"]]


def test_lists_in_order_of_rank_show_no_side():
    """A file that lists the best first does not say what was shown first."""
    values = [["a", "b", "c"]] * 5 + [["b", "a", "c"]] * 2
    answers = Rankings.from_values(["q"] * 7, [f"v{n}" for n in range(7)], values)
    result = aggregate(answers)
    assert float(result.params["side"]) == 0
    order = result.items["thing"][np.argsort(result.items["rank"])].tolist()
    assert order == ["a", "b", "c"]


def test_names_do_not_matter():
    answers, _, _ = simulated(6)
    rename = np.random.default_rng(0).permutation(60)
    things = rename[answers.thing.reshape(-1, 2)]
    rank = answers.rank.reshape(-1, 2)
    names = [[f"t{t:02d}" for t in things[:, side]] for side in (0, 1)]
    winner = [a if r[0] < r[1] else b for a, b, r in zip(*names, rank.tolist(), strict=True)]
    other = Rankings.from_comparisons(answers.item, answers.annotator, *names, winner)
    one, two = aggregate(answers).items["score"], aggregate(other).items["score"]
    np.testing.assert_allclose(one, two[rename], atol=1e-7)


@pytest.mark.parametrize(
    ("name", "left", "right", "words", "bar"),
    [
        ("convargs", "arg1", "arg2", {"a1": "left", "a2": "right", "equal": "tie"}, 0.840),
        ("music_similarity_prefs", "a", "b", {"a": "left", "b": "right", "s": "tie"}, 0.74),
    ],
)
def test_held_out_comparisons_are_predicted_as_specified(name, left, right, words, bar):
    """Two of five folds; the specification has .834 and .733 over five."""
    folder = shared_path(name)
    answers, tasks = (
        pl.read_csv(folder / f"{file}.csv.gz", infer_schema=False) for file in ("answers", "tasks")
    )
    if name != "convargs":
        tasks = tasks.with_columns(
            a=pl.col("query") + " " + pl.col("doc_a"), b=pl.col("query") + " " + pl.col("doc_b")
        )
    frame = answers.join(tasks, on="task", how="left").with_columns(
        pl.col("label").replace(words).alias("winner")
    )
    columns = (frame[column].to_list() for column in ("task", "worker", left, right, "winner"))
    comparisons = Rankings.from_comparisons(*columns)
    fold = np.random.default_rng(0).integers(5, size=len(comparisons))
    losses = []
    for number in range(2):
        result = aggregate(comparisons.keep(fold != number))
        test = comparisons.keep(fold == number)
        pairs, who = test.pairs(), test.annotator
        score = result.params["score"]
        d = score[pairs.left] - score[pairs.right] + float(result.params["side"])
        odds = np.stack([np.exp(d / 2), np.exp(-d / 2), np.full_like(d, result.params["tie"])], 1)
        rows = np.arange(len(d))
        honest = (odds / odds.sum(axis=1, keepdims=True))[rows, pairs.outcome]
        eta = result.params["honest"][who]
        likely = eta * honest + (1 - eta) * result.params["own"][who, pairs.outcome]
        losses.append(-np.log(likely).mean())
    assert np.mean(losses) < bar


def test_scores_of_things_are_no_ranking_and_refused_in_words():
    with pytest.raises(DataError, match="row 1: a ranking is a list"):
        Rankings.from_values(["a"], ["x"], [0.3])
