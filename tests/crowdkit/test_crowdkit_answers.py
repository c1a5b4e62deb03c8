"""crowd-kit's classes for comparisons, masks and texts: what each must return."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime

from dissensus import DataError, OptionError
from dissensus.crowdkit import (
    ROVER,
    BradleyTerry,
    NoisyBradleyTerry,
    SegmentationEM,
    SegmentationMajorityVote,
    SegmentationRASA,
)
from dissensus.crowdkit.aggregation.pairwise import _Comparisons

from ..support import shared_path

COMPARED = ["worker", "left", "right", "label"]


def comparisons(n: int = 4000, spammers: int = 0, seed: int = 0) -> tuple[pd.DataFrame, dict]:
    """Return comparisons of five things of known scores by ten workers."""
    random = np.random.default_rng(seed)
    score = {"a": 0.4, "b": 0.25, "c": 0.2, "d": 0.1, "e": 0.05}
    rows = []
    for _ in range(n):
        left, right = random.choice(list(score), 2, replace=False)
        worker = int(random.integers(10))
        wins = random.random() < score[left] / (score[left] + score[right])
        if worker < spammers:
            wins = True  # always the left one
        rows.append((worker, left, right, left if wins else right))
    return pd.DataFrame(rows, columns=COMPARED), score


def test_bradley_terry_finds_the_scores():
    data, score = comparisons(20_000)
    model = BradleyTerry(n_iter=1000, tol=1e-8)
    found = model.fit_predict(data)
    assert found.name == "agg_score"
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found, list(score.values()), atol=0.015)
    assert model.loss_history_[-1] < 1e-8
    assert 2 < len(model.loss_history_) < 1000


def test_bradley_terry_is_at_the_top_of_the_likelihood():
    data, _ = comparisons(500)
    found = BradleyTerry(n_iter=10_000, tol=1e-13).fit_predict(data)

    def likelihood(log_score: np.ndarray) -> float:
        score = pd.Series(np.exp(log_score), index=found.index)
        winner = score[data["label"]].to_numpy()
        both = score[data["left"]].to_numpy() + score[data["right"]].to_numpy()
        return float(np.log(winner / both).sum())

    slope = approx_fprime(np.log(found.to_numpy()), likelihood, 1e-6)
    np.testing.assert_allclose(slope, 0, atol=1e-3)


def test_bradley_terry_without_iterations_or_comparisons():
    data, _ = comparisons(200)
    assert BradleyTerry(n_iter=0).fit_predict(data).tolist() == pytest.approx([0.2] * 5)
    nothing = BradleyTerry(n_iter=3).fit_predict(pd.DataFrame([], columns=COMPARED))
    assert nothing.empty
    assert nothing.dtype == float
    with pytest.raises(DataError, match="label 'z' is neither of the two things compared"):
        BradleyTerry(n_iter=1).fit(data.assign(label="z"))
    with pytest.raises(OptionError, match="n_iter = -1"):
        BradleyTerry(n_iter=-1).fit(data)
    with pytest.raises(KeyError, match="no column 'right'"):
        BradleyTerry(n_iter=1).fit(data.drop(columns="right"))


def test_a_thing_that_never_won_has_no_score():
    rows = [("x", "a", "b", "a"), ("x", "b", "c", "b"), ("x", "c", "a", "a")]
    data = pd.DataFrame(rows, columns=COMPARED)
    found = BradleyTerry(n_iter=10, tol=0).fit_predict(data)
    assert found["c"] == 0
    assert found["a"] > found["b"] > 0


def test_noisy_bradley_terry_finds_who_always_takes_the_left():
    data, score = comparisons(6000, spammers=4)
    model = NoisyBradleyTerry(n_iter=500, tol=1e-10)
    found = model.fit_predict(data)
    assert found.sort_values(ascending=False).index.tolist() == list(score)
    assert model.skills_[:4].max() < 0.3 < 0.5 < model.skills_[4:].min()
    assert model.biases_[:4].min() > 0.9
    assert (found.index.name, model.skills_.name, model.biases_.name) == ("label", "skill", "bias")


def test_the_gradient_of_noisy_bradley_terry_is_that_of_its_likelihood():
    data, _ = comparisons(50)
    pairs, model = _Comparisons.of(data), NoisyBradleyTerry(regularization_ratio=0.1)
    worker = data["worker"].to_numpy()
    point = np.random.default_rng(1).normal(size=5 + 20)
    value = lambda x: model._negative(x, pairs, worker, 10)[0]  # noqa: E731
    _, slope = model._negative(point, pairs, worker, 10)
    np.testing.assert_allclose(slope, approx_fprime(point, value, 1e-6), atol=1e-4)


def mask(*rows: str) -> np.ndarray:
    return np.array([[pixel == "#" for pixel in row] for row in rows])


def masks() -> pd.DataFrame:
    given = {
        "x": (mask("##..", "##.."), mask("....", "####")),
        "y": (mask("##..", "##.#"), mask("...#", "####")),
        "z": (mask("..##", "...."), mask("####", "....")),
    }
    rows = [(task, w, given[w][task]) for task in (0, 1) for w in given]
    return pd.DataFrame(rows, columns=["task", "worker", "segmentation"])


@pytest.mark.parametrize(
    "model",
    [
        SegmentationMajorityVote(),
        SegmentationRASA(),
        SegmentationEM(),
        SegmentationRASA(n_iter=0),
        SegmentationEM(n_iter=0),
    ],
)
def test_masks_of_most_workers_win(model):
    found = model.fit_predict(masks())
    assert (found.name, found.index.name) == ("agg_segmentation", "task")
    assert found[0].tolist() == mask("##..", "##..").tolist()
    assert found[1][1].all()
    assert found[1].dtype == bool


def test_skills_weigh_masks():
    skills = pd.Series({"x": 1.0, "y": 1.0, "z": 5.0})
    found = SegmentationMajorityVote().fit_predict(masks(), skills)
    assert found[0].tolist() == mask("..##", "....").tolist()
    few = skills[["x"]]
    with pytest.raises(DataError, match="no skill for worker 'y'"):
        SegmentationMajorityVote().fit(masks(), few)
    alone = SegmentationMajorityVote(on_missing_skill="ignore").fit_predict(masks(), few)
    assert alone[0].tolist() == mask("##..", "##..").tolist()
    valued = SegmentationMajorityVote(5.0, "value").fit_predict(masks(), skills[["x", "y"]])
    assert valued.equals(found)


def test_masks_of_a_task_have_one_shape():
    data = masks()
    data.at[0, "segmentation"] = mask("#")
    with pytest.raises(DataError, match="task 0 has masks of shapes"):
        SegmentationRASA().fit(data)
    empty = pd.DataFrame([(0, "x", mask(".."))], columns=["task", "worker", "segmentation"])
    assert not SegmentationEM().fit_predict(empty)[0].any()


def test_models_of_masks_trust_who_agrees():
    """Two workers are nearly right, three nearly random."""
    random = np.random.default_rng(0)
    truth = random.random((20, 20)) < 0.3
    rows = [
        ("image", w, truth ^ (random.random(truth.shape) < noise))
        for w, noise in zip("abcde", (0.02, 0.05, 0.4, 0.45, 0.45), strict=True)
    ]
    data = pd.DataFrame(rows, columns=["task", "worker", "segmentation"])
    wrong = {
        kind: int((kind().fit_predict(data)["image"] != truth).sum())
        for kind in (SegmentationMajorityVote, SegmentationRASA, SegmentationEM)
    }
    assert wrong[SegmentationEM] < wrong[SegmentationMajorityVote] / 2
    assert wrong[SegmentationRASA] <= wrong[SegmentationMajorityVote]


def rover() -> ROVER:
    return ROVER(tokenizer=str.split, detokenizer=" ".join)


def texts(*given: str) -> pd.DataFrame:
    rows = [("t", f"w{k}", text) for k, text in enumerate(given)]
    return pd.DataFrame(rows, columns=["task", "worker", "text"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("a b c d",), "a b c d"),
        (("a b c d", "b z d e", "b c d e f"), "b c d e"),
        (("the cat sat", "the cat", "the cat"), "the cat"),
        (("cat sat", "the cat sat", "the cat sat"), "the cat sat"),
        (("x y", "x z"), "x z"),  # tied: the last in sorted order
        (("x y", "x zz", "x y", "x zz"), "x zz"),  # tied: the longest
    ],
)
def test_words_with_most_votes_win(given, expected):
    found = rover().fit_predict(texts(*given))
    assert found.to_dict() == {"t": expected}
    assert (found.name, found.index.name) == ("agg_text", "task")


def transcripts() -> tuple[pd.DataFrame, pd.Series]:
    """Return sentences of five workers who mishear a word in six, and the true ones."""
    random = np.random.default_rng(0)
    words = [f"word{k}" for k in range(50)]
    known = pd.Series([" ".join(random.choice(words, 9)) for _ in range(20)], name="label")
    rows = [
        (task, who, " ".join(w if random.random() < 5 / 6 else "what" for w in text.split()))
        for task, text in known.items()
        for who in range(5)
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"]), known


@pytest.mark.parametrize("name", ["simulated", "crowdspeech_dev_clean"])
def test_rover_has_fewer_wrong_words_than_its_workers(name):
    if name == "simulated":
        data, known = transcripts()
    else:
        path = shared_path(name)
        data = pd.read_csv(path / "answers.csv.gz", keep_default_na=False)
        known = pd.read_csv(path / "truth.csv.gz", keep_default_na=False)
        known = known.set_index("task")["label"]
    some = data[data["task"] < 20].assign(text=data["label"].str.lower())
    found = rover().fit_predict(some)
    joint = np.mean([_errors(found[task], known[task]) for task in found.index])
    alone = np.mean([_errors(t, known[k]) for k, t in zip(some["task"], some["text"], strict=True)])
    assert joint < alone / 2


def _errors(one: str, other: str) -> float:
    """Return the edit distance of words, divided by the words of the second text."""
    first, second = one.split(), other.split()
    row = np.arange(len(second) + 1)
    for word in first:
        last, row = row, row.copy()
        row[0] = last[0] + 1
        for k, known in enumerate(second, 1):
            row[k] = min(last[k - 1] + (word != known), last[k] + 1, row[k - 1] + 1)
    return row[-1] / max(len(second), 1)
