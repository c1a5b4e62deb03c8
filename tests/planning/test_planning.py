import csv
import json
import math
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import (
    Annotations,
    DataError,
    MethodError,
    OptionError,
    aggregate,
    plan,
    policies,
    simulate,
)
from dissensus.planning import Curve, Point
from dissensus.planning.choosing import Constraints, choose
from dissensus.planning.information import (
    Lookahead,
    entropy,
    expected_accuracy,
    expected_entropy,
    fit,
    information,
    information_table,
    posterior_state,
)
from dissensus.planning.label_errors import label_errors
from dissensus.planning.policies import NoiseModel, noise_model_of
from dissensus.planning.sections import curve_chart

from ..support import annotation_rows, relation, run, shared, shared_truth

POLICIES = [name for name in policies if name != "active-lab"]


def crowd(**options):
    size = {"n_items": 60, "n_annotators": 12, "n_classes": 3, "feedback": 3, **options}
    return simulate("independent-confusion", workerload=size["n_items"], **size)


def distributions(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def pairs_of(found):
    table = found.table
    return list(zip(table["item"].tolist(), table["annotator"].tolist(), strict=True))


def information_by_loops(posterior, matrix):
    """The mutual information of truth and answer, term by term."""
    n_classes = len(posterior)
    says = [sum(posterior[t] * matrix[t][g] for t in range(n_classes)) for g in range(n_classes)]
    return sum(
        posterior[t] * matrix[t][g] * math.log(matrix[t][g] / says[g])
        for t, g in product(range(n_classes), repeat=2)
    )


def test_information_is_the_mutual_information_of_truth_and_answer():
    rng = np.random.default_rng(0)
    posterior, matrix = distributions(rng, 7, 3), distributions(rng, 7, 3, 3)
    expected = [information_by_loops(b, m) for b, m in zip(posterior, matrix, strict=True)]
    np.testing.assert_allclose(
        information(posterior, matrix, entropy(matrix)), expected, rtol=1e-10
    )
    table = information_table(posterior, matrix, entropy(matrix))
    every = [[information_by_loops(b, m) for m in matrix] for b in posterior]
    np.testing.assert_allclose(table, every, rtol=1e-10)


def test_guesses_have_no_information_and_perfect_answers_all_of_it():
    posterior = np.array([[0.2, 0.5, 0.3]])
    guess, perfect = np.full((1, 3, 3), 1 / 3), np.eye(3)[None]
    assert information(posterior, guess, entropy(guess))[0] == pytest.approx(0, abs=1e-12)
    assert information(posterior, perfect, entropy(perfect)) == pytest.approx(entropy(posterior))


def test_the_entropy_expected_under_a_dirichlet_is_that_of_its_draws():
    counts = np.array([0.7, 2.0, 4.5])
    draws = np.random.default_rng(1).dirichlet(counts, size=200_000)
    assert expected_entropy(counts) == pytest.approx(entropy(draws).mean(), abs=2e-3)


def test_expected_accuracy_is_that_of_the_best_class_after_every_answer():
    rng = np.random.default_rng(2)
    posterior, matrix = distributions(rng, 5, 3), distributions(rng, 5, 3, 3)
    expected = [
        sum(max(b[t] * m[t][g] for t in range(3)) for g in range(3))
        for b, m in zip(posterior, matrix, strict=True)
    ]
    np.testing.assert_allclose(expected_accuracy(posterior, matrix), expected)
    assert (expected_accuracy(posterior, matrix) >= posterior.max(axis=1) - 1e-12).all()


def test_pending_answers_follow_the_chain_rule():
    """The information of two answers is that of the first, and of the second given the first."""
    rng = np.random.default_rng(3)
    posterior, matrix = distributions(rng, 1, 2), distributions(rng, 2, 2, 2)
    lookahead, noise_model = Lookahead(posterior), NoiseModel(matrix, entropy(matrix))
    item, one, other = np.array([0]), np.array([0]), np.array([1])
    first = lookahead.information(item, one, noise_model)[0]
    alone = lookahead.information(item, other, noise_model)[0]
    lookahead.request(item, one, matrix)
    second = lookahead.information(item, other, noise_model)[0]
    both = np.einsum("tg,th->tgh", *matrix).reshape(2, 4)
    together = entropy(posterior[0] @ both) - posterior[0] @ entropy(both)
    assert first + second == pytest.approx(together, rel=1e-9)
    assert second < alone
    assert lookahead.remaining_entropy[0] == pytest.approx(entropy(posterior)[0] - first, rel=1e-9)


def test_the_mean_of_lookahead_posteriors_is_the_posterior():
    rng = np.random.default_rng(4)
    posterior, matrix = distributions(rng, 4, 3), distributions(rng, 5, 3, 3)
    lookahead, items = Lookahead(posterior), np.arange(4)
    for _ in range(2):  # nine series of answers, all of which are kept
        lookahead.request(items, rng.integers(5, size=4), matrix)
    mean = np.einsum("rb,rbk->rk", lookahead.weight, lookahead.branch)[lookahead.row]
    np.testing.assert_allclose(mean, posterior, rtol=1e-10)


def test_a_label_that_nobody_else_can_judge_says_nothing_about_its_annotator():
    annotations = relation([("a", "x", "0"), ("b", "x", "1"), ("c", "y", "0"), ("c", "z", "1")])
    found = posterior_state(relation([("a", "x", "0"), ("b", "x", "1")], annotators="xn"))
    np.testing.assert_allclose(found.counts[0], found.counts[1], atol=0.05)
    judged = posterior_state(annotations)
    assert judged.counts.sum(axis=(1, 2)) == pytest.approx(8, abs=1.5)  # hardly above the prior


def test_good_annotators_are_distinguished_from_spammers():
    simulated = simulate(
        "hammer-spammer[ratio=0.5]", n_items=200, n_annotators=10, feedback=5, workerload=200
    )
    right = np.einsum("att->a", posterior_state(simulated.annotations).confusion) / 2
    assert right[:5].min() > right[5:].max() + 0.2


def test_a_fit_with_one_label_per_item_does_not_collapse():
    simulated = simulate(
        "one-coin[low=0.6,high=0.9]", n_items=400, n_annotators=40, feedback=1, workerload=400
    )
    vote = (simulated.annotations.votes().argmax(axis=1) == simulated.truth).mean()
    assert (fit(simulated.annotations).label == simulated.truth).mean() > vote - 0.03
    assert (
        aggregate(simulated.annotations, "hierarchical").label == simulated.truth
    ).mean() < vote - 0.1


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=25, deadline=None)
@given(
    rows=annotation_rows(),
    budget=st.integers(1, 30),
    limit=st.integers(0, 3),
    per_item=st.sampled_from([None, 1, 2]),
    batch=st.sampled_from([None, 4]),
)
def test_plans_keep_their_terms(policy, rows, budget, limit, per_item, batch):
    annotations = relation(rows, items="abcdef", annotators="vwxyz", classes="012")
    found = plan(
        annotations,
        budget=budget,
        policy=policy,
        limit=limit,
        per_item=per_item,
        batch=batch,
        draws=0,
        seed=budget,
    )
    known_pairs = pairs_of(found)
    known = {(row[0], row[1]) for row in rows}
    assert len(known_pairs) == len(set(known_pairs))
    assert not known & set(known_pairs)
    assert len(known_pairs) <= min(budget, batch or budget)
    assert np.bincount(found.annotator, minlength=5).max() <= limit
    if per_item:
        assert np.bincount(found.item, minlength=6).max() <= per_item
    if limit == 3 and per_item is None and batch is None:
        # Everything that can be asked is asked while there is budget.
        free = [sum((i, a) not in known for i in "abcdef") for a in "vwxyz"]
        assert len(known_pairs) == min(budget, sum(min(one, 3) for one in free))
    assert (found.gain >= 0).all()
    assert not (found.after < found.before - 1e-9).any()  # both are NaN where it cannot be told
    assert len(found) or "can be requested" in found.reason


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_plan(policy):
    annotations = crowd().annotations
    one, other = (plan(annotations, budget=20, policy=policy, draws=2, seed=3) for _ in range(2))
    assert one.as_dict() == other.as_dict()


