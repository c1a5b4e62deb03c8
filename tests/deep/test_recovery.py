"""Recovery methods: properties of all of them, and of each."""
# ruff: noqa: E402

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="recovery needs torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="DistributionRecovery needs scikit-learn")

from dissensus import Annotations, DataError, OptionError
from dissensus.base.probability import mixture_weights
from dissensus.deep.nn.features import Features, TokenFeatures
from dissensus.deep.recovery.cross_validation import cross_validate, folds_of, majority
from dissensus.deep.recovery.evaluation import soft_scores
from dissensus.deep.recovery.heads import AttentionPooling, Heads, TokenSource
from dissensus.deep.recovery.members import (
    bootstrap_weights,
    fold_weights,
    shared_split,
    train_members,
)
from dissensus.registry import recoverers

from ..support import benchmark

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

WITHOUT_TEXTS = [name for name in recoverers if name != "seedbert"]
QUICK = {  # too few steps to be good, but enough for what is tested with them
    "auto": "auto[n=5,steps=60]",
    "single": "single[steps=60]",
    "heads": "heads[n=3,steps=60]",
    "attention-heads": "attention-heads[n=3,steps=30]",
    "deep-ensemble": "deep-ensemble[n=2,steps=60]",
    "mc-dropout": "mc-dropout[passes=5,steps=60]",
    "bayes-head": "bayes-head[draws=5,steps=60]",
    "ldl": "ldl[n=3,steps=60]",
    "multi-task": "multi-task[steps=60]",
}


class Simulated:
    """Items with known label distributions, five votes each, and their majority."""

    def __init__(self, n_items=150, width=6, n_classes=3, seed=0):
        random = np.random.default_rng(seed)
        self.x = random.normal(size=(n_items, width)).astype(np.float32)
        logits = self.x @ random.normal(size=(width, n_classes))
        self.truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        self.votes = random.multinomial(5, self.truth)
        label = np.concatenate([np.repeat(np.arange(n_classes), row) for row in self.votes])
        self.annotations = Annotations.from_codes(
            np.repeat(np.arange(n_items), 5), np.tile(np.arange(5), n_items), label,
            items=n_items, annotators=5, classes=n_classes,
        )  # fmt: skip
        self.label = majority(self.votes, seed)
        positions = np.stack([self.x, random.normal(size=self.x.shape)], axis=1)
        mask = np.ones(positions.shape[:2], dtype=bool)
        self.features = Features(self.x, TokenFeatures(positions.astype(np.float32), mask))

    def fit(self, spec, items=slice(None), **more):
        items = np.arange(len(self.x))[items]
        given = {
            "n_classes": 3,
            "annotations": self.annotations.take(items),
            "vote_count": 5,
            "seed": 1,
        } | more
        method = recoverers.create(QUICK.get(spec, spec))
        return method, method.fit(self.features.take(items), self.label[items], **given)


@pytest.fixture(scope="module")
def data():
    return Simulated()


@pytest.fixture(scope="module")
def fitted(data):
    return {name: data.fit(name, slice(100)) for name in WITHOUT_TEXTS}


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_what_is_recovered_are_distributions(name, data, fitted):
    _, model = fitted[name]
    features = data.features.take(np.arange(100, 150))
    p, members, votes = (
        model.predict_proba(features),
        model.members(features),
        model.votes(features),
    )
    assert p.shape == votes.shape == (50, 3)
    assert members.shape[1:] == (50, 3)
    for each in (p, members, votes):
        assert np.isfinite(each).all()
        assert (each >= 0).all()
        np.testing.assert_allclose(each.sum(axis=-1), 1, atol=1e-6)


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_vote_shares_are_steps_of_one_over_the_members(name, data, fitted):
    _, model = fitted[name]
    features = data.features.take(np.arange(100, 150))
    steps = model.votes(features) * len(model.members(features))
    untied = np.isclose(steps, np.round(steps), atol=1e-6).all(axis=1)
    assert untied.mean() > 0.95  # a member with two equal best classes gives each a half


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_a_restored_model_predicts_the_same(name, data, fitted):
    method, model = fitted[name]
    again = method.restore(model.state())
    features = data.features.take(np.arange(100, 120))
    np.testing.assert_allclose(again.members(features), model.members(features), atol=1e-6)


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_the_random_seed_determines_the_predictions(name, data, fitted):
    _, again = data.fit(name, slice(100))
    features = data.features.take(np.arange(100, 120))
    np.testing.assert_array_equal(
        again.predict_proba(features), fitted[name][1].predict_proba(features)
    )


