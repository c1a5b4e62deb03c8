"""Few-shot learning in use: every adapter, the estimator, its folder, and the command."""
# ruff: noqa: E402

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="meta needs torch: pip install 'dissensus[deep]'")
pytest.importorskip("sklearn", reason="FewShotCrowd needs scikit-learn")

from sklearn.base import clone

from dissensus import Annotations
from dissensus.errors import DataError, MethodError, OptionError
from dissensus.meta.active import POLICIES, information, reveal
from dissensus.meta.adapter import Adapter
from dissensus.meta.embedding import Embedding
from dissensus.meta.episodes import EpisodeSource, Sizes
from dissensus.meta.evaluation import Scores, embedded, score
from dissensus.meta.few_shot import FewShotCrowd
from dissensus.meta.items import Items
from dissensus.meta.learner import ClassLearner, EpisodeLearner
from dissensus.meta.losses import Annotated, Clean, Forward, SmallLoss, Soft
from dissensus.meta.maml import Maml
from dissensus.meta.prototypes import Prototypes
from dissensus.meta.pseudo import PseudoCrowd
from dissensus.meta.ridge import Ridge
from dissensus.meta.sources import labelled, read_source, together
from dissensus.meta.tasks import Tasks
from dissensus.meta.tuning import choose, tune
from dissensus.nn import Training, train
from dissensus.registry import adapters, aggregators

from .support import run