def test_the_joint_policy_takes_the_best_of_all_pairs_that_are_left():
    annotations = crowd(n_items=30, n_annotators=60, feedback=4).annotations
    view = posterior_state(annotations)
    known_pairs = set(zip(annotations.item.tolist(), annotations.annotator.tolist(), strict=True))
    every = {
        (i, a): information_by_loops(view.posterior[i], view.confusion[a])
        for i, a in product(range(30), range(60))
        if (i, a) not in known_pairs
    }
    found = plan(annotations, budget=1, draws=0)
    assert found.gain[0] == pytest.approx(max(every.values()), rel=1e-9)
    best = [max(value for (i, _), value in every.items() if i == item) for item in range(30)]
    several = plan(annotations, budget=10, per_item=1, draws=0)
    np.testing.assert_allclose(several.gain, sorted(best, reverse=True)[:10], rtol=1e-6)


def test_nobody_gets_everything_while_little_is_known_of_them():
    """All are alike but for luck: the first batch is spread, a limitless one in the end not."""
    rng = np.random.default_rng(0)
    annotations = Annotations.from_codes(
        np.arange(200), rng.integers(20, size=200), rng.integers(2, size=200),
        items=200, annotators=20, classes=2,
    )  # fmt: skip
    load = np.bincount(plan(annotations, budget=100, draws=0).annotator, minlength=20)
    assert load.max() <= math.ceil(posterior_state(annotations).counts.sum(axis=(1, 2)).max()) < 20
    bold = plan(annotations, budget=100, policy="joint[trust=1000]", per_item=1, draws=0)
    assert np.bincount(bold.annotator).max() > 60
    # Two people have to do what ten would else share.
    two = plan(annotations, budget=100, annotators=["0", "1"], draws=0)
    assert len(two) == 100