@pytest.mark.parametrize("name", WITHOUT_TEXTS)
def test_one_item_and_no_item_are_fine(name, fitted, data):
    _, model = fitted[name]
    assert model.predict_proba(data.features.take(np.array([3]))).shape == (1, 3)
    assert model.predict_proba(data.features.take(np.array([], dtype=int))).shape == (0, 3)


def test_the_default_comes_close_to_the_truth_where_inputs_are_informative(data):
    test, scores = np.arange(100, 150), {}
    for name in ("auto[n=5,steps=300]", "marginal"):
        _, model = data.fit(name, slice(100))
        scores[name[:4]] = soft_scores(
            model.predict_proba(data.features.take(test)), data.votes[test]
        )
    truth = soft_scores(data.truth[test], data.votes[test])
    for score in ("unbiased_squared", "cross_entropy"):
        gap = scores["marg"][score] - truth[score]
        assert scores["auto"][score] < scores["marg"][score] - 0.8 * gap


def test_uninformative_inputs_lead_to_a_constant():
    random = np.random.default_rng(0)
    features = Features(random.normal(size=(300, 5)).astype(np.float32))
    label = (random.random(300) < 0.3).astype(int)
    model = recoverers.create("auto[n=5,steps=100]").fit(features, label)
    p = model.predict_proba(Features(random.normal(size=(50, 5)).astype(np.float32)))
    assert np.abs(p[:, 1] - label.mean()).mean() < 0.08


def test_flattening_depends_on_the_number_of_votes_where_it_is_known(data):
    spec = "kernel-ridge[flatten=0.5]"
    _, plain = data.fit(spec, vote_count=None)
    _, flat = data.fit(spec, vote_count=5)
    assert plain.temperature == 1
    assert flat.temperature == pytest.approx(1.875**0.5)
    assert (
        flat.predict_proba(data.features).max(axis=1)
        <= plain.predict_proba(data.features).max(axis=1)
    ).all()


def test_one_head_is_the_single_network_bit_for_bit(data):
    _, single = data.fit("single")
    _, head = data.fit("seeds[n=1,steps=60]")
    np.testing.assert_array_equal(
        single.predict_proba(data.features), head.predict_proba(data.features)
    )


def test_heads_on_the_same_sample_differ_by_initialization_alone(data):
    _, one = data.fit("seeds[n=1,epochs=2,steps=1]")
    _, three = data.fit("seeds[n=3,epochs=2,steps=1]")
    first = three.members(data.features)
    np.testing.assert_allclose(first[0], one.members(data.features)[0], atol=1e-5)
    assert np.abs(first[1] - first[0]).max() > 1e-3


def test_equal_initial_weights_give_equal_members(data):
    network = Heads(2, 6, 3, hidden=8, dropout=0.5, input_dropout=0.3, shared_dropout=True, seed=0)
    with torch.no_grad():
        for value in network.parameters():
            value[1] = value[0]
    x = network.inputs_from(data.features)
    annotations = Annotations.from_labels(data.label, 3)
    train_members(
        network,
        x,
        annotations,
        shared_split(2, len(x), 0.1, 0),
        seed=0,
        epochs=3,
        batch=16,
        lr=0.01,
    )
    members = network.proba(x)
    np.testing.assert_array_equal(members[0], members[1])


def test_votes_of_linear_heads_trained_to_convergence_collapse():
    data = Simulated(n_items=60, n_classes=2)
    label = (data.truth[:, 0] > 0.5).astype(int)
    network = Heads(5, 6, 2, hidden=0, shared_dropout=True, seed=0)
    x = network.inputs_from(data.features)
    before = network.proba(x)
    train_members(
        network, x, Annotations.from_labels(label, 2), shared_split(5, len(x), 0.0, 0), seed=0,
        epochs=400, batch=60, lr=0.05, decay=1e-3,
    )  # fmt: skip
    votes = (network.proba(x).argmax(axis=2)).mean(axis=0)
    assert np.isin(votes, [0, 1]).all()  # entropy of the votes is zero everywhere
    assert not np.isin(before.argmax(axis=2).mean(axis=0), [0, 1]).all()


def test_members_learn_as_if_alone():
    data = Simulated(n_items=40)
    weight = bootstrap_weights(3, 40, 0)

    def learned(rows):
        network = Heads(3, 6, 3, hidden=4, shared_dropout=True, seed=0)
        x = network.inputs_from(data.features)
        with torch.no_grad():
            for value in network.parameters():
                value.copy_(value[rows].clone())
        train_members(
            network,
            x,
            Annotations.from_labels(data.label, 3),
            weight[rows],
            seed=0,
            epochs=2,
            batch=10,
            lr=0.01,
        )
        return network.proba(x)

    order = [2, 0, 1]
    np.testing.assert_allclose(learned([0, 1, 2])[order], learned(order), atol=1e-6)


