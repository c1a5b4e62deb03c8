"""Exports of labelling tools that hold marks, masks, rankings and texts, and files of them."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import DataError
from dissensus.aggregation import aggregate
from dissensus.answers import kind_class
from dissensus.errors import OptionError
from dissensus.formats import examine
from dissensus.formats import shapes as shapes
from dissensus.formats.annotator_files import read_files
from dissensus.formats.format import TOOLS, formats, head_of, tool_of
from dissensus.formats.sources import open_source
from dissensus.formats.writers_init import write_answers

from ..support import recognised_by, run

FIXTURES = Path(__file__).parents[1] / "fixtures_kinds"
RING = [[0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0, 0], [0, 0, 1, 0, 1, 0, 0, 0]]
RING = np.array([*RING, RING[1], RING[0], RING[0]], dtype=bool)  # what the fixtures draw


def read(path, **given):
    return examine(FIXTURES / path, **given)


def values(found):
    pairs = zip(found.answers.to_rows(), found.answers.values(), strict=True)
    return {(row["item"], row["annotator"]): value for row, value in pairs}


def pixels(found, item, annotator):
    rows = found.answers.to_rows()
    at = next(n for n, r in enumerate(rows) if (r["item"], r["annotator"]) == (item, annotator))
    return found.answers.pixels(at)


def span(start, end, label):
    return {"start": start, "end": end, "label": label}


def box(x, y, w, h, label):
    return {"x": x, "y": y, "w": w, "h": h, "label": label}


@pytest.mark.parametrize(
    "name", sorted({path.relative_to(FIXTURES).parts[0] for path in FIXTURES.rglob("*")})
)
def test_the_kinds_of_a_tool_are_those_its_files_have(name):
    tool_name = next(n for n in TOOLS if name.replace("_", "-").startswith(n))
    path = FIXTURES / name
    found = read_files(path) if path.is_dir() else (tool_name, TOOLS[tool_name](open_source(path)))
    kinds = {q.kind for q in found[1].questions.values()}
    assert found[0] == tool_name
    assert kinds <= {*formats[tool_name].kinds, "single"}


# Label Studio


def test_label_studio_spans_with_empty_answers_and_without_cancelled_ones():
    found = read("label_studio_spans.json")
    assert found.format == "label-studio"
    assert values(found) == {
        ("1", "3"): [span(0, 5, "PER"), span(12, 16, "LOC")],
        ("1", "bob@example.org"): [],
        ("1", "model:m1"): [span(0, 5, "PER")],
        ("2", "3"): [],
    }
    assert found.notes == ("1 row is left out: 1 cancelled", "1 annotator has no label: 5")


def test_label_studio_percents_become_pixels_and_rotated_boxes_hulls():
    found = read("label_studio_images.json", question="box")
    assert values(found) == {
        ("1", "3"): [box(2, 3, 4, 1.5, "cat")],
        ("1", "4"): [box(-1, 3, 3, 2, "cat")],
        ("2", "3"): [],
        ("2", "4"): [],
    }
    assert "rotations of boxes, which are read as upright hulls (1)" in found.notes[0]


def test_label_studio_points_polygons_and_brushes():
    points = read("label_studio_images.json", question="dot")
    assert values(points)["1", "3"] == [{"x": 4, "y": 3, "label": "eye"}]
    assert points.answers.size.tolist() == [[8, 6], [8, 6]]
    area = read("label_studio_images.json", question="area")
    square = np.zeros((6, 8), dtype=bool)
    square[:3, :4] = True
    assert (pixels(area, "1", "3") == square).all()
    assert not pixels(area, "1", "4").any()
    paint = read("label_studio_images.json", question="paint")
    assert (pixels(paint, "1", "3") == RING).all()


def test_label_studio_options_texts_rankings_and_comparisons():
    found = read("label_studio_others.json", kind="sets")
    assert values(found) == {("1", "3"): ["a", "b"], ("1", "4"): ["a"]}
    why = read("label_studio_others.json", question="why")
    assert values(why) == {("1", "3"): "so it is\ntwice"}
    order = read("label_studio_others.json", question="order").answers
    assert [[one["value"] for one in value] for value in order.values()] == [
        ["x", "y", "z"],
        ["y", "x", "z"],
    ]
    better = read("label_studio_others.json", question="better").answers
    assert better.values()[0] == [{"value": "red", "rank": 2}, {"value": "blue", "rank": 1}]


def test_classes_come_first_and_other_questions_are_named_in_a_note():
    found = read("label_studio_others.json", kind="single")
    assert found.question == "tags"
    assert "why (1 answers, texts)" in found.notes[-1]


def test_verbs_of_classes_refuse_other_kinds():
    with pytest.raises(DataError, match="'ner' holds spans, and classes are needed here"):
        examine(FIXTURES / "label_studio_spans.json", kind="single")


# Other tools


def test_prodigy_spans_boxes_and_polygons():
    spans = read("prodigy_marks.jsonl", question="spans")
    assert values(spans) == {("1", "ann"): [span(0, 5, "PER")], ("1", "bob"): []}
    assert spans.notes == ("1 row is left out: 1 ignored", "1 annotator has no label: eve")
    boxes = read("prodigy_marks.jsonl", kind="boxes")
    assert values(boxes) == {("3", "ann"): [box(1, 2, 3, 4, "cat")], ("3", "bob"): []}
    masks = read("prodigy_marks.jsonl", kind="masks")
    assert pixels(masks, "3", "ann").sum() == 4


def test_doccano_of_both_versions_from_a_folder():
    found = read("doccano")
    assert found.format == "doccano"
    assert values(found) == {
        ("1", "ann"): [span(0, 5, "PER")],
        ("2", "ann"): [],
        ("1", "bob"): [span(0, 5, "PER"), span(9, 13, "LOC")],
        ("2", "bob"): [],
    }


def test_argilla_spans_rankings_and_sets():
    spans = read("argilla_kinds.json", question="ner").answers
    assert len(spans) == 3
    assert spans.values()[1:] == [[], [span(0, 5, "PER")]] or spans.empty.sum() == 1
    order = read("argilla_kinds.json", question="order").answers
    assert order.values()[1] == [{"value": "a", "rank": 2}, {"value": "b", "rank": 1}]
    tags = read("argilla_kinds.json", kind="sets").answers
    assert tags.values() == [["x", "y"], ["y"]]


def test_coco_has_a_file_for_each_annotator_and_images_without_annotations():
    boxes = read("coco", kind="boxes")
    assert values(boxes) == {
        ("one.png", "ann"): [box(2, 1, 3, 3, "cell")],
        ("one.png", "bob"): [box(2, 1, 3, 3, "cell")],
        ("two.png", "ann"): [],
        ("two.png", "bob"): [box(0, 0, 1, 2, "dirt")],
    }
    cells = read("coco", question="masks:cell")
    assert (pixels(cells, "one.png", "ann") == RING).all()
    filled = RING.copy()
    filled[2, 3] = True
    assert (pixels(cells, "one.png", "bob") == filled).all()
    assert not pixels(cells, "two.png", "bob").any()
    dirt = read("coco", question="masks:dirt")
    assert pixels(dirt, "two.png", "bob").nonzero()[0].tolist() == [0, 1]


def test_coco_of_several_paths_or_of_one():
    paths = [FIXTURES / "coco" / "ann.json", FIXTURES / "coco" / "bob.json"]
    both = examine(paths, kind="boxes").answers
    assert both.to_rows() == read("coco", kind="boxes").answers.to_rows()
    alone = examine(paths[0], kind="boxes")
    assert alone.answers.annotators.tolist() == ["ann"]
    assert "one file, so one annotator, 'ann'" in alone.notes[0]


def test_coco_is_recognised_by_its_beginning(tmp_path):
    images = [{"license": 1, "file_name": f"{n:09}.jpg", "id": n} for n in range(5000)]
    marks = [{"id": n, "image_id": n, "category_id": 1, "bbox": [0, 0, 1, 1]} for n in range(5000)]
    parts = {
        "info": {"year": 2026},
        "licenses": [{"id": 1}],
        "images": images,
        "annotations": marks,
    }
    parts["categories"] = [{"id": 1, "name": "cat"}]
    for order in (parts, dict(reversed(parts.items()))):
        (tmp_path / "ann.json").write_text(json.dumps(order))
        found = examine(tmp_path / "ann.json")
        assert (found.format, found.answers.n_elements) == ("coco", 5000)


def test_marks_without_labels_survive_coco(tmp_path):
    bare = [[{"x": 1, "y": 2, "w": 3, "h": 4}], [], [], []]
    boxes = kind_class("boxes").from_values(*PAIRS, bare)
    write_answers(boxes, tmp_path / "out", format="coco")
    assert values(examine(tmp_path / "out")) == values_of(boxes)


def test_who_did_not_answer_an_item_has_no_answer_after_conll(tmp_path):
    spans = kind_class("spans").from_values(["i", "j", "j"], ["x", "x", "y"], [[], [], []])
    for path in ("folder", "file.conll"):
        write_answers(spans, tmp_path / path, format="conll", texts={"i": "a", "j": "b"})
        assert len(examine(tmp_path / path).answers) == 3


def test_cvat_shapes_of_every_annotator():
    found = read("cvat", kind="boxes")
    assert found.format == "cvat"
    assert values(found) == {
        ("one.png", "ann"): [box(2, 1, 3, 3, "cell")],
        ("one.png", "bob"): [box(3, 0, 2, 4, "cell")],  # turned around its centre
        ("two.png", "ann"): [],
        ("two.png", "bob"): [box(0, 0, 2, 2, "cell")],
    }
    assert "left out: shapes of kind polyline (1)" in found.notes
    points = read("cvat", kind="points")
    assert values(points)["one.png", "ann"][1] == {"x": 3.5, "y": 4, "label": "dot"}
    masks = read("cvat", kind="masks")
    assert (pixels(masks, "one.png", "ann") == RING).all()
    assert pixels(masks, "one.png", "bob").sum() == 9
    tags = read("cvat", kind="sets")
    assert values(tags)["one.png", "ann"] == ["sharp"]
    assert values(tags)["two.png", "bob"] == []


def test_brat_has_a_folder_for_each_annotator():
    found = read("brat")
    assert values(found) == {
        ("a", "ann"): [span(0, 5, "PER"), span(12, 24, "LOC")],
        ("a", "bob"): [span(0, 5, "PER")],
        ("b", "ann"): [],
        ("b", "bob"): [span(0, 4, "LOC")],
    }
    assert "left out: gaps in spans, which are read as their hulls (1)" in found.notes
    assert "left out: relations (1)" in found.notes


def test_conll_files_are_aligned_by_characters():
    found = read("conll")
    assert values(found) == {
        ("1", "ann"): [span(0, 11, "PER"), span(17, 21, "LOC")],
        ("1", "bob"): [span(0, 5, "PER"), span(17, 21, "LOC")],
        ("2", "ann"): [],
        ("2", "bob"): [span(8, 12, "LOC")],
    }
    assert dict(found.texts.rows())["1"] == "Marie Curie left U.S."


def test_conll_with_a_column_for_each_annotator_in_iob1():
    found = read("conll_columns.txt")
    assert found.format == "conll"
    first = [span(0, 2, "ORG"), span(7, 11, "LOC"), span(12, 17, "LOC")]
    assert values(found) == {("1", "1"): first, ("1", "2"): [first[0], first[2]], ("2", "1"): []}
    assert "left out: columns between token and tag (2)" in found.notes


def test_conll_of_another_cut_into_sentences(tmp_path):
    (tmp_path / "ann.conll").write_text("A B-X\n\nb O\nc B-Y\n")
    (tmp_path / "bob.conll").write_text("A B-X\nb I-X\n\nc O\n")
    found = examine(tmp_path)
    assert values(found) == {
        ("1", "ann"): [span(0, 1, "X")],
        ("1", "bob"): [span(0, 1, "X")],
        ("2", "ann"): [span(2, 3, "Y")],
        ("2", "bob"): [],
    }
    assert "left out: ends of spans that reach into the next sentence (1)" in found.notes


def test_mturk_boxes_and_entities(tmp_path):
    answer = {"annotatedResult": {"boundingBoxes": [], "inputImageProperties": {"height": 6}}}
    answer["annotatedResult"]["inputImageProperties"]["width"] = 8
    full = json.loads(json.dumps(answer))
    full["annotatedResult"]["boundingBoxes"] = [
        {"left": 1, "top": 2, "width": 3, "height": 4, "label": "cat"}
    ]
    rows = [("H1", "W1", full), ("H1", "W2", answer)]
    path = tmp_path / "batch.csv"
    write_csv(path, ["HITId", "WorkerId", "Answer.taskAnswers"],
              [(h, w, json.dumps([a])) for h, w, a in rows])  # fmt: skip
    assert values(examine(path)) == {("H1", "W1"): [box(1, 2, 3, 4, "cat")], ("H1", "W2"): []}
    entities = '[{"startOffset": 0, "endOffset": 5, "label": "PER"}]'
    write_csv(path, ["HITId", "WorkerId", "Answer.ner.entities"],
              [("H1", "W1", entities), ("H1", "W2", "[]")])  # fmt: skip
    assert values(examine(path)) == {("H1", "W1"): [span(0, 5, "PER")], ("H1", "W2"): []}


def test_zooniverse_marks_and_empty_lists(tmp_path):
    drawn = [{"x": 1, "y": 2, "width": 3, "height": 4, "tool": 0, "tool_label": "cat"}]
    dots = [{"x": 1, "y": 2, "tool": 1, "tool_label": "eye"}]
    rows = [
        (n, who, json.dumps([{"task": "T0", "value": value}]), "7")
        for n, (who, value) in enumerate((("ann", drawn + dots), ("bob", [])))
    ]
    path = tmp_path / "classifications.csv"
    write_csv(path, ["classification_id", "user_name", "annotations", "subject_ids"], rows)
    found = examine(path, kind="boxes")
    assert values(found) == {("7", "ann"): [box(1, 2, 3, 4, "cat")], ("7", "bob"): []}
    points = examine(path, question="T0 (points)")
    assert values(points) == {("7", "ann"): [{"x": 1, "y": 2, "label": "eye"}], ("7", "bob"): []}


def write_csv(path, header, rows):
    import csv

    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


FILES = [path for path in sorted(FIXTURES.rglob("*")) if path.is_file() and path.suffix != ".ann"]


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.parent.parent.name != "brat"],
    ids=lambda path: path.relative_to(FIXTURES).as_posix(),
)
def test_a_file_is_recognised_by_its_content_as_one_tool(path, tmp_path):
    shutil.copy(path, tmp_path / "x.bin")
    head = head_of(open_source(tmp_path / "x.bin"))
    known = recognised_by(head)
    place = path.relative_to(FIXTURES).parts[0]
    name = next(n for n in TOOLS if place.replace("_", "-").startswith(n))
    assert tool_of(head) == name
    assert known == [name]


@pytest.mark.parametrize("folder", ["coco", "cvat", "brat", "conll"])
def test_a_zip_is_read_as_the_folder_it_would_unpack_to(folder, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "all"), "zip", FIXTURES / folder)
    kind = "boxes" if folder in ("coco", "cvat") else None
    both = examine(packed, kind=kind).answers, read(folder, kind=kind).answers
    assert both[0].to_rows() == both[1].to_rows()


# Shapes


@given(st.integers(1, 7), st.integers(1, 7), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_pixels_survive_every_coding(height, width, random):
    inside = np.array([[random.random() < 0.5 for _ in range(width)] for _ in range(height)])
    size = height, width
    shape = shapes.from_pixels(inside, size)
    runs = shapes.runs_of(shape, size)
    assert sum(runs) == height * width
    assert shapes.from_runs(runs, size).tolist() == shape.tolist()
    by_row = shapes.runs_of(shapes.from_pixels(inside.T, (width, height)), (width, height))
    assert shapes.from_rows(by_row, (0, 0, width, height), size).tolist() == shape.tolist()


def test_a_polygon_covers_the_pixels_whose_centres_are_inside():
    rng = np.random.default_rng(0)
    for _ in range(20):
        corners = rng.uniform(-2, 14, size=(5, 2))
        flat = np.zeros(144, dtype=bool)
        for start, stop in shapes.from_polygon(corners, (12, 12)):
            flat[start:stop] = True
        found = flat.reshape(12, 12).T
        for row in range(12):
            for column in range(12):
                assert found[row, column] == inside_polygon(column + 0.5, row + 0.5, corners)


def inside_polygon(x, y, corners):
    """The even-odd rule with a ray to the right."""
    inside = False
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            inside = not inside
    return inside


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_codings_are_those_of_pycocotools():
    mask = pytest.importorskip("pycocotools.mask")
    coded = mask.encode(np.asfortranarray(RING.astype(np.uint8)))
    ours = shapes.from_packed_counts(coded["counts"].decode(), (6, 8))
    assert ours.tolist() == shapes.from_pixels(RING, (6, 8)).tolist()
    runs = {"size": [6, 8], "counts": shapes.runs_of(ours, (6, 8))}
    assert (mask.decode(mask.frPyObjects(runs, 6, 8)).astype(bool) == RING).all()


def test_the_brush_is_that_of_label_studio():
    brush = pytest.importorskip("label_studio_sdk.converter.brush")
    picture = np.zeros((6, 8, 4), dtype=np.uint8)
    picture[:, :, 3] = RING * 255
    coded = brush.encode_rle(picture.ravel())
    ours = shapes.from_brush(coded, (6, 8))
    assert ours.tolist() == shapes.from_pixels(RING, (6, 8)).tolist()


def test_the_mask_is_that_of_cvat():
    masks = pytest.importorskip("cvat_sdk.masks")
    *runs, left, top, right, bottom = map(int, masks.encode_mask(RING))
    ours = shapes.from_rows(runs, (left, top, right - left + 1, bottom - top + 1), (6, 8))
    assert ours.tolist() == shapes.from_pixels(RING, (6, 8)).tolist()


# Round trips


SPANS = [[span(0, 5, "PER"), span(6, 8, "LOC")], [], [span(0, 4, "LOC")], []]
BOXES = [[box(1, 2, 3.5, 4, "a")], [], [], [box(0, 0, 10, 10, "b")]]
PAIRS = ["i 1", "i 1", "j", "j"], ["3", "bob@example.org", "3", "bob@example.org"]
TEXTS = {"i 1": "Marie is here", "j": "Army of"}
SIZES = {"i 1": (20, 30), "j": (20, 30)}


def test_spans_survive_conll(tmp_path):
    spans = kind_class("spans").from_values(*PAIRS, SPANS)
    assert write_answers(spans, tmp_path / "out", format="conll", texts=TEXTS) == []
    assert values(examine(tmp_path / "out")) == values_of(spans)
    lost = write_answers(spans, tmp_path / "out.conll", format="conll", texts=TEXTS)
    assert lost == ["the names of 2 annotators are not written: columns have no names"]
    again = examine(tmp_path / "out.conll")
    assert again.answers.values() == spans.values()


def values_of(answers):
    pairs = zip(answers.to_rows(), answers.values(), strict=True)
    return {(row["item"], row["annotator"]): value for row, value in pairs}


@pytest.mark.parametrize(
    ("kind", "format", "rows"),
    [
        ("spans", "label-studio", SPANS),
        ("boxes", "label-studio", BOXES),
        ("boxes", "coco", BOXES),
        ("sets", "label-studio", [["a", "b"], ["a"], ["b"], []]),
        ("texts", "label-studio", ["so be it", "it is", "", "no"]),
    ],
)
def test_answers_survive_a_tools_format_with_empty_ones(kind, format, rows, tmp_path):  # noqa: A002
    answers = kind_class(kind).from_values(*PAIRS, rows)
    path = tmp_path / ("out" if format == "coco" else "out.json")
    write_answers(answers, path, format=format, texts=TEXTS, sizes=SIZES)
    assert values(examine(path, kind=kind)) == values_of(answers)


def test_points_and_masks_survive(tmp_path):
    points = kind_class("points").from_values(
        *PAIRS, [[{"x": 3, "y": 4, "label": "e"}], [], [], []]
    )
    write_answers(points, tmp_path / "p.json", format="label-studio", sizes=SIZES)
    assert values(examine(tmp_path / "p.json")) == values_of(points)
    rows = [{"size": [2, 3], "counts": c} for c in ([1, 2, 3], [6], [0, 6], [6])]
    masks = kind_class("masks").from_values(*PAIRS, rows)
    write_answers(masks, tmp_path / "masks", format="coco")
    assert values(examine(tmp_path / "masks", kind="masks")) == values_of(masks)


def test_a_consensus_is_written_with_its_confidence(tmp_path):
    rows = [[box(1, 1, 8, 8, "a")], [box(1, 1, 8, 8, "a")], [], []]
    result = aggregate(kind_class("boxes").from_values(*PAIRS, rows))
    write_answers(result, tmp_path / "c.json", format="coco", sizes=SIZES)
    written = json.loads((tmp_path / "c.json").read_text())
    assert [one["file_name"] for one in written["images"]] == ["i 1", "j"]
    assert [one["score"] for one in written["annotations"]] == result.confidence.tolist()
    write_answers(result, tmp_path / "p.json", format="label-studio", sizes=SIZES)
    first, second = json.loads((tmp_path / "p.json").read_text())
    assert first["predictions"][0]["score"] == pytest.approx(float(result.confidence[0]))
    assert first["predictions"][0]["result"][0]["value"]["width"] == pytest.approx(800 / 30)
    assert second["predictions"][0]["result"] == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_pycocotools_reads_what_is_written(tmp_path):
    coco = pytest.importorskip("pycocotools.coco")
    rows = [{"size": [6, 8], "counts": shapes.runs_of(shapes.from_pixels(RING, (6, 8)), (6, 8))}]
    masks = kind_class("masks").from_values(["i"], ["x"], rows)
    write_answers(masks, tmp_path / "m.json", format="coco")
    data = coco.COCO(str(tmp_path / "m.json"))
    (one,) = data.loadAnns(data.getAnnIds())
    assert (data.annToMask(one).astype(bool) == RING).all()


@pytest.mark.parametrize(
    ("kind", "format", "path", "message"),
    [
        ("boxes", "conll", "x.conll", "conll holds spans, not boxes"),
        ("boxes", "nothing", "x", "answers are not written as 'nothing'"),
        ("boxes", "coco", "x.json", "COCO has no annotators, and there are 2"),
        ("boxes", "label-studio", "x.json", "image 'i 1' has no size"),
        ("boxes", "label-studio", "x", "is one file for all annotators"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(kind, format, path, message, tmp_path):  # noqa: A002
    answers = kind_class(kind).from_values(*PAIRS, BOXES)
    with pytest.raises((DataError, OptionError), match=message):
        write_answers(answers, tmp_path / path, format=format)
    assert not (tmp_path / path).exists()


def test_names_of_annotators_never_leave_the_folder(tmp_path):
    boxes = kind_class("boxes").from_values(["i", "i"], ["../../evil", "."], [[], []])
    write_answers(boxes, tmp_path / "out", format="coco")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    assert {p.suffix for p in (tmp_path / "out").iterdir() if not p.name.startswith(".")} == {
        ".json"
    }


# Hostile files

LAUGHS = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;">]>
<annotations><image id="0" name="&b;" width="8" height="6"></image></annotations>"""
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<annotations><image id="0" name="&a;" width="8" height="6"></image></annotations>"""


@pytest.mark.parametrize("body", [LAUGHS, OUTSIDE])
def test_xml_that_defines_entities_is_refused(body, tmp_path):
    (tmp_path / "a.xml").write_text(body)
    with pytest.raises(DataError, match="defines entities"):
        examine(tmp_path / "a.xml", format="cvat")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ('<box label="a" xtl="1" ytl="1" xbr="90" ybr="4"/>', "out of its image of 8 × 6"),
        ('<box label="a" xtl="5" ytl="1" xbr="2" ybr="4"/>', "w and h are at least 0"),
        ('<box label="a" xtl="nan" ytl="1" xbr="2" ybr="4"/>', "not a finite number"),
        ('<box label="a" ytl="1" xbr="2" ybr="4"/>', "a box without xtl"),
        ('<mask label="a" rle="1, 2" left="0" top="0" width="2" height="2"/>', "add up to 3"),
        (
            '<mask label="a" rle="9e9" left="0" top="0" width="99999999" height="99999999"/>',
            "at most",
        ),
        ('<mask label="a" rle="0, 4" left="7" top="0" width="2" height="2"/>', "out of its image"),
        ('<polygon label="a" points="1,2;x,3"/>', "not x,y;x,y"),
    ],
)
def test_wrong_shapes_of_cvat_are_refused_with_image_and_shape(shape, message, tmp_path):
    body = f'<annotations><image id="0" name="n" width="8" height="6">{shape}</image></annotations>'
    (tmp_path / "a.xml").write_text(body)
    with pytest.raises(DataError, match=message) as problem:
        examine(tmp_path / "a.xml", format="cvat")
    assert "image 'n': shape 1" in str(problem.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bbox": [1, 1, 99, 2]}, "out of its image"),
        ({"bbox": [1, 1, 2]}, "a bbox of 3 numbers"),
        ({"image_id": 99}, "no image has the id 99"),
        ({"segmentation": {"size": [6, 8], "counts": [1, 2]}}, "add up to 3"),
        ({"segmentation": {"size": [6, 8], "counts": [-1, 49]}}, "add up to 48"),
        ({"segmentation": {"size": [9, 9], "counts": [81]}}, "on an image of size"),
        ({"segmentation": {"size": [6, 8], "counts": "a\u00ff"}}, "no compressed run lengths"),
        ({"segmentation": {"size": [6, 8], "counts": "PPPPPPPPPPPPPPPPPPPPP"}}, "run lengths"),
        ({"segmentation": [[1, 2, 3]]}, "a polygon is a list"),
    ],
)
def test_wrong_annotations_of_coco_are_refused_with_their_number(changed, message, tmp_path):
    whole = json.loads((FIXTURES / "coco" / "ann.json").read_text())
    whole["annotations"][0] |= changed
    (tmp_path / "a.json").write_text(json.dumps(whole))
    with pytest.raises(DataError, match=message) as problem:
        examine(tmp_path / "a.json", format="coco")
    assert "annotation 1" in str(problem.value)


def test_an_image_of_absurd_size_is_refused(tmp_path):
    whole = json.loads((FIXTURES / "coco" / "ann.json").read_text())
    whole["images"][0] |= {"height": 10**9, "width": 10**9}
    (tmp_path / "a.json").write_text(json.dumps(whole))
    with pytest.raises(DataError, match="at most"):
        examine(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"start": 3, "end": 99}, "the text has 16 characters"),
        ({"start": 5, "end": 5}, "0 ≤ start < end"),
        ({"start": -1, "end": 5}, "0 ≤ start < end"),
        ({"start": "a", "end": "b"}, "no numbers"),
    ],
)
def test_spans_out_of_their_text_are_refused_with_the_task(value, message, tmp_path):
    tasks = json.loads((FIXTURES / "label_studio_spans.json").read_text())
    tasks[0]["annotations"][0]["result"][0]["value"] = value | {"labels": ["PER"]}
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    with pytest.raises(DataError, match=message) as problem:
        examine(tmp_path / "a.json")
    assert "task 1" in str(problem.value)


@pytest.mark.parametrize("cut", [0, 3, 8, 20])
def test_a_brush_that_is_cut_off_or_wrong_is_refused(cut, tmp_path):
    tasks = json.loads((FIXTURES / "label_studio_images.json").read_text())
    brush = tasks[0]["annotations"][0]["result"][3]
    brush["value"]["rle"] = brush["value"]["rle"][:cut]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    with pytest.raises(DataError, match=r"task 1: .*(cut off|values)"):
        examine(tmp_path / "a.json", kind="masks")


def test_a_zip_that_grows_without_bound_is_refused(tmp_path):
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.xml", b"<annotations><image/>" + b" " * 2**27)
    (tmp_path / "bomb.zip").write_bytes(body.getvalue())
    with pytest.raises(DataError, match="unpacks to more than"):
        examine(tmp_path / "bomb.zip")


def test_files_that_a_link_leads_out_to_are_not_read(tmp_path):
    (tmp_path / "secret").mkdir()
    shutil.copy(FIXTURES / "coco" / "bob.json", tmp_path / "secret" / "eve.json")
    (tmp_path / "in").mkdir()
    shutil.copy(FIXTURES / "coco" / "ann.json", tmp_path / "in")
    (tmp_path / "in" / "eve.json").symlink_to(tmp_path / "secret" / "eve.json")
    assert examine(tmp_path / "in", kind="boxes").answers.annotators.tolist() == ["ann"]


def test_conll_with_different_texts_is_refused_by_name(tmp_path):
    (tmp_path / "ann.conll").write_text("# sent_id = s\nA B-X\nb O\n")
    (tmp_path / "bob.conll").write_text("# sent_id = s\nA B-X\nc O\n")
    with pytest.raises(DataError, match="sentence 's' has another text elsewhere"):
        examine(tmp_path)
    (tmp_path / "bob.conll").write_text("A B-X\nc\n")
    with pytest.raises(DataError, match="line 2: 1 columns, but the first line has 2"):
        examine(tmp_path, format="conll")


def test_brat_offsets_out_of_the_text_are_refused_with_their_line(tmp_path):
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "a.txt").write_text("short")
    (tmp_path / "ann" / "a.ann").write_text("T1\tPER 0 99\tshort\n")
    with pytest.raises(DataError, match=r"a.ann: line 1: .* the text has 5 characters"):
        examine(tmp_path)


def test_commands_read_folders_of_a_tool_and_write_its_format(tmp_path):
    done = run("aggregate", FIXTURES / "brat", "-s", "medoid")
    assert done.returncode == 0
    assert done.stdout.startswith(b"item,start,end,label,confidence")
    out = tmp_path / "out"
    done = run("convert", FIXTURES / "coco", out, "--kind", "boxes", "--to", "coco")
    assert done.returncode == 0
    assert values(examine(out)) == values(read("coco", kind="boxes"))
