"""What every strategy of simulation promises, and settings that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dissensus.answers.numbers import Numbers
from dissensus.base.probability import pick
from dissensus.datasets.confusions import OneCoin
from dissensus.datasets.simulation import simulate
from dissensus.datasets.strategy import dominant
from dissensus.errors import DataError, MethodError, OptionError
from dissensus.registry import simulators

from .test_simulation import T1, counted

# What each strategy promises


@pytest.mark.parametrize(("ratio", "spammers"), [(0, 0), (0.1, 1), (0.29, 5), (0.95, 18), (1, 19)])
def test_the_number_of_spammers_is_rounded_down(ratio, spammers):
    confusion = simulate(f"hammer-spammer[ratio={ratio}]", n_annotators=19).crowd.confusion
    assert int((confusion == 0.5).all(axis=(1, 2)).sum()) == spammers
    assert (confusion[: 19 - spammers] == np.eye(2)).all()


def test_the_default_ratio_is_a_tenth():
    for name in ("hammer-spammer", "student-teacher", "discrete-difficulty"):
        assert simulators.create(name).ratio == 0.1


def test_hammers_are_always_right():
    drawn = simulate("hammer-spammer[ratio=0]", n_items=50, n_annotators=3, n_classes=4)
    assert (drawn.annotations.label == drawn.truth[drawn.annotations.item]).all()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_mean_diagonal_is_that_of_the_largest_part_of_a_uniform_simplex(n_classes):
    drawn = simulate(
        "independent-confusion", n_items=1, n_annotators=4000, n_classes=n_classes, feedback=1
    )
    diagonal = np.einsum("att->at", drawn.crowd.confusion)
    np.testing.assert_array_equal(diagonal, drawn.crowd.confusion.max(axis=2))
    expected = (1 / np.arange(1, n_classes + 1)).sum() / n_classes
    assert abs(diagonal.mean() - expected) < 4 * diagonal.std() / np.sqrt(diagonal.size)


def test_dominant_only_swaps():
    matrices = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 4))
    swapped = dominant(matrices)
    np.testing.assert_array_equal(np.sort(swapped), np.sort(matrices))
    assert (swapped.argmax(axis=2) == np.arange(4)).all()
    assert not np.array_equal(swapped, matrices)


def test_picking_is_numpys_choice_row_by_row():
    probabilities = np.random.default_rng(0).dirichlet(np.full(6, 0.3), size=500)
    probabilities[::7] = np.eye(6)[2]
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    expected = [other.choice(6, p=row) for row in probabilities]
    assert pick(probabilities, one).tolist() == expected


def test_students_have_the_matrix_of_their_teacher():
    drawn = simulate("student-teacher[ratio=0.8]", **T1)
    student, teacher = drawn.extras["student_teacher_association"].T
    assert student.tolist() == list(range(6, 30))
    assert set(teacher.tolist()) <= set(range(6))
    confusion = drawn.crowd.confusion
    np.testing.assert_array_equal(confusion[student], confusion[teacher])
    assert (confusion.argmax(axis=2) == np.arange(5)).all()


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("copy_prob", [0.0, 0.4, 1.0])
def test_students_copy_answers_as_often_as_asked(copy_prob, fast):
    n_items = 20_000 if fast else 1000
    drawn = simulate(
        f"student-teacher[ratio=0.5,copy_prob={copy_prob}]",
        n_items=n_items, n_annotators=8, n_classes=4, feedback=6, fast=fast,
    )  # fmt: skip
    annotations, confusion = drawn.annotations, drawn.crowd.confusion
    label = np.full((n_items, 8), -1)
    label[annotations.item, annotations.annotator] = annotations.label
    for student, teacher in drawn.extras["student_teacher_association"]:
        both = (label[:, student] >= 0) & (label[:, teacher] >= 0)
        alike = (label[both, student] == label[both, teacher]).mean()
        by_chance = (confusion[teacher, drawn.truth[both]] ** 2).sum(axis=1).mean()
        expected = copy_prob + (1 - copy_prob) * by_chance
        slack = 4.2 * np.sqrt(expected * (1 - expected) / both.sum())
        assert abs(alike - expected) <= slack + 1e-12
    # Copying keeps everybody's own confusion.
    counts = counted(drawn)
    seen = counts.sum(axis=2, keepdims=True)
    error = np.sqrt(seen * confusion * (1 - confusion))
    assert (abs(counts - seen * confusion) <= 4.5 * error).all()


@pytest.mark.parametrize("fast", [False, True])
def test_easy_items_are_right_and_random_items_are_guessed(fast):
    drawn = simulate(
        "discrete-difficulty[ratio=0.5,ratio_diff=3,random=0.2]",
        n_items=3000, n_annotators=6, n_classes=4, fast=fast,
    )  # fmt: skip
    difficulty = drawn.extras["difficulties"]
    for kind, share in (("easy", 0.6), ("hard", 0.2), ("random", 0.2)):
        found = (difficulty == kind).mean()
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / 3000)
    annotations = drawn.annotations
    kind, right = difficulty[annotations.item], annotations.label == drawn.truth[annotations.item]
    assert right[kind == "easy"].all()
    counts = np.bincount(annotations.label[kind == "random"], minlength=4)
    expected = counts.sum() / 4
    assert abs(counts - expected).max() < 4 * np.sqrt(expected * 0.75)
    hard, confusion = kind == "hard", drawn.crowd.confusion
    assert (confusion[:3].argmax(axis=2) == np.arange(4)).all()
    assert not (confusion[3:].argmax(axis=2) == np.arange(4)).all()
    for annotator in range(6):
        its = hard & (annotations.annotator == annotator)
        probability = np.einsum("tt->t", confusion[annotator])[drawn.truth[annotations.item[its]]]
        error = np.sqrt((probability * (1 - probability)).sum())
        assert abs(right[its].sum() - probability.sum()) < 4 * error


@pytest.mark.parametrize("fast", [False, True])
def test_glad_is_right_as_often_as_ability_and_easiness_say(fast):
    drawn = simulate("glad", n_items=4000, n_annotators=8, n_classes=4, fast=fast)
    annotations, ability, easiness = (
        drawn.annotations,
        drawn.extras["ability"],
        drawn.extras["log_easiness"],
    )
    assert abs(easiness.mean() - 1) < 4 / np.sqrt(4000)
    assert abs(easiness.std() - 1) < 4 / np.sqrt(8000)
    right = annotations.label == drawn.truth[annotations.item]
    probability = 1 / (
        1 + np.exp(-ability[annotations.annotator] * np.exp(easiness[annotations.item]))
    )
    edges = np.quantile(probability, [0.2, 0.4, 0.6, 0.8])
    for part in range(5):
        its = np.digitize(probability, edges) == part
        error = np.sqrt((probability[its] * (1 - probability[its])).sum())
        assert abs(right[its].sum() - probability[its].sum()) < 4.2 * error + 1
    off = (annotations.label[~right].astype(int) - drawn.truth[annotations.item[~right]]) % 4
    wrong = np.bincount(off, minlength=4)[1:]
    assert abs(wrong - wrong.mean()).max() < 4 * np.sqrt(wrong.mean())


def test_mace_has_experts_and_spammers_and_few_in_between():
    drawn = simulate("mace", n_items=1, n_annotators=4000, n_classes=3)
    trust, bias = drawn.extras["trust"], drawn.extras["response_bias"]
    # P(trust < x) of a Beta(1/2, 1/2) is 2/pi arcsin(sqrt(x)).
    for level in (0.1, 0.5, 0.9):
        expected = 2 / np.pi * np.arcsin(np.sqrt(level))
        error = np.sqrt(expected * (1 - expected) / 4000)
        assert abs((trust < level).mean() - expected) < 4 * error
    confusion = drawn.crowd.confusion
    np.testing.assert_allclose(confusion[:, 0, 1], (1 - trust) * bias[:, 1])
    np.testing.assert_allclose(confusion[:, 1, 1], trust + (1 - trust) * bias[:, 1])


def test_one_coin_stays_between_low_and_high():
    strategy = OneCoin(a=2, b=6, low=0.4, high=0.8)
    drawn = simulate(strategy, n_items=1, n_annotators=4000, n_classes=5)
    correct, confusion = drawn.extras["correct"], drawn.crowd.confusion
    assert correct.min() >= 0.4
    assert correct.max() <= 0.8
    assert abs(correct.mean() - 0.5) < 4 * correct.std() / np.sqrt(4000)
    np.testing.assert_allclose(np.einsum("att->at", confusion), correct[:, None] * np.ones(5))
    np.testing.assert_allclose(confusion[:, 0, 3], (1 - correct) / 4)


@pytest.mark.parametrize("strength", [1e-4, 0.5, 20])
def test_members_of_a_community_vary_around_its_matrix(strength):
    drawn = simulate(
        f"community[n_communities=2,strength={strength}]",
        n_items=1, n_annotators=6000, n_classes=3,
    )  # fmt: skip
    confusion, centres = drawn.crowd.confusion, drawn.extras["community_matrices"]
    for community, centre in enumerate(centres):
        members = confusion[drawn.extras["community"] == community]
        assert abs(len(members) - 3000) < 4 * np.sqrt(1500)
        # A Dirichlet(strength · mean) has the variance mean (1 - mean) / (strength + 1).
        variance = centre * (1 - centre) / (strength + 1)
        assert (abs(members.mean(axis=0) - centre) < 4.2 * np.sqrt(variance / len(members))).all()
        if strength > 0.1:
            slack = 0.1 * variance.max()
            np.testing.assert_allclose(members.var(axis=0), variance, atol=slack)


def test_ordinal_confusion_falls_with_the_distance():
    drawn = simulate("ordinal", n_items=1, n_annotators=5000, n_classes=5)
    sharpness, shift = drawn.extras["sharpness"], drawn.extras["shift"]
    assert abs(sharpness.mean() - 2) < 4 / np.sqrt(5000)
    assert abs(shift.std() - 0.5) < 4 * 0.5 / np.sqrt(10_000)
    annotator = int(np.argmin(abs(sharpness - 1.5)))
    far = abs(np.arange(5)[:, None] + shift[annotator] - np.arange(5))
    weight = np.exp(-sharpness[annotator] * far)
    expected = weight / weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(drawn.crowd.confusion[annotator], expected)


@pytest.mark.parametrize("fast", [False, True])
def test_numbers_have_the_bias_and_precision_of_their_annotator(fast):
    drawn = simulate("numeric[noise=2]", n_items=3000, n_annotators=5, n_classes=9, fast=fast)
    assert isinstance(drawn.annotations, Numbers)
    assert drawn.crowd.confusion is None
    assert abs(drawn.truth.std() - 10) < 4 * 10 / np.sqrt(6000)
    error = drawn.annotations.value - drawn.truth[drawn.annotations.item]
    for annotator in range(5):
        its = error[drawn.annotations.annotator == annotator]
        sigma = 1 / np.sqrt(drawn.extras["precision"][annotator])
        assert abs(its.mean() - drawn.extras["bias"][annotator]) < 4 * sigma / np.sqrt(3000)
        assert abs(its.std() - sigma) < 4 * sigma / np.sqrt(6000)


def test_precisions_have_the_mean_that_noise_says():
    drawn = simulate("numeric[noise=2,evenness=3]", n_items=1, n_annotators=4000)
    precision = drawn.extras["precision"]
    assert abs(precision.mean() - 0.25) < 4 * 0.25 / np.sqrt(3 * 4000)


def test_matrices_come_from_a_file_or_from_python(tmp_path):
    matrices = np.random.default_rng(0).dirichlet(np.ones(2), size=(3, 2))
    np.save(tmp_path / "m.npy", matrices)
    spec = f"matrix-independent[file={tmp_path / 'm.npy'}]"
    from_file = simulate(spec, n_annotators=3, seed=1)
    from_python = simulate("given-matrices", matrices=matrices, n_annotators=3, seed=1)
    assert from_file.annotations == from_python.annotations
    np.testing.assert_array_equal(from_file.crowd.confusion, matrices)


# What cannot be


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("strategy", "options", "error", "message"),
    [
        ("hammer-spammer[ratio=1.5]", {}, MethodError, "ratio = 1.5, but .* at most 1"),
        ("student-teacher[ratio=-0.1]", {}, MethodError, "ratio = -0.1, but"),
        ("student-teacher[ratio=1]", {}, OptionError, "students of all 4 annotators; lower it"),
        ("student-teacher[copy_prob=2]", {}, MethodError, "copy_prob = 2, but"),
        ("discrete-difficulty[ratio_diff=-1]", {}, MethodError, "ratio_diff = -1, but"),
        ("one-coin[low=0.9,high=0.2]", {}, MethodError, "low = 0.9, but .* at most high = 0.2"),
        ("community[n_communities=0]", {}, MethodError, "n_communities = 0, but"),
        ("hammer", {}, MethodError, "did you mean hammer-spammer"),
        ("mace", {"feedback": 0}, OptionError, "feedback = 0, but"),
        ("mace", {"workerload": 0}, OptionError, "workerload = 0, but"),
        ("mace", {"n_items": 0}, OptionError, "n_items = 0, but .* at least 1"),
        ("mace", {"n_annotators": -1}, OptionError, "n_annotators = -1, but"),
        ("mace", {"n_classes": 1.5}, OptionError, "n_classes = 1.5, but"),
        ("mace", {"seed": -1}, OptionError, "seed = -1, but"),
        ("mace", {"workerload": 2}, OptionError, "give 8 labels, but 10 items need one each"),
        ("mace", {"workerload": 5, "feedback": 4}, OptionError, "lower feedback"),
        ("mace", {"matrices": [[[1]]]}, OptionError, "matrices are for given-matrices"),
        ("given-matrices", {}, OptionError, "give either file or matrices"),
        ("given-matrices", {"matrices": np.ones((4, 2, 3))}, OptionError, r"need \(4, 2, 2\)"),
        ("given-matrices", {"matrices": "what"}, OptionError, "must be numbers"),
        ("given-matrices", {"matrices": np.ones((4, 2, 2))}, OptionError, "not a distribution"),
        ("given-matrices", {"matrices": [[[2, -1]] * 2] * 4}, OptionError, "annotator 0, true"),
        ("given-matrices", {"matrices": np.full((4, 2, 2), np.nan)}, OptionError, "distribution"),
        ("given-matrices[file=none.npy]", {}, DataError, "none.npy: No such file"),
    ],
)  # fmt: skip
def test_impossible_settings_are_refused_in_one_line(strategy, options, error, message, fast):
    with pytest.raises(error, match=message) as caught:
        simulate(strategy, **{"n_items": 10, "n_annotators": 4} | options, fast=fast)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"not an array", b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00"]
)
def test_a_file_that_is_no_array_is_named(tmp_path, content):
    file = tmp_path / "m.npy"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"m.npy: not one NumPy array"):
        simulate(f"given-matrices[file={file}]")


def test_files_with_objects_or_several_arrays_are_refused(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "several.npz", np.eye(2), np.eye(3))
    for name in ("objects.npy", "several.npz"):
        with pytest.raises(DataError, match=f"{name}: not one NumPy array"):
            simulate(f"given-matrices[file={tmp_path / name}]")
