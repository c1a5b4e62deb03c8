"""Few-shot learning as an estimator and as a command, and active learning."""
# ruff: noqa: E402

from __future__ import annotations

import json
from copy import deepcopy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="meta needs torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="FewShotCrowd needs scikit-learn")

from sklearn.base import clone

from dissensus import Annotations
from dissensus.deep.meta.few_shot import FewShotCrowd
from dissensus.deep.meta.target import information
from dissensus.deep.meta.tasks import join_sources, read_source
from dissensus.deep.nn import Training
from dissensus.errors import DataError, MethodError, OptionError
from dissensus.registry import adapters

from ..few_shot_support import QUICK, gaussian, source_of
from ..support import benchmark, run


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def fitted():
    x, y = gaussian()
    return FewShotCrowd("em-full", **QUICK).fit(x, y)


@pytest.fixture(scope="module")
def target():
    """Return a new task of two classes: inputs, labels of three annotators, new inputs, truth."""
    x, y = gaussian(n_classes=2, per_class=30, seed=9)
    rng = np.random.default_rng(0)
    support = np.concatenate([np.arange(6), np.arange(30, 36)])
    annotations = np.stack([y[support], y[support], rng.integers(2, size=12)], axis=1)
    new = np.setdiff1d(np.arange(60), support)
    return x[support], annotations, x[new], y[new]


# The estimator


def test_a_new_task_is_learned_and_its_spammer_found(fitted, target):
    x, annotations, new, truth = target
    task = fitted.adapt(x, annotations)
    assert (task.predict(new) == truth).mean() > 0.95
    assert task.labels.tolist() == [0] * 6 + [1] * 6
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
    plain, with_label = task.predict_proba(new), task.predict_proba(new, lie)
    assert with_label[0, truth[0]] < plain[0, truth[0]]
    np.testing.assert_allclose(with_label[1:], plain[1:], atol=1e-6)
    stranger = Annotations.from_columns(["0"], ["nobody"], ["1"], items=["0"])
    with pytest.raises(DataError, match="'nobody' has no labels"):
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
        right = [(task.predict(x[new]) == y[new]).mean() for task in (plain, more)]
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