def test_gain_is_weighed_against_cost():
    annotations = crowd().annotations
    dear = {name: 100 if name in "0123456" else 1 for name in annotations.annotators.tolist()}
    found = plan(annotations, budget=40, cost=dear, draws=0)
    assert set(found.cost) == {1.0}
    assert len(found) == 40
    rich = plan(annotations, budget=350.5, cost=100, draws=0)
    assert len(rich) == 3
    np.testing.assert_allclose(rich.table["gain_per_cost"], rich.gain / 100)


def test_only_pairs_that_are_available_are_planned():
    annotations = crowd().annotations
    some = Annotations.from_codes(
        [0, 1, 1, 2], [4, 5, 6, 7], [0, 0, 0, 0], items=60, annotators=12, classes=3
    )
    found = plan(annotations, budget=50, available=some, draws=0)
    known = set(zip(annotations.item.tolist(), annotations.annotator.tolist(), strict=True))
    there = {(0, 4), (1, 5), (1, 6), (2, 7)} - known
    assert set(zip(found.item.tolist(), found.annotator.tolist(), strict=True)) == there
    assert (
        "No label can be requested"
        in plan(annotations, budget=5, available=annotations, draws=0).reason
    )


def test_somebody_new_is_taken_for_one_of_the_crowd():
    annotations = crowd().annotations
    found = plan(annotations, budget=5, annotators=["new", "newer"], limit=3, draws=0)
    assert set(found.table["annotator"].tolist()) == {"new", "newer"}
    assert len(found) == 5
    view = posterior_state(found.annotations)
    position = found.annotations.annotators.tolist().index("new")
    np.testing.assert_allclose(view.counts[position].sum(axis=1), 4)
    with_result = plan(
        annotations, aggregate(annotations, "bcc"), budget=5, annotators=["new"], draws=0
    )
    assert set(with_result.table["annotator"].tolist()) == {"new"}


def test_items_that_are_in_doubt_come_first():
    rows = [("sure", name, "0") for name in "uvwxyz"]
    rows += [("split", name, str(position % 2)) for position, name in enumerate("uvwx")]
    for policy in ("joint", "uncertainty"):
        found = plan(relation(rows), budget=1, policy=policy, draws=0)
        assert found.table["item"].tolist() == ["split"]
    fewest = plan(relation(rows, items=["sure", "split", "empty"]), budget=1, policy="random")
    assert fewest.table["item"].tolist() == ["empty"]


def test_joint_needs_at_most_seven_tenths_of_the_labels_of_random():
    """The whole loop on a small crowd: ask, answer, fit, and ask again."""
    simulated = crowd_that_answers(seed=1)
    joint, random = (closed_loop(simulated, policy) for policy in ("joint", "random"))
    assert joint[420] > random[600]
    assert joint[600] > random[600] + 0.02


def crowd_that_answers(seed):
    rng = np.random.default_rng(seed)
    right = np.where(np.arange(20) < 8, 0.95, 0.55)
    return rng.integers(2, size=150), right, rng