RULES = list(adapters)
FEW = Sizes(ways=(3,), shots=(3,), annotators=(4,), queries=4)
QUICK = {"sizes": FEW, "tuning": 15, "episodes": 64}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def gaussian(n_classes=16, per_class=12, width=6, far=3.0, seed=0):
    """Return items of Gaussian classes, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), per_class)
    x = far * rng.normal(size=(n_classes, width))[y] + rng.normal(size=(len(y), width))
    return x.astype(np.float32), y


def source_of(n=64, sizes=FEW, crowd=None, **more):
    x, y = gaussian(**more)
    return EpisodeSource(Tasks(torch.from_numpy(x), y), sizes, crowd or PseudoCrowd(), n)


@pytest.fixture(scope="module")
def fitted():
    x, y = gaussian()
    return FewShotCrowd("em-full", **QUICK).fit(x, y)


@pytest.fixture(scope="module")
def target():
    """Return a new task of two classes: inputs, what three annotators said, new inputs, truth."""
    x, y = gaussian(n_classes=2, per_class=30, seed=9)
    rng = np.random.default_rng(0)
    support = np.concatenate([np.arange(6), np.arange(30, 36)])
    annotations = np.stack([y[support], y[support], rng.integers(2, size=12)], axis=1)
    new = np.setdiff1d(np.arange(60), support)
    return x[support], annotations, x[new], y[new]


# Every adapter


@pytest.mark.parametrize("name", RULES)
def test_adapters_give_distributions_over_the_classes_of_the_queries(name):
    batch = next(iter(source_of(8).batches(8, 0, 0)))
    adapter = adapters.create(name).build(6, 3)
    assert isinstance(adapter, Adapter)
    log, task = adapter.classify(torch.nn.Identity(), batch)
    assert log.shape == (8, 12, 3)
    assert torch.allclose(log.exp().sum(dim=2), torch.ones(8, 12), atol=1e-5)
    assert task is not None
    assert torch.allclose(task.posterior.sum(dim=2), torch.ones(8, 9), atol=1e-5)


@pytest.mark.parametrize("name", RULES)
def test_adapters_learn_what_annotators_agree_on(name):
    crowd = PseudoCrowd(spammers=(0, 0.3))
    source = source_of(64, crowd=crowd)
    adapter, least = adapters.create(name).build(6, 3), 0.85
    if adapters.create(name).joint:
        learner = EpisodeLearner(Embedding(torch.nn.Identity(), 6), adapter, lr=3e-4)
        settings = Training(epochs=1, batch=32, lr=3e-4, held_out=0)
        train(learner, source_of(32 * 200, crowd=crowd), settings)
        least = 0.5
    else:
        tune(adapter, source, steps=15)
    adapter.eval()
    assert score(adapter, source.batches(64, 5, 0)).mean > least


@pytest.mark.parametrize("name", RULES)
def test_adapters_have_gradients_to_the_embedding(name):
    batch = next(iter(source_of(4).batches(4, 0, 0)))
    batch = batch._replace(x=batch.x.requires_grad_())
    adapter = adapters.create(name).build(6, 3)
    log, _ = adapter.classify(torch.nn.Identity(), batch)
    Clean()(log, batch, None).backward()
    assert float(batch.x.grad.abs().max()) > 0


def test_prototypes_of_dawid_skene_are_those_of_the_aggregators_labels():
    batch = next(iter(source_of(1, Sizes(shots=(5,), annotators=(5,))).batches(1, 3, 0)))
    adapter = Prototypes(labels="dawid-skene", c=0.4, right=2.4).build(6, 5)
    items = Items.of(batch.x[batch.support], batch.label, n_classes=5)
    # Four pseudo-counts of every class, 2.4 of them right; 1.6 spread over the other four.
    wanted = aggregators.create("dawid-skene-map[strength=4.4,accuracy=0.6363636363,tol=0]")
    found = wanted.fit(Annotations.from_matrix(batch.label[0].numpy(), classes=range(5)))
    assert adapter.adapt(items).posterior[0].argmax(dim=1).tolist() == found.label.tolist()


def test_tied_majorities_share_their_item_and_silent_items_have_no_say():
    u = torch.tensor([[[0.0], [4.0], [2.0], [100.0]]])
    label = torch.tensor([[[0, 0], [1, 1], [0, 1], [-1, -1]]])
    task = Prototypes().build(1, 2).adapt(Items.of(u, label, n_classes=2))
    assert torch.allclose(task.mean[0, :, 0], torch.tensor([1.0 / 1.5, 5.0 / 1.5]))


def test_a_ridge_head_is_that_of_the_normal_equations():
    rng = np.random.default_rng(0)
    u, votes = rng.normal(size=(8, 3)), rng.integers(2, size=(8, 3))
    items = Items.of(torch.from_numpy(u)[None], torch.from_numpy(votes)[None], n_classes=2)
    task = Ridge(gamma=0.7).build(3, 2).double().adapt(items)
    wide = np.column_stack([u, np.ones(8)])
    share = np.stack([(votes == k).mean(axis=1) for k in range(2)], axis=1) - 0.5
    wanted = np.linalg.solve(wide.T @ wide + 0.7 * np.eye(4), wide.T @ share)
    np.testing.assert_allclose(task.weight[0].detach(), wanted, atol=1e-10)


@pytest.mark.parametrize("first_order", [False, True])
def test_gradients_of_maml_are_those_of_its_steps(first_order):
    """Through all of them in full; as if steps were constant to first order."""
    torch.manual_seed(0)
    network = Embedding(torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh()), 5).double()
    batch = next(iter(source_of(2).batches(2, 0, 0)))
    batch = batch._replace(x=batch.x.double())
    adapter = Maml(steps=2, lr=0.3, first_order=first_order).build(5, 3).double().train()
    with torch.no_grad():
        adapter.head.weight.normal_()
    weight = network.network[0].weight

    def loss():
        return Clean()(adapter.classify(network, batch)[0], batch, None)

    loss().backward()
    found, eps = weight.grad[0, 0].item(), 1e-6
    with torch.no_grad():
        weight[0, 0] += eps
    up = loss().item()
    with torch.no_grad():
        weight[0, 0] -= 2 * eps
    down = loss().item()
    exact = (up - down) / (2 * eps)
    assert (abs(found - exact) < 1e-6) is not first_order


def test_adapters_that_know_one_number_of_classes_say_so():
    batch = next(iter(source_of(2).batches(2, 0, 0)))
    for name in ("cnp", "maml"):
        with pytest.raises(OptionError, match="trained on tasks of 4 classes, not of 3"):
            adapters.create(name).build(6, 4).classify(torch.nn.Identity(), batch)


# Losses without clean labels


def test_without_noise_every_loss_on_queries_is_the_clean_one():
    crowd = PseudoCrowd(spammers=(0, 0), accuracy=(1, 1))
    batch = next(iter(source_of(8, crowd=crowd).batches(8, 0, 0)))
    adapter = adapters.create("em-full[c=1e-9,right=1e6]").build(6, 3)
    log, task = adapter.classify(torch.nn.Identity(), batch)
    clean = Clean()(log, batch, task)
    for loss in (Forward(0.0), Annotated(), Soft(), SmallLoss(1.0)):
        assert torch.allclose(loss(log, batch, task), clean, atol=2e-2), type(loss).__name__


def test_losses_that_allow_for_noise_are_least_at_the_truth():
    """Of a sure and right prediction and a sure and wrong one, on labels wrong 30 % of the time."""
    crowd = PseudoCrowd(spammers=(0, 0), accuracy=(0.7, 0.7))
    batch = next(iter(source_of(64, crowd=crowd).batches(64, 0, 0)))
    _, task = adapters.create("em-full").build(6, 3).classify(torch.nn.Identity(), batch)
    right = torch.nn.functional.one_hot(batch.truth, 3).float()
    for loss in (Forward(0.3), Annotated(), Soft(), SmallLoss(0.7)):
        sure = loss((right * 0.97 + 0.01).log(), batch, task)
        turned = loss((right.roll(1, dims=2) * 0.97 + 0.01).log(), batch, task)
        assert sure.item() < turned.item(), type(loss).__name__


# Training, tuning, choosing


def test_training_on_episodes_finds_the_features_that_matter():
    rng = np.random.default_rng(0)
    x, y = gaussian(n_classes=40, per_class=10, width=3)
    x = np.concatenate([x, 8 * rng.normal(size=(len(x), 6))], axis=1).astype(np.float32)
    tasks = Tasks(torch.from_numpy(x), y)
    source = EpisodeSource(tasks, FEW, PseudoCrowd(), 32 * 60)
    adapter = adapters.create("em-full[scale=0.3]").build(9, 3)
    embedding = Embedding(torch.nn.Flatten(), 9, "weights")
    before = score(adapter, source_of_tasks(tasks), embedding).mean
    learner = EpisodeLearner(embedding, adapter, lr=0.02)
    train(learner, source, Training(epochs=1, batch=32, lr=0.02, held_out=0))
    assert score(adapter, source_of_tasks(tasks), embedding).mean > before + 0.1
    weights = embedding.weights.detach().abs()
    assert float(weights[:3].min()) > float(weights[3:].max())


def source_of_tasks(tasks):
    return EpisodeSource(tasks, FEW, PseudoCrowd(), 64).batches(64, 7, 0)


def test_a_broken_training_on_episodes_ends_with_the_same_weights(tmp_path):
    class BrokenError(Exception):
        pass

    def trained(folder, break_at=None, resume=False):
        torch.manual_seed(0)
        adapter = adapters.create("em-full").build(6, 3)
        learner = EpisodeLearner(Embedding(torch.nn.Flatten(), 6, "linear"), adapter, lr=0.01)

        def progress(done, total, words):
            if done == break_at:
                raise BrokenError

        settings = Training(epochs=2, batch=16, lr=0.01, held_out=0, save_every=1)
        valid = source_of(32)
        train(
            learner, source_of(64), settings,
            valid=valid, folder=folder, resume=resume, progress=progress,
        )  # fmt: skip
        return learner.state_dict()

    whole = trained(tmp_path / "whole")
    with pytest.raises(BrokenError):
        trained(tmp_path / "broken", break_at=6)
    rest = trained(tmp_path / "broken", resume=True)
    assert all(torch.equal(value, rest[name]) for name, value in whole.items())
    summary = json.loads((tmp_path / "whole" / "log.json").read_text())
    assert summary["chosen by"] == "minus the loss of queries in 32 episodes of classes held out"


def test_tuning_lowers_the_loss_and_finds_the_scale():
    source = source_of(64, far=40.0)
    adapter = adapters.create("em-full").build(6, 3)
    before = score(adapter, source.batches(64, 5, 0)).log_loss.mean()
    tune(adapter, source, steps=20)
    assert score(adapter, source.batches(64, 5, 0)).log_loss.mean() < before


def test_tuning_finds_how_far_means_of_weak_features_are_to_be_believed():
    sizes = Sizes(ways=(3,), shots=(2, 8), annotators=(4,), queries=4)
    source = source_of(64, sizes, width=100, far=0.3, n_classes=8, per_class=40)
    adapter = adapters.create("em-full").build(100, 3)
    tune(adapter, source, steps=1)
    tau = adapter.classes.log_tau.detach()
    assert float(tau.exp()) > 0.3  # steps alone would stay at a thousandth
    many = list(replace(source, per_epoch=640).batches(16, 5, 0))
    sought = score(adapter, many).log_loss.mean()
    tau.fill_(np.log(0.001))
    assert score(adapter, many).log_loss.mean() > sought


def test_the_best_adapter_is_chosen_by_accuracy():
    rules = {name: adapters.create(name).build(6, 3) for name in ("em-one-coin", "ridge")}
    found = choose(rules, source_of(64), steps=10, episodes=128)
    assert found.best == max(found.scores, key=lambda name: found.scores[name].mean)
    assert all(len(one.accuracy) == 128 for one in found.scores.values())


def test_scores_are_those_of_their_queries():
    found = Scores(
        np.array([1.0, 0.5]), np.zeros(2), np.array([0.9, 0.9, 0.6, 0.6]), np.array([1.0, 1, 1, 0])
    )
    assert found.mean == 0.75
    assert found.half == pytest.approx(1.96 * 0.25 * 2**0.5 / 2**0.5)
    assert found.ece == pytest.approx((2 * 0.1 + 2 * 0.1) / 4)


def test_a_classifier_of_all_classes_learns_turned_ones_too():
    x = torch.zeros(20, 1, 6, 6)
    x[:10, :, 0], x[10:, :, :2] = 1.0, 1.0
    tasks = Tasks(x, np.repeat(np.arange(2), 10), None, turns=4)
    learner = ClassLearner(Embedding(torch.nn.Flatten(), 36), 8)
    train(learner, labelled(tasks), Training(epochs=30, batch=40, lr=0.05, held_out=0))
    found = learner.log_truth(labelled(tasks).x[np.arange(80)]).argmax(dim=1)
    assert (
        found.tolist() == np.repeat([0, 1] * 4, 10).tolist()
        or (found.reshape(8, 10) == torch.arange(8)[:, None]).all()
    )


# The estimator


def test_a_new_task_is_learned_and_its_spammer_found(fitted, target):
    x, annotations, new, truth = target
    task = fitted.adapt(x, annotations)
    assert (task.predict(new).astype(int) == truth).mean() > 0.95
    assert task.labels.tolist() == ["0"] * 6 + ["1"] * 6
    right = task.annotators["accuracy"]
    assert right[2] < min(right[:2]) - 0.1
    np.testing.assert_allclose(task.confusion.sum(axis=2), 1)
    np.testing.assert_allclose(task.predict_proba(new).sum(axis=1), 1)


def test_annotations_by_name_and_as_a_matrix_are_learned_alike(fitted, target):
    x, annotations, new, _ = target
    item, annotator = np.indices(annotations.shape)
    named = Annotations.from_columns(
        item.ravel(), annotator.ravel(), annotations.ravel(), items=range(12), annotators=range(3)
    )
    one, other = (fitted.adapt(x, given).predict_proba(new) for given in (annotations, named))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_labels_on_new_items_count_if_they_are_given(fitted, target):
    x, annotations, new, truth = target
    task = fitted.adapt(x, annotations)
    lie = Annotations.from_columns(
        ["0"], ["0"], [str(1 - truth[0])], items=[str(i) for i in range(len(new))]
    )
    plain, heard = task.predict_proba(new), task.predict_proba(new, lie)
    assert heard[0, truth[0]] < plain[0, truth[0]]
    np.testing.assert_allclose(heard[1:], plain[1:], atol=1e-6)
    stranger = Annotations.from_columns(["0"], ["nobody"], ["1"], items=["0"])
    with pytest.raises(DataError, match="'nobody' labelled nothing"):
        task.predict_proba(new[:1], stranger)


def test_unlabelled_items_sharpen_classes(fitted):
    rng = np.random.default_rng(3)
    gains = []
    for seed in range(30):
        x, y = gaussian(n_classes=2, per_class=60, far=1.3, seed=100 + seed)
        pick = np.array([0, 60])
        new = np.setdiff1d(np.arange(120), pick)
        annotations = np.repeat(y[pick][:, None], 3, axis=1)
        plain = fitted.adapt(x[pick], annotations)
        more = fitted.adapt(x[pick], annotations, unlabelled=x[rng.permutation(new)[:60]])
        right = [(task.predict(x[new]).astype(int) == y[new]).mean() for task in (plain, more)]
        gains.append(right[1] - right[0])
    assert np.mean(gains) > 0.02


@pytest.mark.parametrize("adapter", ["em-kinds[starts=everyone]", "cnp", "maml[steps=2]", "ridge"])
def test_a_saved_model_adapts_as_before(adapter, tmp_path):
    x, y = gaussian()
    training = Training(epochs=1, batch=32, held_out=0)
    model = FewShotCrowd(adapter, training=training, **QUICK).fit(x, y)
    model.save(tmp_path / "model")
    again = FewShotCrowd.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    new, label = gaussian(n_classes=3, per_class=5, seed=4)
    annotations = np.repeat(label[:, None], 2, axis=1)
    one, other = (m.adapt(new, annotations).predict_proba(new) for m in (model, again))
    np.testing.assert_allclose(one, other, atol=1e-6)
    model.save(tmp_path / "model")  # in its own place


@pytest.mark.parametrize("teach", ["clean", "classes", "em-full"])
def test_an_embedding_of_images_is_trained_in_three_ways(teach):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 10)
    x = rng.random((8, 1, 16, 16))[y] + 0.3 * rng.random((80, 1, 16, 16))
    model = FewShotCrowd(
        "em-full",
        encoder="conv4[size=16,channels=1,hidden=8]",
        teach=teach,
        turns=4,
        training=Training(epochs=2, batch=16, lr=2e-3, held_out=0),
        **{**QUICK, "episodes": 32},
    ).fit(x.astype(np.float32), y)
    assert len(model.history_.rows) == 2
    assert model.split_ == "3 of 8 classes"
    assert model.validation_["em-full"][0] > 0.4
    clone(model)


def test_a_head_is_learned_on_frozen_features():
    x, y = gaussian()
    training = Training(epochs=1, batch=32, held_out=0)
    model = FewShotCrowd("em-full", head="linear", training=training, **QUICK).fit(x, y)
    moved = model.embedding_.linear.weight.detach() - torch.eye(6)
    assert 0 < float(moved.abs().max()) < 0.5


def test_several_tasks_are_learned_from_together():
    x, y = gaussian(n_classes=12)
    task = y % 4
    model = FewShotCrowd("em-full", **QUICK).fit(x, y // 4, task=task)
    assert model.split_ == "nothing"  # features as they are: there is nothing to learn
    training = Training(epochs=1, batch=32, held_out=0)
    taught = FewShotCrowd("em-full", head="linear", training=training, **QUICK)
    assert taught.fit(x, y // 4, task=task).split_ == "1 of 4 tasks"


def test_what_cannot_be_is_told_in_one_line(fitted, tmp_path):
    x, y = gaussian()
    with pytest.raises(DataError, match="192 inputs, but 3 classes"):
        FewShotCrowd("em-full").fit(x, y[:3])
    with pytest.raises(OptionError, match="cnp is trained with the embedding"):
        FewShotCrowd("cnp;em-full", **QUICK).fit(x, y)
    with pytest.raises(DataError, match="1 class in the annotations"):
        fitted.adapt(x[:3], [[0], [0], [0]])
    with pytest.raises(DataError, match="2 inputs, but annotations on 3 items"):
        fitted.adapt(x[:2], [[0], [1], [0]])
    with pytest.raises(DataError, match="not a saved few-shot model"):
        FewShotCrowd.load(tmp_path)
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(DataError, match="holds something else"):
        fitted.save(tmp_path)
    ridge = FewShotCrowd("ridge", **QUICK).fit(x, y).adapt(x[:4], [[0], [0], [1], [1]])
    with pytest.raises(MethodError, match="ridge learns nothing about annotators"):
        _ = ridge.confusion
    damaged = tmp_path / "model"
    fitted.save(damaged)
    (damaged / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="not a saved few-shot model"):
        FewShotCrowd.load(damaged)


# What to ask next


def test_an_answer_of_somebody_who_guesses_tells_nothing():
    even = torch.full((1, 1, 3), 1 / 3)
    knows, guesses = torch.eye(3), torch.full((3, 3), 1 / 3)
    gain = information(even, torch.stack([knows, guesses])[None])[0, 0]
    assert gain.tolist() == pytest.approx([np.log(3), 0.0], abs=1e-5)
    sure = torch.tensor([[[1.0, 0, 0]]])
    assert float(information(sure, knows[None, None]).abs().max()) < 1e-5


def test_information_is_the_expected_fall_of_entropy():
    rng = np.random.default_rng(0)
    posterior, matrix = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=3)
    given = posterior @ matrix
    after = (posterior[:, None] * matrix) / given
    fall = (
        -(posterior * np.log(posterior)).sum() + (given * (after * np.log(after)).sum(axis=0)).sum()
    )
    gain = information(torch.tensor(posterior)[None, None], torch.tensor(matrix)[None, None])
    assert float(gain) == pytest.approx(fall, abs=1e-9)


def test_a_plan_asks_for_nothing_known_and_those_who_know(fitted, target):
    x, annotations, _, _ = target
    partly = annotations.copy()
    partly[::2, 0] = -1
    partly[1::2, 2] = -1
    plan = fitted.adapt(x, partly).next(12, explore=0.0)
    pairs = set(zip(plan["item"].tolist(), plan["annotator"].tolist(), strict=True))
    assert len(pairs) == 12
    for item, annotator in pairs:
        assert partly[int(item), int(annotator)] == -1
    assert plan["annotator"][:3].tolist() == ["0"] * 3
    with pytest.raises(MethodError, match="no policy 'best'"):
        fitted.adapt(x, partly).next(3, policy="best")


@pytest.mark.parametrize("policy", list(POLICIES))
def test_revealed_labels_are_as_many_as_the_budget_and_never_taken_back(policy):
    batch = next(iter(source_of(6).batches(6, 0, 0)))
    adapter = adapters.create("em-kinds").build(6, 3)
    u = batch.x[batch.support]
    found = reveal(adapter, u, batch.label, 3, [9, 14, 20], policy=policy)
    assert [int((one >= 0).sum()) for one in found] == [54, 84, 120]
    assert ((found[0] < 0) | (found[0] == found[2])).all()


# Files and the command


def test_sources_are_folders_arrays_and_tables(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="images need Pillow")
    for task, name in (("latin", "a"), ("latin", "b"), ("greek", "alpha")):
        position = tmp_path / "images" / task / name
        position.mkdir(parents=True)
        image.new("L", (8, 8), 255).save(position / "one.png")
    found = read_source(tmp_path / "images")
    assert found.inputs.kind == "images"
    assert (found.label, found.task) == (
        ["greek/alpha", "latin/a", "latin/b"],
        ["greek", "latin", "latin"],
    )
    np.savez(tmp_path / "f.npz", x=np.zeros((3, 2)), y=[0, 1, 1])
    found = read_source(tmp_path / "f.npz")
    assert (found.label, found.task) == (["0", "1", "1"], ["0", "0", "0"])
    (tmp_path / "t.csv").write_text("text,label,task\nhello,x,1\nbye,y,1\n")
    texts = read_source(tmp_path / "t.csv")
    assert (texts.inputs.texts, texts.label, texts.task) == (
        ("hello", "bye"),
        ["x", "y"],
        ["1", "1"],
    )
    both = together([texts, texts])
    assert both.task == ["0:1", "0:1", "1:1", "1:1"]
    with pytest.raises(DataError, match="arrays and texts"):
        together([found, texts])
    np.savez(tmp_path / "g.npz", z=np.zeros(3))
    with pytest.raises(DataError, match="x \\(item, feature\\) and y"):
        read_source(tmp_path / "g.npz")
    with pytest.raises(DataError, match="no such file"):
        read_source(tmp_path / "nowhere")


def test_the_command_fits_adapts_and_labels_new_items(tmp_path):
    x, y = gaussian()
    np.savez(tmp_path / "source.npz", x=x, y=y)
    new, truth = gaussian(n_classes=2, per_class=10, seed=9)
    np.savez(tmp_path / "inputs.npz", x=new, items=[f"i{n}" for n in range(20)])
    rows = ["item,annotator,label"]
    for item in (0, 1, 2, 10, 11, 12):
        rows += [f"i{item},{who},{'ab'[truth[item]]}" for who in ("ann", "bob")]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    sizes = ("--ways", "3", "--shots", "2,3", "--annotators", "3", "--tuning", "15")
    done = run(
        "meta",
        "fit",
        "--source",
        "source.npz",
        "-o",
        "model",
        "-s",
        "em-one-coin",
        *sizes,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert b"em-one-coin" in done.stderr
    done = run(
        *("meta", "adapt", "--model", "model", "answers.csv", "--inputs", "inputs.npz"),
        *("-o", "labels.csv", "--confusion", "who.csv", "--ask", "3", "--plan", "plan.csv"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines[0] == "item,label,confidence,n_labels,p:a,p:b"
    found = {line.split(",")[0]: line.split(",")[1] for line in lines[1:]}
    assert found == {f"i{n}": "ab"[truth[n]] for n in range(20)}
    assert len((tmp_path / "who.csv").read_text().splitlines()) == 1 + 2 * 4
    assert (tmp_path / "plan.csv").read_text().startswith("item,annotator,gain")
    done = run(
        *("meta", "adapt", "--model", "model", "answers.csv", "--inputs", "inputs.npz", "--json"),
        cwd=tmp_path,
    )
    summary = json.loads(done.stdout)
    assert (summary["items"], summary["new_items"], summary["classes"]) == (6, 14, ["a", "b"])


def test_bad_input_to_the_command_ends_in_one_line(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\n1,x,0\n1,y,1\n")
    for arguments in (
        ("meta", "fit", "--source", "nowhere.npz", "-o", "m"),
        ("meta", "fit", "--source", "a.csv", "-o", "m", "--shots", "one"),
        ("meta", "adapt", "--model", "m", "a.csv", "--inputs", "x.npz"),
        ("meta", "adapt", "--model", "m", "a.csv", "--plan", "p.csv"),
    ):
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 2, arguments
        assert done.stderr.count(b"\n") == 1
        assert not (tmp_path / "m").exists()


def test_embedding_a_source_keeps_its_classes():
    x, y = gaussian()
    found = embedded(Embedding(torch.nn.Flatten(), 6), Tasks(torch.from_numpy(x), y))
    assert np.array_equal(found.label, y)
    np.testing.assert_allclose(found.x, x, atol=1e-6)
