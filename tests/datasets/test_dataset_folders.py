"""Folders of Hugging Face `datasets`: what `save_to_disk` writes, read without that library."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dissensus import DataError, read
from dissensus.formats import examine

from ..support import rows_of, run

TEXT = {"dtype": "string", "_type": "Value"}
MOOD = {"names": ["neg", "pos"], "_type": "ClassLabel"}
ROWS = [("a", "x", "pos"), ("a", "y", "neg"), ("b", "x", "neg")]


def list_of(feature):
    return {"feature": feature, "_type": "List"}


LISTS = {"id": TEXT, "text": TEXT, "annotators": list_of(TEXT), "labels": list_of(MOOD)}
STRUCTURES = {"id": TEXT, "annotations": list_of({"annotator": TEXT, "label": MOOD})}
PARALLEL = {
    "id": ["a", "b"],
    "text": ["nice", "bad"],
    "annotators": [["x", "y"], ["x"]],
    "labels": [[1, 0], [0]],
}
NESTED = {
    "id": ["a", "b"],
    "annotations": [
        [{"annotator": "x", "label": 1}, {"annotator": "y", "label": 0}],
        [{"annotator": "x", "label": 0}],
    ],
}


def save(folder, columns, features, shards=1):
    """Write a split as `Dataset.save_to_disk` does: Arrow streams and two JSON files."""
    folder.mkdir(parents=True)
    table = pa.table(columns)
    files = [f"data-{shard:05}-of-{shards:05}.arrow" for shard in range(shards)]
    for shard, name in enumerate(files):
        part = table.slice(shard * len(table) // shards, -(-len(table) // shards))
        with (
            pa.OSFile(str(folder / name), "wb") as sink,
            pa.ipc.new_stream(sink, part.schema) as to,
        ):
            to.write_table(part)
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    state = {"_data_files": [{"filename": name} for name in files], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    return folder


def rows_in(path, **options):
    return sorted(rows_of(read(path, **options)))


@pytest.mark.parametrize("shards", [1, 2])
def test_parallel_lists_have_the_names_of_their_classes(tmp_path, shards):
    columns = PARALLEL | {"gold": [1, -1]}
    found = examine(save(tmp_path / "set", columns, LISTS | {"gold": MOOD}, shards))
    assert (found.format, found.question) == ("huggingface", "labels")
    assert sorted(rows_of(found.annotations)) == ROWS
    assert found.gold == {"a": "pos"}  # -1 is an unknown class
    assert dict(found.texts.iter_rows()) == {"a": "nice", "b": "bad"}


def test_classes_that_nobody_used_are_declared(tmp_path):
    three = {"names": ["pos", "neg", "other"], "_type": "ClassLabel"}
    annotations = read(save(tmp_path / "set", PARALLEL, LISTS | {"labels": list_of(three)}))
    assert annotations.classes.tolist() == ["pos", "neg", "other"]


@pytest.mark.parametrize(
    ("columns", "features"),
    [
        (NESTED, STRUCTURES),
        (NESTED, {"id": TEXT, "annotations": [{"annotator": TEXT, "label": MOOD}]}),
        (
            {
                "id": ["a", "b"],
                "annotations": [
                    {"annotator": ["x", "y"], "label": [1, 0]},
                    {"annotator": ["x"], "label": [0]},
                ],
            },
            {
                "id": TEXT,
                "annotations": {
                    "feature": {"annotator": TEXT, "label": MOOD},
                    "length": -1,
                    "_type": "Sequence",
                },
            },
        ),
    ],
    ids=["list of structures", "as older versions declare it", "structure of lists"],
)
def test_structures_with_annotators_are_parallel_lists(tmp_path, columns, features):
    found = examine(save(tmp_path / "set", columns, features))
    assert (found.format, found.question) == ("huggingface", "label")
    assert sorted(rows_of(found.annotations)) == ROWS
    assert found.annotations.classes.tolist() == ["neg", "pos"]


def test_structures_in_json_are_read_too(tmp_path):
    records = [
        {"uid": "a", "annotations": [{"annotator": "x", "label": "pos", "text": "why"}]},
        {"uid": "b", "annotations": []},
    ]
    (tmp_path / "set.json").write_text(json.dumps(records))
    found = examine(tmp_path / "set.json", question="label")
    assert rows_of(found.annotations) == [("a", "x", "pos")]
    assert "1 item has no label: b" in found.notes


def test_splits_are_a_column_and_their_items_are_kept_apart(tmp_path):
    for split in ("train", "test"):
        save(tmp_path / "set" / split, NESTED, STRUCTURES)
    (tmp_path / "set" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    annotations = read(tmp_path / "set")
    names = [(f"{split}/{item}", *rest) for split in ("test", "train") for item, *rest in ROWS]
    assert sorted(rows_of(annotations)) == names
    assert set(annotations.columns["split"].tolist()) == {"train", "test"}


def test_a_long_table_is_recognised_in_a_folder(tmp_path):
    columns = {"item": ["a", "a", "b"], "annotator_id": ["x", "y", "x"], "answer": [1, 0, 0]}
    features = {"item": TEXT, "annotator_id": TEXT, "answer": MOOD}
    assert rows_in(save(tmp_path / "set", columns, features)) == ROWS


def test_columns_can_be_named_in_a_folder(tmp_path):
    columns = {"post": ["a", "a", "b"], "who": ["x", "y", "x"], "mood": [1, 0, 0]}
    folder = save(tmp_path / "set", columns, {"post": TEXT, "who": TEXT, "mood": MOOD})
    roles = {"item": "post", "annotator": "who", "label": "mood"}
    assert rows_in(folder, columns=roles) == ROWS


def test_the_flat_records_of_argilla_are_recognised_in_a_folder(tmp_path):
    columns = {
        "id": ["a", "b"],
        "text": ["nice", "bad"],
        "mood.responses": [["pos", "neg"], ["neg"]],
        "mood.responses.users": [["x", "y"], ["x"]],
        "mood.responses.status": [["submitted", "submitted"], ["submitted"]],
    }
    found = examine(save(tmp_path / "set", columns, {}))
    assert found.format == "argilla"
    assert sorted(rows_of(found.annotations)) == ROWS


def test_bytes_of_images_are_not_read(tmp_path):
    columns = PARALLEL | {"image": [{"bytes": b"\xff" * 1000, "path": None}] * 2}
    assert rows_in(save(tmp_path / "set", columns, LISTS)) == ROWS


def test_an_arrow_stream_is_read_by_itself(tmp_path):
    folder = save(tmp_path / "set", PARALLEL, LISTS)
    numbers = [(item, by, "1" if label == "pos" else "0") for item, by, label in ROWS]
    assert rows_in(folder / "data-00000-of-00001.arrow") == numbers


def test_parquet_of_the_library_has_the_names_of_its_classes(tmp_path):
    info = json.dumps({"info": {"features": LISTS}})
    table = pa.table(PARALLEL).replace_schema_metadata({"huggingface": info})
    pq.write_table(table, tmp_path / "set.parquet")
    assert rows_in(tmp_path / "set.parquet") == ROWS
    (tmp_path / "hub" / "data").mkdir(parents=True)
    (tmp_path / "hub" / "README.md").write_text("---\nlicense: mit\n---\n")
    for split in ("test", "train"):
        pq.write_table(table, tmp_path / "hub" / "data" / f"{split}-00000-of-00001.parquet")
    assert rows_in(tmp_path / "hub") == [
        (f"{split}/{item}", *rest) for split in ("test", "train") for item, *rest in ROWS
    ]


def damage(folder, name, content):
    path = folder / name
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "state.json",
            {"_data_files": [{"filename": "../secret.arrow"}]},
            "not the name of a file",
        ),
        ("state.json", {"_data_files": [{"filename": "/etc/passwd"}]}, "not the name of a file"),
        ("state.json", {"_data_files": [{"filename": "a\nb"}]}, "is missing"),
        ("state.json", {"_data_files": [{"filename": 7}]}, "not the name of a file"),
        ("state.json", {"_data_files": [{"filename": "1" * 5000}]}, "not the name of a file"),
        ("state.json", {"_data_files": []}, "no list '_data_files'"),
        ("state.json", [], "should be an object"),
        ("state.json", b"{", "not JSON"),
        ("dataset_info.json", b"", "empty"),
        (
            "dataset_info.json",
            {"features": {"labels": list_of({"names": ["neg"], "_type": "ClassLabel"})}},
            "features do not fit",
        ),
        ("data-00000-of-00001.arrow", b"\xff\xff\xff\xff\x10", "damaged arrow"),
        ("data-00000-of-00001.arrow", b"PAR1 and nothing", "damaged parquet"),
        ("data-00000-of-00001.arrow", b"item,annotator,label\n", "not Parquet or Arrow"),
        ("data-00000-of-00001.arrow", None, "is missing; copy the whole folder"),
    ],
)
def test_a_damaged_folder_ends_in_one_line(tmp_path, name, content, message):
    folder = save(tmp_path / "set", PARALLEL, LISTS)
    damage(folder, name, content)
    done = run("aggregate", "set", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert message in done.stderr.decode()


def test_a_file_that_was_cut_off_is_an_error_wherever_it_was_cut(tmp_path):
    folder = save(tmp_path / "set", PARALLEL, LISTS)
    file = folder / "data-00000-of-00001.arrow"
    whole = file.read_bytes()
    for size in range(0, len(whole) - 16, 37):  # its end mark may be absent
        file.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"damaged arrow|empty|set"):
            read(folder)


def test_features_may_be_odd(tmp_path):
    odd = {"labels": {"_type": "List", "feature": 3}, "annotators": None, "text": [], "id": "x"}
    numbers = [(item, by, "1" if label == "pos" else "0") for item, by, label in ROWS]
    for number, features in enumerate(
        ({}, None, odd, [1], {"labels": list_of({"_type": "ClassLabel"})})
    ):
        assert rows_in(save(tmp_path / str(number), PARALLEL, features)) == numbers


def test_the_library_itself_writes_what_is_read(tmp_path):
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    mood, text = datasets.ClassLabel(names=["neg", "pos"]), datasets.Value("string")
    datasets.disable_progress_bars()
    lists = datasets.Features(
        {k: datasets.Sequence(text) for k in ("annotators",)}
        | {"id": text, "text": text, "labels": datasets.Sequence(mood)}
    )
    nested = datasets.Features({"id": text, "annotations": [{"annotator": text, "label": mood}]})
    one = datasets.Dataset.from_dict(PARALLEL, features=lists)
    one.save_to_disk(tmp_path / "one")
    two = datasets.Dataset.from_dict(NESTED, features=nested)
    datasets.DatasetDict({"train": two, "test": two}).save_to_disk(tmp_path / "two")
    one.to_parquet(tmp_path / "one.parquet")
    assert rows_in(tmp_path / "one") == rows_in(tmp_path / "one.parquet") == ROWS
    assert rows_in(tmp_path / "two") == [
        (f"{split}/{item}", *rest) for split in ("test", "train") for item, *rest in ROWS
    ]