def closed_loop(simulated, policy):
    truth, right, _ = simulated
    rng = np.random.default_rng(5)
    item, annotator = np.arange(150), rng.integers(20, size=150)
    accuracy, columns = {}, [np.empty(0, int)] * 3
    while True:
        lies = rng.random(len(item)) > right[annotator]
        new = (item, annotator, truth[item] ^ lies)
        columns = [np.concatenate(both) for both in zip(columns, new, strict=True)]
        annotations = Annotations.from_codes(*columns, items=150, annotators=20, classes=2)
        result = fit(annotations)
        accuracy[len(annotations)] = (result.label == truth).mean()
        if len(annotations) == 600:
            return accuracy
        found = plan(annotations, result, budget=30, policy=policy, draws=0, seed=len(annotations))
        item, annotator = found.item, found.annotator


@pytest.mark.numeric
def test_many_items_and_annotators_need_no_table_of_both():
    simulated = simulate(
        "independent-confusion",
        n_items=20_000,
        n_annotators=3000,
        n_classes=2,
        feedback=3,
        workerload=20_000,
        fast=True,
    )
    tracemalloc.start()
    found = plan(simulated.annotations, budget=2000, limit=5, draws=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000 * 3000  # not even one byte for every pair
    assert len(set(pairs_of(found))) == 2000
    assert np.bincount(found.annotator).max() == 5
    anybody = plan(simulated.annotations, budget=2000, limit=5, policy="uncertainty", draws=0)
    assert found.gain.sum() > anybody.gain.sum()


def test_candidates_of_groups_are_hardly_worse_than_all_pairs():
    annotations = crowd(n_items=300, n_annotators=100, n_classes=4).annotations
    view = posterior_state(annotations)
    room = np.full(100, 300)
    keys = np.arange(300 * 100)
    grouped, full = (
        choose(
            view,
            policies.create("joint"),
            Constraints(100.0, np.ones(100), room, 1, None, listed),
            np.random.default_rng(0),
        )
        for listed in (None, keys)
    )
    assert grouped.gain.sum() > 0.995 * full.gain.sum()


def test_active_lab_asks_where_the_classifier_and_the_crowd_are_least_sure():
    rows = [(item, name, "0") for item in "abc" for name in "xyz"] + [("d", "x", "0")]
    annotations = relation(rows, classes="01", annotators="wxyz")
    posterior = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.5, 0.5]])
    found = plan(annotations, budget=1, policy="active-lab", probabilities=posterior, draws=0)
    assert found.table["item"].tolist() == ["d"]
    with pytest.raises(OptionError, match="needs the probabilities of a classifier"):
        plan(annotations, budget=1, policy="active-lab")
    with pytest.raises(DataError, match=r"here \(4, 2\), .* these are \(3, 2\)"):
        plan(annotations, budget=1, policy="active-lab", probabilities=posterior[:3])


def test_a_curve_rises_and_says_where_it_reaches_a_target():
    found = plan(crowd().annotations, budget=60, target=0.9, draws=8)
    points = found.curve.points
    assert points[0].labels == 0
    assert points[0].accuracy == pytest.approx(found.accuracy[0])
    assert [one.accuracy for one in points] == sorted(one.accuracy for one in points)
    assert all(one.low <= one.accuracy <= one.high for one in points)
    assert points[3].labels == 60
    assert found.accuracy[1] > found.accuracy[0]
    line = Curve((Point(0, 0.0, 0.6, 0.5, 0.7), Point(10, 20.0, 0.8, 0.7, 0.9)))
    assert line.reaching(0.69) == Point(5, 10.0, *map(pytest.approx, (0.7, 0.6, 0.8)))
    assert line.reaching(0.5).labels == 0
    assert line.reaching(0.9) is None