def test_a_member_ends_with_the_weights_of_its_best_epoch(data):
    _, model = data.fit("heads[n=4,epochs=40,steps=1]")
    network = model.network
    assert ((network.best_epoch >= 1) & (network.best_epoch <= 40)).all()
    held = (network.sample_weight == 0).numpy()
    p = network.proba(network.inputs_from(data.features))
    for member in range(4):
        items = np.flatnonzero(held[member])
        likelihood = np.log(p[member, items, data.label[items]]).mean()
        assert likelihood == pytest.approx(float(network.best_score[member]), abs=1e-5)


def test_training_stops_when_the_mean_of_the_members_no_longer_improves(data):
    _, model = data.fit("heads[n=2,epochs=300,steps=1,patience=3,lr=0.03]")
    network = model.network
    assert 3 <= int(network.since_best) <= 4
    assert float(network.best_mean) <= float(network.best_score.mean())


def test_items_of_similar_length_are_scored_together_and_returned_in_their_order():
    values = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    mask = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 0, 0]], bool)
    tokens = Features.from_tokens(values, mask).tokens
    assert tokens.sizes.tolist() == [2, 1, 3, 1]
    assert tokens.take([2, 0]).sizes.tolist() == [3, 2]
    network = AttentionPooling(2, 2, 2, hidden=3)
    x = TokenSource(tokens)
    one_by_one = [network.log_proba(x[[item]]).exp().detach().numpy() for item in range(4)]
    np.testing.assert_allclose(network.proba(x), np.concatenate(one_by_one, axis=1), atol=1e-6)


def test_held_out_probabilities_are_those_of_members_that_hold_the_item_out(data):
    assert ((fold_weights(10, 50, 0) == 0).sum(dim=0) == 1).all()
    assert shared_split(3, 50, 0.2, 0).sum() == 3 * 40
    _, model = data.fit("heads[n=5,sample=folds,epochs=2,steps=1]")
    assert not np.isnan(model.held_out_proba).any()
    held = (model.network.sample_weight == 0).numpy()
    p = model.members(data.features)
    item = 7
    np.testing.assert_allclose(model.held_out_proba[item], p[held[:, item], item].mean(axis=0))


def test_leave_one_out_values_of_kernel_ridge_are_those_of_fits_without_the_item(data):
    few = np.arange(40)
    spec = "kernel-ridge[width=1,noise=2]"
    _, model = data.fit(spec, few)
    mean = np.bincount(data.label[few], minlength=3) / 40
    unit = data.x[few] / np.linalg.norm(data.x[few], axis=1, keepdims=True)
    unit = unit - unit.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    kernel, target = np.exp(unit @ unit.T - 1), np.eye(3)[data.label[few]] - mean
    for item in (0, 11, 39):
        rest = np.delete(few, item)
        inverse = np.linalg.inv(kernel[np.ix_(rest, rest)] + 2 * np.eye(39))
        plain = mean + kernel[item, rest] @ inverse @ target[rest]
        plain = np.clip(plain, 0.02, 0.98)
        np.testing.assert_allclose(model.held_out_proba[item], plain / plain.sum(), atol=1e-6)


def test_landmarks_change_little_and_bound_the_cost(data):
    _, whole = data.fit("kernel-ridge[width=1,noise=2]")
    _, part = data.fit("kernel-ridge[width=1,noise=2,most=120]")
    assert len(part.landmarks) == 120
    assert (
        np.abs(whole.predict_proba(data.features) - part.predict_proba(data.features)).max() < 0.1
    )


def test_mixture_weights_find_the_part_that_predicts():
    random = np.random.default_rng(0)
    good = random.dirichlet([0.3, 0.3], 4000)
    label = (random.random(4000) < good[:, 1]).astype(int)
    posterior = np.stack([good, np.full((4000, 2), 0.5), good[::-1]])
    assert mixture_weights(posterior[:, np.arange(4000), label])[0] > 0.95


def test_attention_is_on_present_words():
    random = np.random.default_rng(0)
    values = random.normal(size=(80, 6, 4)).astype(np.float32)
    mask = np.arange(6) < random.integers(2, 7, size=(80, 1))
    label = (values[:, 0, 0] > 0).astype(int)
    features = Features(np.zeros((80, 0)), TokenFeatures(values, mask))
    model = recoverers.create("attention-heads[n=3]").fit(features, label)
    attention = benchmark("pair_test").attention_of(model, features)
    assert (attention[:, ~mask] < 1e-6).all()
    np.testing.assert_allclose(attention.sum(axis=2), 1, atol=1e-5)