@pytest.mark.parametrize("objective", ["clean", "classes", "em-full"])
def test_an_embedding_of_images_is_trained_in_three_ways(objective):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 10)
    x = rng.random((8, 1, 16, 16))[y] + 0.3 * rng.random((80, 1, 16, 16))
    model = FewShotCrowd(
        "em-full",
        encoder="conv4[size=16,channels=1,hidden=8]",
        objective=objective,
        rotations=4,
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
    assert model.split_ == "nothing"  # nothing is trained on features as they are
    training = Training(epochs=1, batch=32, held_out=0)
    trained_ = FewShotCrowd("em-full", head="linear", training=training, **QUICK)
    assert trained_.fit(x, y // 4, task=task).split_ == "1 of 4 tasks"


def test_wrong_arguments_are_refused(fitted):
    x, y = gaussian()
    with pytest.raises(DataError, match="192 inputs, but 3 classes"):
        FewShotCrowd("em-full").fit(x, y[:3])
    with pytest.raises(OptionError, match="cnp is trained with the embedding"):
        FewShotCrowd("cnp;em-full", **QUICK).fit(x, y)
    with pytest.raises(AttributeError, match="adapt to a task first"):
        fitted.predict(x)
    with pytest.raises(DataError, match="1 class in the annotations"):
        fitted.adapt(x[:3], [[0], [0], [0]])
    with pytest.raises(DataError, match="2 inputs, but annotations on 3 items"):
        fitted.adapt(x[:2], [[0], [1], [0]])
    ridge = FewShotCrowd("ridge", **QUICK).fit(x, y).adapt(x[:4], [[0], [0], [1], [1]])
    with pytest.raises(MethodError, match="ridge has no model of annotators"):
        _ = ridge.confusion


# A view of a task


def test_a_view_goes_from_the_votes_to_the_posterior_of_the_last_step(fitted, target):
    support, annotations, new, truth = target
    task = fitted.adapt(support, annotations)
    known = np.concatenate([np.repeat([0, 1], 6), truth])
    view = task.view(known, new=new)
    names = [stage.name for stage in view.stages]
    assert names == ["votes", "step 1", "step 2"]
    votes = view.stages[0].probability
    np.testing.assert_allclose(votes[:12, 1], annotations.mean(axis=1))
    assert (votes[12:] == 0.5).all()
    last = np.concatenate([task.posterior, task.predict_proba(new)])
    np.testing.assert_allclose(view.stages[-1].probability, last, atol=1e-6)
    first = view.stages[1].probability
    short = deepcopy(fitted)
    short.model_.steps = 1
    np.testing.assert_allclose(first[:12], short.adapt(support, annotations).posterior, atol=1e-6)
    assert np.abs(first - last).max() > 1e-3
    assert view.accuracy(view.stages[-1]) == 1.0
    assert (view.truth == known).all()


def test_neighbours_in_the_embedding_are_neighbours_in_the_view(fitted):
    x, y = gaussian(n_classes=3, per_class=12, far=6.0, seed=2)
    view = fitted.adapt(x, y[:, None]).view()
    distance = np.linalg.norm(view.position[:, None] - view.position[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (y[distance.argmin(axis=1)] == y).all()
    again = fitted.adapt(x, y[:, None]).view()
    np.testing.assert_array_equal(view.position, again.position)


def test_a_chart_of_a_view_has_a_panel_per_step_and_marks_what_is_wrong(fitted, target, tmp_path):
    x, annotations, _, _ = target
    view = fitted.adapt(x, annotations).view({"0": 1, "6": 1})
    figure = view.plot()
    rows = figure.spec["data"]["values"]
    panels = ["true classes", "votes, before EM: 50% right"]
    panels += ["after step 1: 50% right", "after step 2: 50% right"]
    assert list(dict.fromkeys(row["panel"] for row in rows)) == panels
    assert [row["item"] for row in rows if row["wrong"] and "step 2" in row["panel"]] == ["0"]
    assert {row["class"] for row in rows if row["panel"] == "true classes"} == {"1", "undecided"}
    figure.save(tmp_path / "view.svg")
    assert "after step 2" in (tmp_path / "view.svg").read_text()
    plain = fitted.adapt(x[:2], annotations[[0, 6]]).view().plot()  # too few for t-SNE
    assert "true" not in plain.spec["facet"]["sort"][0]


def test_known_classes_are_as_many_as_the_items(fitted, target):
    x, annotations, _, _ = target
    with pytest.raises(DataError, match="3 known classes, but 12 items"):
        fitted.adapt(x, annotations).view([0, 1, 0])


# What to ask next


def test_a_label_of_an_annotator_who_guesses_has_no_information():
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


def test_a_plan_has_no_known_label_and_prefers_accurate_annotators(fitted, target):
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


@pytest.mark.parametrize("policy", ["joint", "item", "annotator", "random"])
def test_revealed_labels_are_as_many_as_the_budget_and_never_taken_back(policy):
    batch = next(iter(source_of(6).batches(6, 0, 0)))
    adapter = adapters.create("em-kinds").build(6, 3)
    u = batch.x[batch.support]
    result = benchmark("revealing").reveal(adapter, u, batch.label, 3, [9, 14, 20], policy=policy)
    assert [int((one >= 0).sum()) for one in result] == [54, 84, 120]
    assert ((result[0] < 0) | (result[0] == result[2])).all()


# Files and the command


def test_sources_are_folders_arrays_and_tables(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="images need Pillow")
    for task, name in (("latin", "a"), ("latin", "b"), ("greek", "alpha")):
        position = tmp_path / "images" / task / name
        position.mkdir(parents=True)
        image.new("L", (8, 8), 255).save(position / "one.png")
    result = read_source(tmp_path / "images")
    assert result.inputs.kind == "images"
    assert (result.label, result.task) == (
        ["greek/alpha", "latin/a", "latin/b"],
        ["greek", "latin", "latin"],
    )
    np.savez(tmp_path / "f.npz", x=np.zeros((3, 2)), y=[0, 1, 1])
    result = read_source(tmp_path / "f.npz")
    assert (result.label, result.task) == (["0", "1", "1"], ["0", "0", "0"])
    (tmp_path / "t.csv").write_text("text,label,task\nhello,x,1\nbye,y,1\n")
    texts = read_source(tmp_path / "t.csv")
    assert (texts.inputs.texts, texts.label, texts.task) == (
        ("hello", "bye"),
        ["x", "y"],
        ["1", "1"],
    )
    both = join_sources([texts, texts])
    assert both.task == ["0:1", "0:1", "1:1", "1:1"]
    with pytest.raises(DataError, match="arrays and texts"):
        join_sources([result, texts])
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
        rows += [f"i{item},{annotator},{'ab'[truth[item]]}" for annotator in ("ann", "bob")]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    sizes = ("--ways", "3", "--shots", "2,3", "--n-annotators", "3", "--tuning", "15")
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
        *("meta", "adapt", "--load", "model", "answers.csv", "--inputs", "inputs.npz"),
        *(
            "-o",
            "labels.csv",
            "--confusion",
            "confusion.csv",
            "--budget",
            "3",
            "--plan",
            "plan.csv",
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines[0] == "item,label,confidence,n_labels,p:a,p:b"
    result = {line.split(",")[0]: line.split(",")[1] for line in lines[1:]}
    assert result == {f"i{n}": "ab"[truth[n]] for n in range(20)}
    assert len((tmp_path / "confusion.csv").read_text().splitlines()) == 1 + 2 * 4
    assert (tmp_path / "plan.csv").read_text().startswith("item,annotator,gain")
    done = run(
        *("meta", "adapt", "--load", "model", "answers.csv", "--inputs", "inputs.npz", "--json"),
        cwd=tmp_path,
    )
    summary = json.loads(done.stdout)
    assert (summary["items"], summary["new_items"], summary["classes"]) == (6, 14, ["a", "b"])
    known = [f"i{n},{'ab'[truth[n]]}" for n in range(20)]
    (tmp_path / "truth.csv").write_text("\n".join(["item,label", *known]))
    done = run(
        *("meta", "adapt", "--load", "model", "answers.csv", "--inputs", "inputs.npz"),
        *("--chart", "view.svg", "--truth", "truth.csv"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "after step 5: 100% right" in (tmp_path / "view.svg").read_text()


def test_a_training_is_not_resumed_with_other_episodes_or_inputs(tmp_path):
    x, y = gaussian()
    settings = {**QUICK, "head": "linear", "training": Training(epochs=1, batch=32)}

    def fit(x, **changes):
        model = FewShotCrowd("em-full", **{**settings, **changes})
        model.fit(x, y, folder=tmp_path / "kept", resume=True)

    fit(x)
    fit(x, training=Training(epochs=2, batch=32))  # longer is allowed
    with pytest.raises(OptionError, match=r"a training of clean on identity \(64 episodes"):
        fit(x, episodes=32)
    with pytest.raises(OptionError, match="learned from other annotations"):
        fit(x[::-1])


def test_bad_input_to_the_command_ends_in_one_line(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\n1,x,0\n1,y,1\n")
    for arguments in (
        ("meta", "fit", "--source", "nowhere.npz", "-o", "m"),
        ("meta", "fit", "--source", "a.csv", "-o", "m", "--shots", "one"),
        ("meta", "adapt", "--load", "m", "a.csv", "--inputs", "x.npz"),
        ("meta", "adapt", "--load", "m", "a.csv", "--plan", "p.csv"),
        ("meta", "adapt", "--load", "m", "a.csv", "--truth", "a.csv"),
        ("meta", "adapt", "--load", "m", "a.csv", "--chart", "view.pdf"),
    ):
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 2, arguments
        assert done.stderr.count(b"\n") == 1
        assert not (tmp_path / "m").exists()