def test_the_curve_is_right_where_the_model_holds():
    """The crowd is drawn from the model itself, so the curve should be about right."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    item = np.repeat(np.arange(400), 3)
    annotator = (np.array([0, 5, 10]) + rng.integers(5, size=(400, 3))).ravel()

    def with_answers(item, annotator, label):
        more = truth[item] ^ (rng.random(len(item)) > 0.75)
        label = np.concatenate([label, more[len(label) :]])
        return Annotations.from_codes(item, annotator, label, items=400, annotators=15, classes=2)

    annotations = with_answers(item, annotator, np.empty(0, int))
    known = dict(zip(annotations.items.tolist(), truth.astype(str).tolist(), strict=True))
    found = plan(annotations, budget=400, policy="random", draws=10, truth=known)
    later = with_answers(
        np.concatenate([annotations.item.astype(int), found.item]),
        np.concatenate([annotations.annotator, found.annotator]),
        annotations.label,
    )
    point = next(one for one in found.curve if one.labels == 400)
    assert point.accuracy == pytest.approx((fit(later).label == truth).mean(), abs=0.04)


def test_known_labels_correct_what_is_expected():
    annotations, truth = crowd(n_items=200).annotations, crowd(n_items=200).truths
    wide = plan(annotations, budget=50, draws=4)
    narrow = plan(annotations, budget=50, draws=4, truth=truth)
    result = fit(annotations)
    wrong = int((result.label != crowd(n_items=200).truth).sum())
    best = result.probabilities.max(axis=1)
    assert narrow.errors == label_errors(best, n_checked=200, n_wrong=wrong)
    assert wide.errors == label_errors(best)
    assert narrow.errors.high - narrow.errors.low < wide.errors.high - wide.errors.low
    for found in (wide, narrow):
        assert found.curve.points[0].accuracy == pytest.approx(found.errors.accuracy[0])
    np.testing.assert_array_equal(wide.item, narrow.item)  # the plan itself does not look at it


def test_it_stops_only_where_the_lower_end_of_the_accuracy_reaches_the_target():
    rows = [(f"{item}{k}", name, "0") for k in range(40) for item in "abc" for name in "uvwxyz"]
    rows += [(f"{item}{k}", name, "1") for k in range(40) for item in "ghi" for name in "uvwxyz"]
    annotations = relation(rows, annotators="uvwxyzn")
    unsure = plan(crowd().annotations, budget=5, target=0.8, draws=0)
    assert unsure.errors.accuracy[1] < 0.8
    assert not unsure.stop
    known = {f"{item}{k}": "01"[item > "c"] for k in range(40) for item in "abcghi"}
    sure = plan(annotations, budget=5, target=0.95, truth=known, draws=0)
    assert sure.errors.accuracy[1] >= 0.95
    assert sure.stop
    assert sure.reason.startswith("Stop: about ")
    wrong = plan(
        annotations, budget=5, target=0.9, truth=known | {f"a{k}": "1" for k in range(40)}, draws=0
    )
    assert not wrong.stop
    little = plan(crowd().annotations, budget=5, min_gain=5.0, draws=0)
    assert not little.stop
    assert "hardly help" in little.reason
    assert "check 59 random items" in little.reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget = 0, but it must be above 0"),
        ({"budget": math.nan}, "budget = nan"),
        ({"per_item": 0}, "per_item = 0, but it must be at least 1"),
        ({"batch": 0}, "batch = 0"),
        ({"target": 1.5}, "target = 1.5, but it must be above 0 and below 1"),
        ({"draws": -1}, "draws = -1"),
        ({"cost": 0}, "cost = 0, but it must be above 0"),
        ({"limit": -2}, "limit = -2, but it must be at least 0"),
        ({"cost": {"0": 1}}, "no cost for annotator '1'; 11 have none"),
        ({"limit": {"nobody": 1}}, "a limit for 'nobody', who is not among the annotators"),
        ({"annotators": []}, "annotators is empty"),
        ({"policy": "join"}, "no method 'join'; did you mean joint?"),
        ({"policy": "joint[explore=2]"}, "explore = 2, but it must be at least 0 and at most 1"),
    ],
)
def test_impossible_plans_are_refused(options, message):
    with pytest.raises((OptionError, DataError, MethodError)) as problem:
        plan(crowd().annotations, **{"budget": 5, "draws": 0, **options})
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_result_of_other_annotations_is_refused():
    with pytest.raises(DataError, match="the result has other items than the annotations"):
        plan(crowd().annotations, aggregate(crowd(n_items=61).annotations, "bcc"), budget=5)
    with pytest.raises(DataError, match="1 classes leave nothing to decide"):
        plan(relation([("a", "x", "0")]), budget=5)


@pytest.mark.parametrize("method", ["majority", "glad", "dawid-skene", "mace", "bcc"])
def test_any_result_will_do(method):
    annotations = crowd().annotations
    assert len(plan(annotations, aggregate(annotations, method), budget=10, draws=1)) == 10


def test_a_plan_needs_no_labels():
    nothing = Annotations.from_codes(*np.empty((3, 0), int), items=5, annotators=3, classes=2)
    for policy in POLICIES:
        found = plan(nothing, budget=5, policy=policy, per_item=1, draws=2)
        assert sorted(found.item.tolist()) == [0, 1, 2, 3, 4]


def test_mean_voices_are_the_mean_matrices():
    view = posterior_state(crowd().annotations)
    noise_model = noise_model_of(view)
    np.testing.assert_allclose(noise_model.matrix.sum(axis=2), 1)
    np.testing.assert_allclose(noise_model.noise, entropy(noise_model.matrix))


def written(tmp_path, **options):
    simulated = crowd(**options)
    rows = zip(
        simulated.annotations.item,
        simulated.annotations.annotator,
        simulated.annotations.label,
        strict=True,
    )
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "annotator", "label"), *rows])
    with (tmp_path / "truth.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("item", "label"), *simulated.truths.items()])
    return tmp_path / "answers.csv"


def test_the_command_writes_a_plan_that_can_be_uploaded(tmp_path):
    path = written(tmp_path)
    cost = "".join(f"{who},{1 + who % 2}\n" for who in range(12))
    (tmp_path / "cost.csv").write_text(f"annotator,cost\n{cost}")
    options = ["--budget", 20, "--cost", "cost.csv", "--limit", 4, "--draws", 2]
    done = run("next", path, *options, "-o", "plan.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"off by a factor of two" in b" ".join(done.stdout.split())
    with (tmp_path / "plan.csv").open() as file:
        table = list(csv.DictReader(file))
    assert 18 < sum(float(row["cost"]) for row in table) <= 20
    assert {row["cost"] for row in table} <= {"1.0", "2.0"}
    streamed = run("next", path, *options, "-o", "-", cwd=tmp_path)
    assert streamed.stdout == (tmp_path / "plan.csv").read_bytes()


def test_the_command_writes_the_whole_plan_as_json(tmp_path):
    path = written(tmp_path)
    (tmp_path / "who.txt").write_text("0\n1\nnew\n")
    options = ["--among", "who.txt", "--budget", 12, "--target", 0.99, "--json"]
    done = run("next", path, *options, "--truth", "truth.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["labels"] == len(summary["plan"]) == 12
    assert {row["annotator"] for row in summary["plan"]} <= {"0", "1", "new"}
    assert summary["errors"]["n_checked"] == 60
    assert summary["stop"] is False
    assert summary["curve"][0]["labels"] == 0


def test_the_command_draws_the_curve(tmp_path):
    path = written(tmp_path, n_items=20)
    done = run("next", path, "--draws", 2, "--target", 0.9, "--chart", "c.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Expected accuracy" in (tmp_path / "c.svg").read_text()
    spec = curve_chart(plan(crowd().annotations, budget=5, draws=2))
    assert len(spec["layer"]) == 3  # band, line and target
    wrong = run("next", path, "--chart", "c.pdf", cwd=tmp_path)
    assert wrong.returncode == 2
    assert b"a chart ends in .svg, .png, .html" in wrong.stderr


def test_the_command_says_what_is_wrong_in_a_line(tmp_path):
    path = written(tmp_path, n_items=20)
    (tmp_path / "cost.csv").write_text("annotator,cost\n0,cheap\n")
    for options, message in [
        (["--cost", "cost.csv"], b"'0' has 'cheap', which is not a number"),
        (["--strategy", "best"], b"no method 'best'"),
        (["--strategy", "active-lab"], b"active-lab needs the probabilities of a classifier"),
        (["--target", "2"], b"target = 2.0, but it must be"),
        (["--limit", "none.csv"], b"none.csv"),
    ]:
        done = run("next", path, *options, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr, done.stderr
        assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", ["one-coin", "rte"])
def test_replayed_labels_of_a_crowd_are_saved(name):
    if name == "rte":
        full, truth = shared(name), shared_truth(name)
        right = np.array([int(truth[item]) for item in full.items.tolist()])
    else:
        made = simulate(name, n_items=200, n_annotators=30, n_classes=2, feedback=10, seed=1)
        full, right = made.annotations, made.truth
    n = full.n_items
    keys = full.item.astype(np.int64) * full.n_annotators + full.annotator
    accuracy = {}
    for policy in ("joint", "random"):
        annotations = full.keep(np.zeros(len(full), dtype=bool))
        for turn in range(11):  # the first label of every item, then a fifth of the items
            found = plan(
                annotations,
                budget=n if turn == 0 else n // 5,
                policy=policy if turn else "random",
                per_item=1,
                available=full,
                draws=0,
                seed=turn,
            )
            bought = np.isin(keys, found.item * full.n_annotators + found.annotator)
            kept = np.isin(
                keys, annotations.item.astype(np.int64) * full.n_annotators + annotations.annotator
            )
            annotations = full.keep(bought | kept)
        assert len(annotations) == 3 * n
        accuracy[policy] = (fit(annotations).label == right).mean()
    assert accuracy["joint"] > accuracy["random"] + 0.03
