"""Data sets of folders, tables and exports, and classifiers that are saved."""
# ruff: noqa: E402, F811

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")
pytest.importorskip("sklearn", reason="CrowdClassifier needs scikit-learn")


from dissensus import Annotations, read
from dissensus.cli.training import read_data
from dissensus.deep.learning.base import BuildParts, Classifier
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.learning.data_sets import aligned, labelled, open_data_set, open_folder
from dissensus.deep.learning.outcome import top
from dissensus.deep.learning.raykar import TwoStage
from dissensus.deep.nn import Examples, Training
from dissensus.deep.nn.reading import class_folders, read_input_index
from dissensus.errors import DataError, OptionError
from dissensus.formats import examine
from dissensus.result import Predictions

from ..deep_sets import (  # noqa: F401
    N_ANNOTATORS,
    SHAPES,
    SMALL,
    _alone,
    asked_network,
    draw,
    features,
    ok,
    refused,
    rows_in,
    shapes,
    surroundings,
    write_table,
)


def test_class_folders_are_the_classes_by_name_or_in_order(shapes, tmp_path):
    annotations = read(shapes)
    by_order = open_folder(annotations, shapes).test
    assert by_order.truth.tolist() == [int(name) % 3 for name in by_order.items.tolist()]
    names = ["triangle", "square", "circle"]
    turned = open_folder(annotations, shapes, label_names=names).test
    assert turned.truth.tolist() == [2 - code for code in by_order.truth.tolist()]
    named = Annotations.from_columns(["0", "1"], "xx", ["square", "circle"], classes=names)
    assert open_folder(named, shapes).test.truth.tolist() == turned.truth.tolist()
    learned = open_folder(named, shapes).folders
    assert [learned[item] for item in ("0", "1", "2")] == ["circle", "square", "triangle"]
    few = Annotations.from_columns(["0", "1"], "xx", ["0", "1"])
    assert open_folder(few, shapes).annotations.classes.tolist() == ["0", "1", "2"]
    other = Annotations.from_columns(["0", "1"], "xx", ["yes", "no"])
    with pytest.raises(DataError, match="name the folders like the classes"):
        open_folder(other, shapes)


def test_items_without_an_input_are_left_out_and_counted(shapes):
    more = {**json.loads((shapes / "answers.json").read_text()), "77": {"0": 1}}
    data = open_folder(Annotations.from_dict(more, classes=range(3)), shapes)
    assert data.annotations.n_items == 30
    assert len(data.inputs) == 30
    assert "1 labelled items have no input" in data.notes[0]
    assert data.others.items.tolist() == ["30", "31", "32"]
    with pytest.raises(DataError, match="not exactly one image for item 'x'; 1 more items"):
        open_folder(Annotations.from_columns("xy", "ab", "01"), shapes)


def test_images_of_a_class_folder_are_named_by_their_numbers_or_paths(shapes, tmp_path):
    input_index, truth = class_folders(shapes / "val")
    assert sorted(input_index.content, key=int) == [str(number) for number in range(9)]
    assert truth["4"] == "square"
    rng = np.random.default_rng(0)
    for name in ("a/one-1.png", "b/two-1.png"):
        draw("circle", tmp_path / name, rng)
    input_index, truth = class_folders(tmp_path)
    assert truth == {"a/one-1.png": "a", "b/two-1.png": "b"}


def test_texts_come_from_an_export_or_a_table_beside_it(tmp_path):
    def task(item, text, labels):
        given = [
            {"completed_by": who, "result": [_choice(label)], "was_cancelled": False}
            for who, label in enumerate(labels)
        ]
        return {"id": item, "data": {"text": text}, "annotations": given}

    tasks = [task(1, "nice", ["pos", "pos"]), task(2, "bad", ["neg", "pos"])]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    found = examine(tmp_path / "export.json")
    path = str(tmp_path / "export.json")
    data = read_data(path, found.annotations, asked_network(), examined=found)
    assert data.inputs.texts == ("nice", "bad")
    write_table(
        tmp_path / "t.csv", ("id", "body", "other"), [(2, "b", "y"), (1, "a", "x"), (3, "c", "z")]
    )
    beside = asked_network("--inputs", tmp_path / "t.csv")
    data = read_data(path, found.annotations, beside, examined=found)
    assert data.inputs.texts == ("a", "b")
    assert data.others.items.tolist() == ["3"]
    other = asked_network("--inputs", tmp_path / "t.csv", "--column", "other")
    assert read_data(path, found.annotations, other).inputs.texts == ("x", "y")


def _choice(label):
    summary = {"from_name": "mood", "to_name": "text", "type": "choices"}
    return {**summary, "value": {"choices": [label]}}


def test_labels_are_one_annotator_and_a_posterior():
    soft = np.array([[0.2, 0.8], [-1, -1], [np.nan, np.nan], [3.0, 1.0]])
    given = Predictions(
        np.array(list("abcd"), dtype="T"), np.array(["u", "v"], dtype="T"), soft.argmax(1), soft
    )
    annotations, posterior = labelled(given)
    assert annotations.items.tolist() == ["a", "d"]
    assert annotations.label.tolist() == [1, 0]
    np.testing.assert_allclose(posterior, [[0.2, 0.8], [0.75, 0.25]])
    np.testing.assert_array_equal(labelled(given, hard=True)[1], [[0, 1], [1, 0]])
    wider = annotations.subset(items=["d"]).recode(["w", "v", "u"])
    np.testing.assert_allclose(aligned(posterior, annotations, wider), [[0, 0.25, 0.75]])
    nothing = Predictions(given.items, given.classes, np.full(4, -1))
    with pytest.raises(DataError, match="no item has a label"):
        labelled(nothing)


