"""`train` and `aggregate-deep`: from images, texts and features to a classifier and its files."""
# ruff: noqa: E402, F811

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="CrowdClassifier needs scikit-learn")

from safetensors.torch import load_file

from dissensus import read
from dissensus.cli.methods import catalogue, outlines
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.nn import Training, as_inputs, encoder_for, read_inputs
from dissensus.deep.nn.encoders import encoder_spec, weights_file
from dissensus.deep.nn.image_encoders import torchvision_name
from dissensus.errors import OptionError, install_command
from dissensus.formats.side_tables import read_removed

from ..deep_sets import (  # noqa: F401
    N_ANNOTATORS,
    SHAPES,
    SMALL,
    _alone,
    asked_network,
    features,
    ok,
    refused,
    rows_in,
    shapes,
    surroundings,
    write_table,
)
from ..support import run

# ---------------------------------------------------------------------- images


def test_a_folder_of_images_is_learned_end_to_end(shapes, tmp_path):
    done = ok(
        *("aggregate-deep", shapes, "-s", "CrowdLayer", "-K", 3, "-o", "first", "--lr", 0.01),
        *("--folder", tmp_path, "--n-epochs", 20, "--batch-size", 10, "--num-workers", 1),
        cwd=tmp_path,
    )
    summary = done.stdout.decode()
    assert "9 test items of known truth" in summary
    assert "chosen by accuracy on 9 items of known truth" in summary
    results = json.loads((tmp_path / "results" / "first.json").read_text())
    assert len(results["train_loss"]) == len(results["val_loss"]) == 20
    assert len(results["val_accuracy"]) == 20
    assert max(results["val_accuracy"]) == results["val_accuracy"][results["best_epoch"] - 1]
    assert results["test_accuracy"] >= 200 / 3
    assert results["test_loss"] > 0
    assert 0 <= results["test_ece"] <= 1
    assert "test_micro_top2" not in results
    assert results["encoder"] == "efficientnet-lite0"
    position = tmp_path / "runs" / "first"
    assert (position / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert len(rows_in(position / "predictions.csv")) == 30
    assert [row["item"] for row in rows_in(position / "predictions_others.csv")] == [
        "30",
        "31",
        "32",
    ]
    assert len(rows_in(position / "predictions_valid.csv")) == 9
    tested = rows_in(position / "predictions_test.csv")
    assert list(tested[0]) == ["item", "label", "confidence", "p:0", "p:1", "p:2"]
    proba = np.array([[float(row[f"p:{code}"]) for code in range(3)] for row in tested])
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    again = CrowdClassifier.load(tmp_path / "best_models" / "first")
    files = [
        shapes / "test" / SHAPES[int(r["item"]) % 3] / f"picture-{r['item']}.png" for r in tested
    ]
    np.testing.assert_allclose(again.predict_proba(files), proba, atol=1e-6)
    names = [file.name for file in (tmp_path / "best_models" / "first").iterdir()]
    assert sorted(names) == ["model.json", "weights.safetensors"]


def test_labels_as_aggregate_writes_them_are_learned(shapes, tmp_path):
    for name in ("train", "val", "test", "answers.json", "metadata.json"):
        (tmp_path / name).symlink_to(shapes / name)
    ok("aggregate", ".", "-s", "DS", cwd=tmp_path)
    ok("aggregate", ".", "-s", "DS", "--hard", cwd=tmp_path)
    hard = tmp_path / "labels" / "labels_shapes_ds_hard.npy"
    labels = np.load(hard)
    assert labels.shape == (30,)
    labels[[4, 7]] = -1  # undecided
    np.save(hard, labels)
    for labels, n_items in (("ds", 30), ("ds_hard", 28)):
        ok(
            *("train", ".", "--labels", f"labels/labels_shapes_{labels}.npy", "-o", labels),
            *("--n-epochs", 12, "--lr", 0.01, "--batch-size", 10, "--model", "efficientnet-lite0"),
            cwd=tmp_path,
        )
        results = json.loads((tmp_path / "results" / f"{labels}.json").read_text())
        assert results["n_items"] == n_items
        assert results["test_accuracy"] >= 200 / 3
        model = tmp_path / "best_models" / "efficientnet-lite0" / labels
        assert CrowdClassifier.load(model).classes_.tolist() == ["0", "1", "2"]
    (tmp_path / "metadata.json").unlink()
    (tmp_path / "metadata.json").write_text('{"n_classes": 3, "n_task": 33}')  # three are silent
    ok("train", ".", "-s", "MV", "--n-epochs", 1, cwd=tmp_path)
    assert json.loads((tmp_path / "results" / "mv.json").read_text())["n_items"] == 30
    others = rows_in(tmp_path / "runs" / "ds_hard" / "predictions_others.csv")
    assert {row["item"] for row in others} == {"4", "7", "30", "31", "32"}


def test_images_change_while_training_and_pass_a_tuned_encoder(shapes, tmp_path):
    common = ("aggregate-deep", shapes, "--model", "conv4", "--img-size", 32, "-s", "global-noise")
    common += ("--n-epochs", 2, "--batch-size", 10, "--folder", tmp_path)
    ok(*common, "-o", "plain", cwd=tmp_path)
    ok(*common, "-o", "changed", "--data-augmentation", cwd=tmp_path)
    plain, changed = (
        load_file(tmp_path / "best_models" / name / "weights.safetensors")
        for name in ("plain", "changed")
    )
    assert plain.keys() == changed.keys()
    assert any(name.startswith("classifier.encoder.") for name in plain)
    assert not all(torch.equal(value, changed[name]) for name, value in plain.items())
    made = CrowdClassifier.load(tmp_path / "best_models" / "changed")
    assert made.encoding_.encoder.size == 32
    images = read_inputs(shapes / "train", read(shapes).items[:4])
    summary = rows_in(tmp_path / "runs" / "changed" / "predictions.csv")[:4]
    found = [[float(row[f"p:{code}"]) for code in range(3)] for row in summary]
    np.testing.assert_allclose(made.predict_proba(images), found, atol=1e-5)


def test_a_frozen_encoder_sees_changed_images_anew_and_learns_nothing():
    images = np.random.default_rng(0).random((12, 3, 16, 16)).astype(np.float32)
    annotations = np.arange(12)[:, None] % 2
    settings = {"encoder": "conv4[size=16,hidden=4]", "frozen": True, "hidden": 0}
    settings["training"] = Training(epochs=2)
    kept = CrowdClassifier("two-stage", **settings).fit(images, annotations)
    changed = CrowdClassifier("two-stage", augment=True, **settings).fit(images, annotations)
    assert kept.encoding_.cached
    assert not changed.encoding_.cached
    start = encoder_for("conv4[size=16,hidden=4]", as_inputs(images), seed=0).state_dict()
    for name, value in changed.model_.classifier.encoder.state_dict().items():
        assert torch.equal(value, start[name])
    with pytest.raises(OptionError, match="only images are augmented"):
        CrowdClassifier(augment=True).fit(np.zeros((12, 3)), annotations)


# ---------------------------------------------------------------------- texts and features


def test_texts_beside_labels_are_learned_with_minilm(tmp_path):
    praise = ["lovely", "wonderful", "great", "charming", "delightful"]
    blame = ["awful", "terrible", "dreadful", "boring", "nasty"]
    rng = np.random.default_rng(0)
    rows = []
    for item in range(30):
        words, true = ((praise, "good"), (blame, "bad"))[item % 2]
        text = f"A {rng.choice(words)}, {rng.choice(words)} film."
        for who in rng.choice(5, 3, replace=False):
            label = true if rng.random() < 0.85 else ("bad" if true == "good" else "good")
            rows.append((f"review {item}", f"reader {who}", label, text))
    write_table(tmp_path / "reviews.csv", ("item", "annotator", "label", "text"), rows)
    ok(
        *("aggregate-deep", "reviews.csv", "-s", "confusion-layer", "--n-epochs", 15),
        *("--lr", 0.01, "-o", "films"),
        cwd=tmp_path,
    )
    made = CrowdClassifier.load(tmp_path / "best_models" / "films")
    assert made.predict(["a lovely and great film", "a boring, dreadful film"]).tolist() == [
        "good",
        "bad",
    ]
    results = json.loads((tmp_path / "results" / "films.json").read_text())
    assert results["encoder"] == "minilm"
    assert results["val_accuracy"] == []
    assert len(results["val_loss"]) == 15
    assert "annotations held out" in results["chosen_by"]
    assert "test_accuracy" not in results


def test_features_are_learned_and_everything_is_written(features, tmp_path):
    done = ok(
        *("aggregate-deep", "answers.csv", *SMALL, "--folder", tmp_path, "--json"),
        *("-s", "conal[scale=1e-4]", "--valid", "valid.csv", "--test", "test.csv"),
        cwd=features,
    )
    results = json.loads(done.stdout)
    for part in ("val", "test"):
        for kind in ("micro", "macro"):
            two, five = (results[f"{part}_{kind}_top{k}"] for k in (2, 5))
            assert results["test_accuracy"] / 2 < two <= five <= 100
    written = json.loads((tmp_path / "results" / "conal[scale=1e-4].json").read_text())
    assert {**written, "files": results["files"]} == results
    position = Path(results["files"]["run"])
    annotators = rows_in(position / "annotators.csv")
    annotations = read(features / "answers.csv")
    assert [row["annotator"] for row in annotators] == annotations.annotators.tolist()
    assert [int(row["n_labels"]) for row in annotators] == annotations.labels_per_annotator.tolist()
    confusion = rows_in(position / "confusion.csv")
    assert len(confusion) == N_ANNOTATORS * 8 * 8
    total = np.zeros((N_ANNOTATORS, 8))
    for row in confusion:
        who, true = annotations.annotators.tolist().index(row["annotator"]), int(row["true"][1])
        total[who, true] += float(row["probability"])
    np.testing.assert_allclose(total, 1, atol=1e-5)
    assert [row["item"] for row in rows_in(position / "predictions_others.csv")] == ["i160"]
    assert {row["item"] for row in rows_in(position / "predictions_test.csv")} == {
        f"i{item}" for item in range(120, 160)
    }


def test_what_annotators_do_is_counted_over_their_own_labels(features):
    annotations = read(features / "answers.csv")
    x = read_inputs(features / "x.npz", annotations.items)
    made = CrowdClassifier("madl", hidden=8, training=Training(epochs=2)).fit(x, annotations)
    table = made.annotator_scores(x, annotations)
    right = made.annotator_performance(x)  # (item, annotator)
    given = made.predict_annotator_proba(x)
    best = made.predict(x)
    for who in range(annotations.n_annotators):
        mine = annotations.annotator == who
        item, label = annotations.item[mine], annotations.label[mine]
        assert table["performance"][who] == pytest.approx(right[item, who].mean(), abs=1e-5)
        assert table["agreement"][who] == pytest.approx(
            (best[item] == annotations.classes[label]).mean()
        )
        log = np.log(given[item, who, label]).mean()
        assert table["log_likelihood"][who] == pytest.approx(log, abs=1e-4)


def test_the_log_has_the_loss_on_what_the_epoch_is_chosen_by(features):
    annotations = read(features / "answers.csv")
    x = read_inputs(features / "x.npz", annotations.items)
    made = CrowdClassifier("global-noise", hidden=8, training=Training(epochs=4, lr=0.01))
    for row in made.fit(x, annotations).history_.rows:
        assert row.valid_loss == -row.score
    truth = annotations.classes[np.arange(80) % 8]
    made.fit(x, annotations, valid=(x, truth))
    best = made.history_.rows[made.history_.best - 1]
    proba = made.predict_proba(x)[np.arange(80), np.arange(80) % 8]
    assert best.valid_loss == pytest.approx(-np.log(proba).mean(), abs=1e-5)
    assert best.score == pytest.approx(made.score(x, truth))


def test_aggregating_on_the_way_is_aggregating_before(features, tmp_path):
    ok("aggregate", features / "answers.csv", "-s", "DS", "-o", tmp_path / "ds.csv", cwd=features)
    common = (*SMALL, "--folder", tmp_path)
    ok("train", "answers.csv", "-s", "DS", *common, "-o", "one", cwd=features)
    ok("train", "x.npz", "--labels", tmp_path / "ds.csv", *common, "-o", "two", cwd=features)
    ok("train", "answers.csv", "-s", "DS", *common, "-o", "hard", "--hard", cwd=features)
    one, two, hard = (
        load_file(tmp_path / "best_models" / "identity" / name / "weights.safetensors")
        for name in ("one", "two", "hard")
    )
    assert all(torch.equal(value, two[name]) for name, value in one.items())
    assert not all(torch.equal(value, hard[name]) for name, value in one.items())
    log = json.loads((tmp_path / "runs" / "one" / "log.json").read_text())
    assert log["chosen by"] == "log-likelihood of 8 labels held out, on 8 items"


def test_items_that_are_named_or_known_are_not_learned_from(features, tmp_path):
    (tmp_path / "remove.txt").write_text("0 i3\n1 i5\n")
    assert read_removed(tmp_path / "remove.txt") == {"i3", "i5"}
    write_table(tmp_path / "known.csv", ("item", "label"), [("i0", "c0"), ("i120", "c0")])
    ok(
        *("aggregate-deep", "answers.csv", *SMALL, "--folder", tmp_path, "-o", "few"),
        *("--path-remove", tmp_path / "remove.txt", "--test", tmp_path / "known.csv"),
        cwd=features,
    )
    learned = {row["item"] for row in rows_in(tmp_path / "runs" / "few" / "predictions.csv")}
    assert learned == {f"i{item}" for item in range(80)} - {"i0", "i3", "i5"}
    tested = rows_in(tmp_path / "runs" / "few" / "predictions_test.csv")
    assert [row["item"] for row in tested] == ["i0", "i120"]


# ---------------------------------------------------------------------- runs


def test_a_killed_run_is_resumed_and_ends_with_the_same_weights(features, tmp_path):
    asked = ("aggregate-deep", "answers.csv", "--inputs", "x.npz", "-s", "crowd-layer")
    asked += ("--hidden", 16, "--batch-size", 4, "--n-epochs", 36, "--folder")
    ok(*asked, tmp_path / "whole", cwd=features)
    command = [sys.executable, "-m", "dissensus", *map(str, asked), str(tmp_path / "cut")]
    position = tmp_path / "cut" / "runs" / "crowd-layer"
    with subprocess.Popen(
        command, cwd=features, stdout=subprocess.DEVNULL, env=surroundings()
    ) as process:
        while not (position / "checkpoint.safetensors").exists() and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "cut" / "results").exists()
    assert "holds a training" in refused(*asked, tmp_path / "cut", cwd=features)
    before = json.loads((position / "run.json").read_text())
    other = refused(
        *asked, tmp_path / "cut", "--resume", "-s", "conal", "-o", "crowd-layer", cwd=features
    )
    assert "a training of crowd-layer" in other
    ok(*asked, tmp_path / "cut", "--resume", cwd=features)
    assert json.loads((position / "run.json").read_text()) == before
    for file in ("best_models/crowd-layer/weights.safetensors", "runs/crowd-layer/predictions.csv"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


def test_a_training_that_has_ended_makes_room_for_another(features, tmp_path):
    asked = ("aggregate-deep", "answers.csv", *SMALL, "--folder", tmp_path, "-s", "global-noise")
    ok(*asked, cwd=features)
    first = (tmp_path / "results" / "global-noise.json").read_text()
    ok(*asked, "--resume", cwd=features)
    assert (tmp_path / "results" / "global-noise.json").read_text() == first
    ok(*asked, "--seed", 1, cwd=features)
    assert (tmp_path / "results" / "global-noise.json").read_text() != first


def test_a_training_is_not_resumed_on_other_inputs_or_soft_labels(features, tmp_path):
    for name in ("answers.csv", "valid.csv"):
        (tmp_path / name).write_bytes((features / name).read_bytes())
    stored = dict(np.load(features / "x.npz"))
    np.savez(tmp_path / "x.npz", **stored)
    soft = [(f"i{item}", f"c{item % 8}", *np.eye(8)[item % 8]) for item in range(80)]
    header = ("item", "label", *(f"p:c{name}" for name in range(8)))
    write_table(tmp_path / "soft.csv", header, soft)
    small = (*SMALL[:-1], 2, "--resume")
    deep = ("aggregate-deep", "answers.csv", *small, "-s", "global-noise", "--valid", "valid.csv")
    single = ("train", "x.npz", "--labels", "soft.csv", *small)
    predictions = tmp_path / "runs" / "global-noise" / "predictions.csv"
    for asked in (deep, single, single):
        ok(*asked, cwd=tmp_path)
    before = predictions.read_bytes()
    other = refused(*single, "--input-dropout", 0.1, cwd=tmp_path)
    assert "input dropout 0.3), not of two-stage" in other
    soft[3] = ("i3", "c3", *(np.eye(8)[3] * 0.92 + 0.01))
    write_table(tmp_path / "soft.csv", header, soft)
    assert "runs/soft: learned from other soft labels; name" in refused(*single, cwd=tmp_path)
    known = (tmp_path / "valid.csv").read_text()
    (tmp_path / "valid.csv").write_text(known.replace(",c1\n", ",c2\n"))
    assert "learned from other known labels; name a new" in refused(*deep, cwd=tmp_path)
    (tmp_path / "valid.csv").write_text(known)
    np.savez(tmp_path / "x.npz", x=stored["x"][::-1], items=stored["items"])
    for asked in (deep, single):
        assert "learned from other inputs; name a new folder" in refused(*asked, cwd=tmp_path)
    assert predictions.read_bytes() == before
    np.savez(tmp_path / "x.npz", **stored)
    run_json = tmp_path / "runs" / "global-noise" / "run.json"
    description = json.loads(run_json.read_text())
    del description["data"]  # as earlier versions wrote it
    run_json.write_text(json.dumps(description))
    ok(*deep, cwd=tmp_path)


def test_an_interrupted_training_says_how_to_go_on(features, tmp_path, monkeypatch):
    asked = ("aggregate-deep", "answers.csv", *SMALL, "--folder", tmp_path, "-s", "global-noise")

    def interrupted(*_, folder, **__):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "checkpoint.safetensors").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(CrowdClassifier, "fit", interrupted)
    done = run(*asked, cwd=features)
    assert done.returncode == 130
    assert b"with --resume goes on in" in done.stderr
    assert b"nothing was written" not in done.stderr