def test_the_pair_test_detects_attention_that_depends_on_the_vote():
    pair_test = benchmark("pair_test").pair_test
    random = np.random.default_rng(8)
    votes = random.integers(2, size=(25, 6))
    laws = np.array([[5, 5, 1, 1], [1, 1, 5, 5]])
    looking = [np.stack([random.dirichlet(laws[vote]) for vote in row]) for row in votes]
    found = pair_test(looking, votes, draws=200)
    assert found.different > found.equal
    assert found.p_value < 0.02
    blind = [random.dirichlet([1, 1, 1, 1], 6) for _ in votes]
    assert pair_test(blind, votes, draws=200).p_value > 0.05
    assert np.isnan(pair_test(blind, np.zeros((25, 6)), draws=10).p_value)


def test_oracles_need_annotations_and_learn_shares(data):
    with pytest.raises(OptionError, match="an oracle learns from annotations"):
        data.fit("ldl", annotations=None)
    torn = Features(
        np.ones((60, 2), dtype=np.float32) * np.linspace(-1, 1, 60)[:, None].astype(np.float32)
    )
    item, annotator = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    label = (annotator > 2).astype(int)  # everywhere three to two
    annotations = Annotations.from_codes(item, annotator, label, items=60, annotators=5, classes=2)
    model = recoverers.create("ldl[n=2,steps=150]").fit(
        torn, np.zeros(60, int), n_classes=2, annotations=annotations
    )
    np.testing.assert_allclose(model.predict_proba(torn)[:, 1], 0.4, atol=0.1)


def test_the_second_task_predicts_disagreement(data):
    x = np.linspace(-1, 1, 200)[:, None].astype(np.float32)
    votes = np.where(np.abs(x) < 0.5, 3, 5)[:, 0]
    item = np.repeat(np.arange(200), 5)
    label = (np.tile(np.arange(5), 200) >= np.repeat(votes, 5)).astype(int)
    annotations = Annotations.from_codes(
        item, np.tile(np.arange(5), 200), label, items=200, annotators=5, classes=2
    )
    features = Features(np.concatenate([x, x**2], axis=1))
    method = recoverers.create("multi-task[input_dropout=0,dropout=0,steps=300]")
    model = method.fit(features, np.zeros(200, int), n_classes=2, annotations=annotations)
    network, near, far = model.network, np.abs(x[:, 0]) < 0.3, np.abs(x[:, 0]) > 0.7
    scores = network.disagreement(network.hidden(network.inputs_from(features)))[0].detach()
    assert scores[near].mean() > scores[far].mean() + 0.2


def test_labels_and_features_have_to_match():
    features, method = Features(np.zeros((3, 2))), recoverers.create("marginal")
    with pytest.raises(DataError, match="3 inputs, but labels"):
        method.fit(features, [0, 1])
    with pytest.raises(DataError, match="there are 2 classes"):
        method.fit(features, [0, 1, 2], n_classes=2)
    with pytest.raises(OptionError, match="needs tokens"):
        recoverers.create("attention-heads").fit(features, [0, 1, 1])
    with pytest.raises(DataError, match="no items"):
        method.fit(Features(np.zeros((0, 2))), [])


# Cross-validation.


def test_every_item_is_predicted_once_in_every_repeat_and_folds_resume(tmp_path, data):
    for repeat in range(2):
        size = np.bincount(folds_of(52, 5, 0, repeat))
        assert size.max() - size.min() <= 1
    calls: list[int] = []
    given = {"folds": 3, "repeats": 2, "folder": tmp_path}
    first = cross_validate(data.features, data.annotations, ["kernel-ridge"], **given)
    again = cross_validate(
        data.features,
        data.annotations,
        ["kernel-ridge"],
        **given,
        progress=lambda done, *_: calls.append(done),
    )
    np.testing.assert_array_equal(first.proba["kernel-ridge"], again.proba["kernel-ridge"])
    np.testing.assert_allclose(first.proba["kernel-ridge"].sum(axis=2), 1)
    assert first.proba["kernel-ridge"].shape == (2, 150, 3)
    assert calls[-1] == 3 * 2 * 3
    assert first.scores["kernel-ridge"]["manhattan"].shape == (2, 3)
    low, high = first.mean("kernel-ridge", "manhattan")[1:]
    assert low < first.mean("kernel-ridge", "manhattan").value < high
    ceiling = first.mean("people asked again", "manhattan").value
    assert ceiling < first.mean("kernel-ridge", "manhattan").value
    with pytest.raises(DataError, match="folds of other data"):
        cross_validate(
            data.features, data.annotations, ["kernel-ridge"], folds=3, seed=1, folder=tmp_path
        )
    with pytest.raises(OptionError, match="200 folds"):
        cross_validate(data.features, data.annotations, ["kernel-ridge"], folds=200)
