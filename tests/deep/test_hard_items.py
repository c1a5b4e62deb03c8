"""Hard items from training dynamics: margins, AUM, AUMC and WAUM."""
# ruff: noqa: E402

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")

from dissensus import Annotations, DataError, MethodError, OptionError
from dissensus.aggregation.dawid_skene import Wds
from dissensus.deep.learning.base import Classifier
from dissensus.deep.learning.hard_items import aum, aumc, trust, waum, weighted
from dissensus.deep.learning.label_trainer import MarginRecorder, Trainer, at_most_quantile, margins
from dissensus.deep.nn.batches import Examples

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)
ROOT = Path(__file__).parents[2]


def scores(rows=40, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return logits.softmax(dim=1), torch.randint(classes, (rows,), generator=generator)


def gaussians(n_items=300, n_classes=3, hard=0.0, n_annotators=12, per_item=3, skill=0.9, seed=0):
    """Return inputs, annotations, truth, and which items are in the middle with random labels."""
    rng = np.random.default_rng(seed)
    centre = 4 * np.eye(n_classes)
    truth = rng.integers(n_classes, size=n_items)
    random = np.zeros(n_items, dtype=bool)
    random[rng.permutation(n_items)[: round(hard * n_items)]] = True
    x = np.where(random[:, None], centre.mean(axis=0), centre[truth])
    x = x + rng.normal(size=x.shape)
    item = np.repeat(np.arange(n_items), per_item)
    who = np.concatenate(
        [rng.choice(n_annotators, per_item, replace=False) for _ in range(n_items)]
    )
    guess = rng.integers(n_classes, size=len(item))
    right = (rng.random(len(item)) < skill) & ~random[item]
    annotations = Annotations.from_codes(
        item,
        who,
        np.where(right, truth[item], guess),
        items=n_items,
        annotators=n_annotators,
        classes=n_classes,
    )
    return x, annotations, truth, random


# Margins


def test_both_margins_are_equal_where_the_label_is_the_best_class():
    score, _ = scores()
    best = score.argmax(dim=1)
    torch.testing.assert_close(margins(score, best, "top2"), margins(score, best, "pleiss"))
    assert (margins(score, best) > 0).all()


def test_pleiss_says_less_where_another_class_is_better():
    score, label = scores()
    top2, pleiss = margins(score, label, "top2"), margins(score, label, "pleiss")
    best = score.argmax(dim=1) == label
    assert (pleiss[~best] < top2[~best]).all()
    assert (pleiss[~best] < 0).all()


def test_the_runner_up_has_a_top2_margin_of_nothing():
    score, _ = scores()
    second = score.argsort(dim=1, descending=True)[:, 1]
    torch.testing.assert_close(margins(score, second), torch.zeros(len(score), dtype=score.dtype))


@pytest.mark.parametrize("top", [1, 2, 3])
def test_margins_are_what_a_plain_sort_says(top):
    score, label = scores()
    for row, position in zip(score.numpy(), label.tolist(), strict=True):
        down = np.sort(row)[::-1]
        others = np.sort(np.delete(row, position))[::-1]
        found = [
            float(margins(torch.tensor(row[None]), torch.tensor([position]), kind, top)[0])
            for kind in ("top2", "pleiss")
        ]
        expected = [row[position] - down[top], row[position] - others[top - 1]]
        np.testing.assert_allclose(found, expected, atol=1e-12)
        if row[position] >= down[top - 1]:
            np.testing.assert_allclose(found[0], found[1], atol=1e-12)


@pytest.mark.parametrize("kind", ["top2", "pleiss"])
def test_other_names_of_classes_change_no_margin(kind):
    score, label = scores()
    order = torch.randperm(5, generator=torch.Generator().manual_seed(3))
    position = torch.argsort(order)
    moved = margins(score[:, order], position[label], kind)
    torch.testing.assert_close(margins(score, label, kind), moved)


@pytest.mark.parametrize("kind", ["top2", "pleiss"])
def test_margins_of_logits_do_not_depend_on_a_constant(kind):
    score, label = scores()
    torch.testing.assert_close(
        margins(score.log(), label, kind), margins(score.log() + 7, label, kind)
    )


def test_margins_are_added_up_epoch_by_epoch_for_every_label(monkeypatch):
    monkeypatch.setattr("dissensus.deep.learning.label_trainer._BATCH", 7)  # several batches
    rng = np.random.default_rng(0)
    x, annotations, *_ = gaussians(n_items=30)
    annotations = annotations.keep(annotations.item != 4)  # nobody is left on one item
    learner = MarginRecorder(
        Classifier(torch.nn.Flatten(), 3, 3, 8), len(annotations), 1, "probabilities"
    )
    examples = Examples(torch.tensor(x, dtype=torch.float32), annotations)
    learner.eval()
    expected = np.zeros((2, len(annotations)))
    for epoch in range(3):
        with torch.no_grad():
            for each in learner.parameters():
                each.add_(torch.tensor(rng.normal(size=each.shape), dtype=each.dtype))
            score = learner.classifier(examples.x).softmax(dim=1)[annotations.item.astype(int)]
        label = torch.tensor(annotations.label.astype(int))
        expected += [margins(score, label, kind).numpy() for kind in ("top2", "pleiss")]
        learner.begin(examples, epoch + 1)
    np.testing.assert_allclose(learner.total.numpy(), expected, atol=1e-5)


# WAUM from areas and weights


def one_each(n_items=20, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return Annotations.from_codes(
        np.arange(n_items),
        np.arange(n_items) % 4,
        rng.integers(n_classes, size=n_items),
        items=n_items,
        annotators=4,
        classes=n_classes,
    )


@given(seed=st.integers(0, 10**6), weight=st.floats(0.01, 1))
@settings(max_examples=30, deadline=None)
def test_equal_weights_make_it_the_plain_mean(seed, weight):
    _, annotations, *_ = gaussians(n_items=15, seed=seed % 7)
    area = np.random.default_rng(seed).uniform(-1, 1, len(annotations))
    found = weighted(annotations, area, np.full(len(annotations), weight))
    mean = np.array([area[annotations.item == item].mean() for item in range(annotations.n_items)])
    np.testing.assert_allclose(found, mean, atol=1e-12)


def test_dividing_by_the_count_is_dividing_by_the_count():
    _, annotations, *_ = gaussians(n_items=15)
    rng = np.random.default_rng(1)
    area, weight = rng.uniform(-1, 1, len(annotations)), rng.uniform(size=len(annotations))
    expected = [
        (weight * area)[annotations.item == item].sum() / (annotations.item == item).sum()
        for item in range(15)
    ]
    np.testing.assert_allclose(weighted(annotations, area, weight, "count"), expected)


@pytest.mark.parametrize("normalize", ["weights", "count"])
def test_items_without_weight_or_labels_have_no_score(normalize):
    annotations = Annotations.from_columns("aabbc", "xyxyz", "01010", items="abcd")
    weight = np.array([0.5, 0.5, 0.0, 0.0, 1.0])
    found = weighted(annotations, np.ones(5), weight, normalize)
    np.testing.assert_array_equal(np.isnan(found), [False, True, False, True])


def test_items_without_a_score_stay_and_the_lowest_always_goes():
    score = np.array([0.3, np.nan, 0.1, 0.2])
    quantile, pruned = at_most_quantile(score, 0.0)
    assert quantile == 0.1
    assert pruned.tolist() == [False, False, True, False]
    quantile, pruned = at_most_quantile(score, 0.5)
    assert quantile == pytest.approx(np.nanquantile(score, 0.5))
    assert pruned.tolist() == [False, False, True, True]
    quantile, pruned = at_most_quantile(np.full(3, np.nan), 0.5)
    assert np.isnan(quantile)
    assert not pruned.any()


def test_trust_is_the_probability_that_an_annotator_recognizes_the_class():
    annotations = Annotations.from_columns("ab", "xy", "01")
    confusion = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.0, 1.0]]])
    posterior = np.array([[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(
        trust(posterior, confusion, annotations), [0.25 * 0.9 + 0.75 * 0.6, 0.5]
    )
    np.testing.assert_allclose(trust(posterior, np.tile(np.eye(2), (2, 1, 1)), annotations), 1)


# Whole trainings


def test_one_label_each_and_faultless_annotators_make_waum_the_aum():
    x, _, truth, _ = gaussians(n_items=60)
    annotations = Annotations.from_codes(
        np.arange(60), np.arange(60) % 5, truth, items=60, annotators=5, classes=3
    )
    how = {"epochs": 3, "margin": "pleiss", "scale": "probabilities", "seed": 2}
    found = waum(x, annotations, matrices=np.tile(np.eye(3), (5, 1, 1)), **how)
    plain = aum(x, truth, **how)
    np.testing.assert_allclose(found.weight, 1)
    np.testing.assert_allclose(found.waum, plain.aum, atol=1e-12)
    np.testing.assert_array_equal(found.pruned, plain.pruned)


@pytest.mark.parametrize("per_annotator", [False, True])
def test_what_comes_back_belongs_together(per_annotator):
    x, annotations, *_ = gaussians(n_items=60, hard=0.1, n_annotators=4)
    found = waum(x, annotations, epochs=3, alpha=0.1, per_annotator=per_annotator)
    assert found.waum.shape == found.pruned.shape == found.label.shape == (60,)
    assert found.aum.shape == found.weight.shape == (len(annotations),)
    assert ((found.weight > 0) & (found.weight <= 1)).all()
    np.testing.assert_allclose(found.waum, weighted(annotations, found.aum, found.weight))
    np.testing.assert_array_equal(found.pruned, found.waum <= np.quantile(found.waum, 0.1))
    assert found.pruned.sum() == 6
    assert found.too_hard.tolist() == annotations.items[found.pruned].tolist()
    assert found.hardest[:6].tolist() == sorted(
        np.flatnonzero(found.pruned), key=lambda item: found.waum[item]
    )
    assert {len(column) for column in found.table().values()} == {60}
    assert {len(column) for column in found.annotation_table().values()} == {len(annotations)}
    again = Wds(max_iter=60).fit(annotations.subset(items=~found.pruned))
    np.testing.assert_allclose(found.posterior[~found.pruned], again.posterior)
    np.testing.assert_array_equal(found.label[~found.pruned], again.label)
    assert not found.posterior[found.pruned].any()
    assert set(found.label[found.pruned].tolist()) == {-1}
    assert set(found.labels[found.pruned].tolist()) == {None}
    with pytest.raises(ValueError, match="read-only"):
        found.waum[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.quantile = 1


def test_a_network_for_every_annotator_sees_their_labels_alone():
    x, annotations, *_ = gaussians(n_items=40, n_annotators=3)
    found = waum(x, annotations, epochs=2, per_annotator=True, held_out=0)
    mine = annotations.annotator == 1
    other = Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        np.where(mine, annotations.label, (annotations.label + 1) % 3),
        items=40,
        annotators=3,
        classes=3,
    )
    position = np.lexsort((other.annotator, other.item))
    assert (position == np.arange(len(other))).all()
    again = waum(x, other, epochs=2, per_annotator=True, held_out=0)
    np.testing.assert_allclose(found.aum[mine], again.aum[mine], atol=1e-6)
    assert np.abs(found.aum[~mine] - again.aum[~mine]).max() > 0.01


def test_other_names_of_classes_change_no_score(monkeypatch):
    x, annotations, *_ = gaussians(n_items=100, hard=0.1, n_classes=3)
    moved = np.array([2, 0, 1])[annotations.label]
    renamed = Annotations.from_codes(
        annotations.item, annotations.annotator, moved, items=100, annotators=12, classes=3
    )
    made = Trainer.classifier

    def without_a_start(self, n_classes):  # all classes begin with the same weights
        classifier = made(self, n_classes)
        torch.nn.init.zeros_(classifier.head.weight)
        torch.nn.init.zeros_(classifier.head.bias)
        return classifier

    monkeypatch.setattr(Trainer, "classifier", without_a_start)
    one, other = (waum(x, each, epochs=5, alpha=0.1) for each in (annotations, renamed))
    np.testing.assert_allclose(one.waum, other.waum, atol=1e-5)
    np.testing.assert_array_equal(one.pruned, other.pruned)
    np.testing.assert_allclose(one.posterior, other.posterior[:, [2, 0, 1]], atol=1e-9)


@pytest.mark.parametrize("method", ["aumc", "waum", "waum per annotator"])
def test_items_with_random_labels_rank_low(method):
    x, annotations, _, random = gaussians(n_items=500, hard=0.02, per_item=5, n_annotators=8)
    how = {"epochs": 20, "seed": 1}
    if method == "aumc":
        score = aumc(x, annotations, margin="top2", scale="probabilities", **how).score
    else:
        score = waum(x, annotations, per_annotator="per" in method, **how).score
    lowest = np.argsort(score)[:50]  # a tenth
    assert random[lowest].sum() >= 7  # of ten, one expected at random


def test_wrong_labels_rank_low_by_aum():
    x, _, truth, _ = gaussians(n_items=400)
    labels = truth.copy()
    wrong = np.random.default_rng(0).permutation(400)[:20]
    labels[wrong] = (labels[wrong] + 1) % 3
    found = aum(x, labels, epochs=15, alpha=0.05)
    assert np.isin(wrong, found.hardest[:40]).mean() > 0.85
    assert found.pruned.sum() == 20
    assert found.table()["label"].tolist() == [str(each) for each in labels]


def test_a_fake_class_shows_where_wrong_labels_begin():
    x, _, truth, _ = gaussians(n_items=600)
    labels = truth.copy()
    wrong = np.zeros(600, dtype=bool)
    wrong[np.random.default_rng(0).permutation(600)[:60]] = True
    labels[wrong] = (labels[wrong] + 1) % 3
    found = aum(x, labels, epochs=15, cut="fake", percentile=0.9)
    assert found.pruned[wrong].mean() > 0.85
    assert found.pruned[~wrong].mean() < 0.1
    assert len(np.unique(found.cut)) == 2  # each item was real in one of two trainings
    assert not np.isnan(found.aum).any()
    np.testing.assert_array_equal(found.pruned, found.aum <= found.cut)


def test_items_without_labels_are_neither_learned_nor_left_out():
    x, annotations, truth, _ = gaussians(n_items=60)
    silent = annotations.keep(annotations.item != 7)
    found = waum(x, silent, epochs=2)
    assert np.isnan(found.waum).tolist() == [item == 7 for item in range(60)]
    assert not found.pruned[7]
    assert found.label[7] == -1
    labels = np.where(np.arange(60) == 7, -1, truth)
    for cut in ("alpha", "fake"):
        plain = aum(x, labels, epochs=2, cut=cut)
        assert np.isnan(plain.aum).tolist() == [item == 7 for item in range(60)]
        assert not plain.pruned[7]
    assert np.isnan(aumc(x, silent, epochs=2).aum[7])


def test_nobody_trusted_leaves_no_score():
    x, annotations, *_ = gaussians(n_items=30)
    found = waum(x, annotations, epochs=2, matrices=np.zeros((12, 3, 3)))
    assert np.isnan(found.waum).all()
    assert not found.pruned.any()
    assert np.isnan(found.quantile)


def test_scores_of_all_epochs_are_kept_where_wanted():
    x, _, truth, _ = gaussians(n_items=50)
    found = aum(x, truth, epochs=4, keep=True, held_out=0)
    assert found.scores.shape == (4, 50, 3)
    score, label = torch.tensor(found.scores), torch.tensor(truth)
    means = np.mean([margins(each, label, "pleiss").numpy() for each in score], axis=0)
    np.testing.assert_allclose(means, found.aum, atol=1e-5)
    np.testing.assert_array_equal(found.aum, found.pleiss)
    assert aum(x, truth, epochs=4).scores is None


def test_the_same_seed_gives_the_same_scores_and_leaves_torch_alone():
    x, annotations, *_ = gaussians(n_items=40)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = waum(x, annotations, epochs=2, seed=3)
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(one.waum, waum(x, annotations, epochs=2, seed=3).waum)
    assert not np.array_equal(one.waum, waum(x, annotations, epochs=2, seed=4).waum)


def test_training_ends_where_held_out_labels_are_predicted_best():
    rng = np.random.default_rng(0)
    x, annotations, *_ = gaussians(n_items=80, n_annotators=3, skill=0.7)
    wide = np.concatenate([x, rng.normal(size=(80, 300))], axis=1)  # much to learn by heart
    how = {"epochs": 40, "dropout": 0.0, "input_dropout": 0.0, "lr": 0.01}
    early = waum(wide, annotations, **how)
    assert early.epochs < 20
    assert (
        waum(wide, annotations, **how | {"epochs": early.epochs, "held_out": 0.0}).epochs
        == early.epochs
    )
    np.testing.assert_array_equal(
        early.waum, waum(wide, annotations, **how | {"epochs": early.epochs, "held_out": 0.0}).waum
    )
    whole = waum(wide, annotations, **how | {"held_out": 0.0})
    assert whole.epochs == 40
    assert whole.learned > early.learned
    alone = waum(wide, annotations, per_annotator=True, **how)
    assert alone.epochs < 20


def test_with_nothing_to_hold_out_it_goes_to_the_last_epoch():
    annotations = Annotations.from_columns("ab", "xy", "01")
    assert waum(np.eye(2), annotations, epochs=3).epochs == 3


@pytest.mark.parametrize("per_annotator", [False, True])
def test_a_training_that_was_interrupted_ends_with_the_same_margins(tmp_path, per_annotator):
    x, annotations, *_ = gaussians(n_items=60, n_annotators=3)
    if per_annotator:
        x, annotations = (
            x[:20],
            annotations.subset(items=annotations.items[:20], annotators=annotations.annotators[:2]),
        )
    how = {"batch": 8, "save_every": 3, "per_annotator": per_annotator, "encoder": "mlp[hidden=8]"}
    whole = waum(x, annotations, epochs=4, **how)

    summary, stopped = 0, 3 if per_annotator else 44

    def stop(done, total, words):
        nonlocal summary
        summary += 1
        if summary >= stopped:
            raise InterruptedError

    folder = tmp_path / "run"
    with pytest.raises(InterruptedError):
        waum(x, annotations, epochs=4, folder=folder, progress=stop, **how)
    again = waum(x, annotations, epochs=4, folder=folder, resume=True, **how)
    np.testing.assert_array_equal(whole.waum, again.waum)
    np.testing.assert_array_equal(whole.aum, again.aum)
    ended = waum(x, annotations, epochs=4, folder=folder, resume=True, **how)
    np.testing.assert_array_equal(whole.aum, ended.aum)


def test_mistakes_fail_with_a_message():
    x, annotations, *_ = gaussians(n_items=30)
    for wrong, message in {
        "alpha": "alpha = 2",
        "margin": "margin = 2",
        "normalise": "did you mean normalize?",
    }.items():
        with pytest.raises(MethodError, match=message):
            waum(x, annotations, **{wrong: 2})
    with pytest.raises(MethodError, match="3 classes, but margins with top = 3 need 4"):
        waum(x, annotations, top=3)
    with pytest.raises(DataError, match="29 inputs, but annotations on 30 items"):
        waum(x[:-1], annotations)
    with pytest.raises(DataError, match="several labels, but AUM learns one"):
        aum(x, annotations)
    with pytest.raises(DataError, match="one label per item"):
        aum(x, np.zeros((30, 2)))
    with pytest.raises(DataError, match="confusion matrices"):
        waum(x, annotations, matrices=np.ones((2, 3, 3)))
    with pytest.raises(OptionError, match="identity takes features"):
        waum(["a text"] * 30, annotations, encoder="identity")


# The documents


def test_the_example_on_the_page_runs_and_says_what_it_shows(capsys):
    page = (ROOT / "docs" / "learning.md").read_text("utf-8")
    section = page[page.index("## Hard items") :]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    exec(code, {})
    shown = re.search(r"print\(scores.too_hard.tolist\(\)\)  # (.*)", code).group(1)
    assert capsys.readouterr().out.strip() == shown