def test_two_processes_of_torchrun_learn_what_one_does(features, tmp_path):
    asked = ["aggregate-deep", "answers.csv", *map(str, SMALL), "-s", "crowd-layer"]
    asked += ["--dropout", "0", "--input-dropout", "0", "--n-epochs", "7", "--folder"]
    ok(*asked, tmp_path / "one", cwd=features)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    launcher += ["--standalone", "-m", "dissensus"]
    done = subprocess.run(
        [*launcher, *asked, str(tmp_path / "two"), "--devices", "2"],
        cwd=features,
        env=surroundings(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.count(b"Learned from 240 labels") == 1
    one, two = (
        load_file(tmp_path / name / "best_models" / "crowd-layer" / "weights.safetensors")
        for name in ("one", "two")
    )
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=1e-4, rtol=1e-3)


# ---------------------------------------------------------------------- options


def test_options_of_peerannot_reach_the_training():
    asked = "--scheduler -m 3 -m 5 -optim SGD --momentum 0.5 --decay 5e-4"
    first = asked_network(*asked.split()).training(3)
    second = asked_network("--scheduler", "cosine", "--lr", 0.1).training(0)
    assert (first.scheduler, first.milestones) == ("multistep", (3, 5))
    assert (first.optimizer, first.momentum, first.decay) == ("sgd", 0.5, 5e-4)
    assert (first.epochs, first.seed) == (7, 3)
    assert (second.scheduler, second.lr, second.milestones) == ("cosine", 0.1, (50,))


def test_published_weights_are_tuned_unless_frozen():
    summary = ([], ["--pretrained"], ["--pretrained", "--freeze"], ["--tune"])
    assert [asked_network(*words).frozen for words in summary] == [None, False, True, False]


def test_an_encoder_is_written_with_size_and_weights():
    images = as_inputs([Path("a.png")])
    assert encoder_spec("ResNet18", size=64) == "resnet[depth=18,size=64]"
    assert encoder_spec("resnet18[size=32]", size=64) == "resnet[depth=18,size=32]"
    assert encoder_spec("vgg16-bn", pretrained=True) == "vgg-bn[depth=16,weights=imagenet]"
    assert encoder_spec("auto", images, size=224, pretrained=True) == "efficientnet-lite0"
    assert encoder_spec("auto", as_inputs(np.zeros((2, 3))), size=32) == "identity"
    assert encoder_spec("hf:some/model[length=8]") == "hf[length=8,model='some/model']"
    with pytest.raises(OptionError, match="takes images of one size only"):
        encoder_spec("auto", images, size=100)


def test_published_weights_come_from_the_cache_of_torch(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))

    def offline(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr(torch.hub, "download_url_to_file", offline)
    with pytest.raises(OptionError, match="resnet18: its published weights cannot be downloaded"):
        encoder_for("resnet18[weights=imagenet]")
    kept = tmp_path / "hub" / "checkpoints" / "resnet18-f37072fd.pth"
    source = encoder_for("resnet18", seed=5)
    state = source.body.state_dict()
    torch.save({torchvision_name(name): value for name, value in state.items()}, kept)
    made = encoder_for("resnet18[weights=imagenet]")
    assert made.is_frozen
    assert made.digest() == source.digest()
    assert weights_file("resnet18", "other.pth") == "other.pth"


def test_what_cannot_be_done_fails_in_one_line(features, shapes, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "answers.json").write_text('{"0": {"0": 1}}')
    summary = {
        ("aggregate-deep", "answers.csv"): "no column of texts or files among",
        ("aggregate-deep", "answers.csv", "-s", "crowd"): "did you mean",
        ("aggregate-deep", "answers.csv", *SMALL, "-o", "a/b"): "cannot name files",
        (
            "aggregate-deep",
            "answers.csv",
            *SMALL,
            "--data-augmentation",
        ): "only images are augmented, not arrays",
        ("aggregate-deep", "answers.csv", *SMALL, "--devices", 2): "start it with torchrun",
        ("aggregate-deep", "answers.csv", "--inputs", "no.npz"): "no such file or folder",
        ("aggregate-deep", empty): "no images, videos or sounds in it",
        ("aggregate-deep", shapes, "--img-size", 100): "takes images of one size only",
        ("train", "x.npz"): "either --labels FILE, or -s",
        ("train", "x.npz", "--labels", "no.npy"): "no.npy",
        ("train", shapes, "--labels", "valid.csv"): "name the folders like the classes",
    }
    for asked, words in summary.items():
        assert words in refused(*asked, cwd=features), asked
    assert not any((features / name).exists() for name in ("runs", "results", "best_models"))


def test_without_torch_one_line_says_what_is_missing_and_methods_are_still_listed(features):
    def without(*words):
        code = "import sys; sys.modules['torch'] = None; from dissensus.cli import main; main()"
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(
            command, cwd=features, env=surroundings(), capture_output=True, timeout=60, check=False
        )

    for words in (["aggregate-deep", "answers.csv"], ["train", "x.npz", "--labels", "test.csv"]):
        done = without(*words)
        assert done.returncode == 2
        summary = f"dissensus: networks need torch: {install_command('deep')}\n"
        assert done.stderr.decode() == summary
    assert b"crowd-layer" in without("methods").stdout


def test_encoders_and_learners_are_listed(tmp_path):
    summary = ok("modelinfo", cwd=tmp_path).stdout.decode()
    assert all(name in summary for name in ("efficientnet-lite0", "minilm", "resnet18", "conv4"))
    named = [entry["name"] for entry in json.loads(ok("modelinfo", "--json", cwd=tmp_path).stdout)]
    assert "modellabelme" in named
    assert "dissensus aggregate-deep -s" in ok("methods", cwd=tmp_path).stdout.decode()
    assert "Chu, Ma and Wang" in ok("methods", "CoNAL", cwd=tmp_path).stdout.decode()


def test_a_method_is_described_without_importing_it():
    assert outlines() == [replace(entry, settings=()) for entry in catalogue()]