def test_known_items_have_to_be_of_known_classes(features):
    annotations = read(features / "answers.csv")
    input_index = read_input_index(features / "x.npz", annotations.items)
    with pytest.raises(DataError, match="test item 'i120' is 'other', which is not among"):
        open_data_set(annotations, input_index, test={"i120": "other"})
    with pytest.raises(DataError, match="none of the 1 valid items has an input"):
        open_data_set(annotations, input_index, valid={"z": "c0"})
    with pytest.raises(DataError, match="no annotations are left"):
        open_data_set(
            annotations, input_index, test=dict.fromkeys(annotations.items.tolist(), "c0")
        )


def test_certain_posteriors_are_ordinary_labels_and_predicted_as_such():
    rng = np.random.default_rng(0)
    annotations = Annotations.from_codes(
        np.arange(9), np.zeros(9, np.int64), np.arange(9) % 3, items=9, annotators=1, classes=3
    )
    posterior = torch.eye(3)[torch.arange(9) % 3]
    crowd = BuildParts(
        annotations, lambda: Classifier(torch.nn.Flatten(), 4, 3, 5, 0.0), None, posterior
    )
    model = TwoStage().build(crowd).eval()
    batch = next(
        iter(
            Examples(torch.from_numpy(rng.normal(size=(9, 4))).float(), annotations).batches(
                9, 0, 0
            )
        )
    )
    plain = torch.nn.functional.cross_entropy(model.classifier(batch.x)[batch.row], batch.label)
    torch.testing.assert_close(model.loss(batch), plain)
    torch.testing.assert_close(-model.log_probability(batch).mean(), plain)
    soft = torch.full((9, 3), 1 / 3)
    even = TwoStage().build(replace(crowd, posterior=soft)).eval()
    log = even.log_truth(batch.x)
    torch.testing.assert_close(even.log_probability(batch), log.mean(dim=1)[batch.row])
    with pytest.raises(OptionError, match="posterior= is for two-stage"):
        CrowdClassifier("conal").fit(np.zeros((9, 4)), annotations, posterior=soft)


def test_the_best_few_classes_count_by_item_and_by_class():
    rng = np.random.default_rng(0)
    posterior, truth = rng.random((50, 6)), rng.integers(6, size=50)
    rank = (posterior > posterior[np.arange(50), truth][:, None]).sum(axis=1)
    micro, macro = top(posterior, truth, 3)
    assert micro == pytest.approx((rank < 3).mean())
    assert macro == pytest.approx(np.mean([(rank < 3)[truth == k].mean() for k in range(6)]))
    assert top(posterior, truth, 6) == (1, 1)


@pytest.mark.parametrize("given", [["one text", "another"], [Path("a.png"), Path("b.png")]])
def test_a_saved_classifier_knows_what_it_takes(given, tmp_path, shapes):
    if isinstance(given[0], Path):
        given = sorted((shapes / "val").rglob("*.png"))[:2]
    training = Training(epochs=1, held_out=0, milestones=(3, 4), momentum=0.5)
    made = CrowdClassifier("two-stage", training=training)
    made.fit(given, np.array([[0], [1]])).save(tmp_path)
    again = CrowdClassifier.load(tmp_path)
    assert again.kind_ == made.kind_
    assert again.get_params() == made.get_params()
    np.testing.assert_array_equal(again.predict_proba(given), made.predict_proba(given))


def test_a_damaged_classifier_fails_in_one_line(tmp_path):
    x, annotations = np.eye(3), np.arange(3)[:, None]
    training = Training(epochs=1, held_out=0)
    CrowdClassifier("global-noise", hidden=4, training=training).fit(x, annotations).save(tmp_path)
    notes, weights = tmp_path / "model.json", tmp_path / "weights.safetensors"
    whole = notes.read_text()
    notes.write_text(whole.replace("global-noise", "union-net"))
    with pytest.raises(DataError, match="a damaged CrowdClassifier, changed since"):
        CrowdClassifier.load(tmp_path)
    unsigned = {name: value for name, value in json.loads(whole).items() if name != "digest"}
    notes.write_text(json.dumps(unsigned).replace("global-noise", "union-net"))
    with pytest.raises(DataError, match="the weights are not those of union-net"):
        CrowdClassifier.load(tmp_path)
    for broken in ("{", "{}", whole[:-20]):
        notes.write_text(broken)
        with pytest.raises(DataError, match="a damaged CrowdClassifier"):
            CrowdClassifier.load(tmp_path)
    notes.write_text(whole)
    weights.write_bytes(weights.read_bytes()[:-5])
    with pytest.raises(DataError, match="a damaged CrowdClassifier"):
        CrowdClassifier.load(tmp_path)
    with pytest.raises(DataError, match="not a saved CrowdClassifier"):
        CrowdClassifier.load(tmp_path / "nowhere")


def test_cross_validation_keeps_all_labels_of_an_item_together():
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    annotations = np.where(rng.random((60, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    annotations[rng.random((60, 4)) < 0.3] = -1
    x = 3 * truth[:, None] + rng.normal(size=(60, 2))
    made = make_pipeline(
        StandardScaler(), CrowdClassifier("two-stage", training=Training(epochs=8, lr=0.03))
    )
    folds = list(KFold(3, shuffle=True, random_state=0).split(x))
    scores = cross_val_score(made, x, annotations, cv=folds)
    for score, (kept, held) in zip(scores, folds, strict=True):
        assert not set(kept) & set(held)
        alone = make_pipeline(
            StandardScaler(), CrowdClassifier("two-stage", training=Training(epochs=8, lr=0.03))
        )
        assert alone.fit(x[kept], annotations[kept]).score(
            x[held], annotations[held]
        ) == pytest.approx(score)
