"""Data sets that are published: a folder with a card, and pseudonyms for annotators."""

import json
import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import Annotations, DataError, OptionError, OutputError, aggregate, read, write
from dissensus.base.files import locked
from dissensus.formats import Reading, examine
from dissensus.formats.pseudonyms import read_key, write_key
from dissensus.formats.tools.huggingface_folders import _yaml
from dissensus.formats.writers_init import Card, losses, pseudonymise

from ..support import relation, rows_of, run

HEADER = "item,annotator,label,reviewer,split\n"
ROWS = (
    "a,ann@x.org,cat,bob,train\na,bob,dog,ann@x.org,train\n"
    "b,ann@x.org,cat,zoe,dev/1\nb,bob,cat,,dev/1\n"
)
CARRIED = ("--columns", "reviewer=reviewer,split=split")
NAMES = ("ann@x.org", "bob", "zoe")


@pytest.fixture
def table(tmp_path):
    (tmp_path / "in.csv").write_text(HEADER + ROWS)
    return tmp_path


def convert(folder, *arguments, code=0):
    done = run("convert", *arguments, cwd=folder)
    assert done.returncode == code, done.stderr.decode()
    return done.stderr.decode()


def publish(folder, *more, code=0):
    return convert(
        *(folder, "in.csv", "out", "--to", "huggingface-folder", *CARRIED, *more), code=code
    )


def front_matter(folder):
    """Return the YAML of a card, which is between its first two lines `---`."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    _, head, body = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(head), body


def test_the_card_declares_features_splits_and_license(table):
    publish(table, "--license", "cc-by-4.0")
    head, body = front_matter(table / "out")
    assert head["license"] == "cc-by-4.0"
    features = {one.pop("name"): one for one in head["dataset_info"]["features"]}
    assert features["item"] == {"dtype": "string"}
    assert features["annotators"] == {"list": "string"}
    assert features["labels"] == {"list": {"class_label": {"names": {"0": "cat", "1": "dog"}}}}
    splits = head["dataset_info"]["splits"]
    assert [(one["name"], one["num_examples"]) for one in splits] == [("train", 1), ("dev_1", 1)]
    files = head["configs"][0]["data_files"]
    assert [one["path"] for one in files] == ["data/train-*", "data/dev_1-*"]
    assert "4 labels by 2 annotators on 2 items." in body
    assert "Krippendorff's alpha (nominal): 0.000" in body
    assert "| cat | 3 |" in body
    assert "pseudonyms" not in body
    assert sorted(path.name for path in (table / "out" / "data").iterdir()) == [
        "dev_1-00000-of-00001.parquet",
        "train-00000-of-00001.parquet",
    ]


def test_a_license_is_asked_for_and_never_made_up(table):
    message = publish(table)
    assert "the card names no license; --license" in message
    assert "2 annotators are e-mail" not in message
    assert "1 annotators are e-mail addresses; --pseudonyms KEY replaces names" in message
    assert "license" not in (table / "out" / "README.md").read_text("utf-8")
    message = convert(table, "in.csv", "x.csv", "--license", "mit", code=2)
    assert "--license is for the card" in message


@pytest.mark.parametrize("kind", ["single", "ordinal", "sets"])
def test_labels_gold_and_texts_go_there_and_back(kind, tmp_path):
    labels = {
        "single": ["x", "[1]", "x"],
        "ordinal": ["1", "3", "1"],
        "sets": ["p|q", "(none)", "q"],
    }
    annotations = Annotations.from_columns("aab", "vwv", labels[kind], time=_times(3))
    gold = {"a": labels[kind][0]}
    texts = pl.DataFrame({"item": ["a", "b"], "text": ["nice\n|", "*bad*"]})
    write(
        Reading(annotations, "x", kind=kind, gold=gold, texts=texts),
        tmp_path / "out",
        format="huggingface-folder",
    )
    back = examine(tmp_path / "out", kind="single", scale="nominal")
    assert rows_of(back.annotations) == rows_of(annotations)
    assert back.annotations.columns["time"].tolist() == annotations.columns["time"].tolist()
    assert dict(back.texts.iter_rows()) == {"a": "nice\n|", "b": "*bad*"}
    assert kind == "sets" or back.gold == gold


def _times(count):
    return np.array(["2024-05-01T12:00:00"] * count, dtype="datetime64[us]")


def test_classes_that_nobody_used_are_written(tmp_path):
    annotations = relation([("a", "x", "pos")], classes=["neg", "pos", "other"])
    assert losses(annotations, tmp_path / "out", "huggingface-folder") == []
    write(annotations, tmp_path / "out", format="huggingface-folder")
    assert read(tmp_path / "out").classes.tolist() == ["neg", "pos", "other"]


def test_a_folder_is_replaced_as_a_whole_and_only_if_it_is_ours(table):
    publish(table)
    assert "replaced" not in publish(table)  # nothing would change
    (table / "in.csv").write_text(HEADER + ROWS.replace("dev/1", "train"))
    publish(table, code=2)  # a carried column is read as a question: it could be anything
    assert "replaced: out/" in publish(table, "--force")
    assert [path.name for path in (table / "out" / "data").iterdir()] == [
        "train-00000-of-00001.parquet"
    ]
    (table / "out" / "notes.txt").write_text("mine")
    assert "holds something else, 'notes.txt'" in publish(table, "--force", code=2)
    assert (table / "out" / "notes.txt").read_text() == "mine"


def test_our_own_card_is_replaced_and_an_edited_one_is_not(tmp_path):
    to = ("--to", "huggingface-folder")
    (tmp_path / "in.csv").write_text("item,annotator,label\na,x,p\na,y,q\n")
    convert(tmp_path, "in.csv", "out", *to)
    (tmp_path / "in.csv").write_text("item,annotator,label\na,x,p\na,y,q\nb,x,p\n")
    assert "replaced: out/" in convert(tmp_path, "in.csv", "out", *to)
    card = tmp_path / "out" / "README.md"
    card.write_text(card.read_text("utf-8") + "\nWritten by hand.\n", "utf-8")
    assert "not written by this command" in convert(tmp_path, "in.csv", "out", *to, code=2)
    assert "Written by hand." in card.read_text("utf-8")


@settings(max_examples=50)
@given(
    st.dictionaries(st.text(), st.one_of(st.text(), st.lists(st.text(), min_size=1)), min_size=1)
)
def test_any_text_is_valid_in_the_front_matter(values):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load("\n".join(_yaml({"x": values}))) == {"x": values}


def test_names_in_a_card_are_no_markup(tmp_path):
    awkward = "<script>alert(1)</script>|\n# *x* [a](javascript:b) `c`\x1b[31m"
    write(
        relation([("a", "x", awkward), ("b", "x", "y")]),
        tmp_path / "out",
        format="huggingface-folder",
    )
    body = (tmp_path / "out" / "README.md").read_text("utf-8").split("---\n", 2)[2]
    line = next(one for one in body.splitlines() if "script" in one)
    assert line.startswith("| &#60;script&#62;")
    assert line.count("|") == 3
    assert not set("<>*[]`\x1b") & set(line)
    assert read(tmp_path / "out").classes.tolist() == [awkward, "y"]


def test_splits_never_lead_out_of_the_folder(tmp_path):
    splits = ["../../etc", "/etc", "a b", "a/b", "", "..", "x" * 5000]
    items = [str(number) for number in range(len(splits))]
    annotations = Annotations.from_columns(items, ["x"] * 7, ["y"] * 7, split=splits)
    write(annotations, tmp_path / "out", format="huggingface-folder")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == {"out", "data"}
    assert read(tmp_path / "out").n_items == 7
    assert "splits are renamed, such as '../../etc' to 'etc'" in " ".join(
        losses(annotations, tmp_path / "new", "huggingface-folder")
    )


def test_a_result_is_published_with_its_labels(tmp_path):
    annotations = relation([("a", "x", "p"), ("a", "y", "p"), ("b", "x", "q")])
    write(aggregate(annotations, "majority"), tmp_path / "out", format="huggingface-folder")
    frame = pl.read_parquet(tmp_path / "out" / "data" / "*.parquet")
    assert frame["label"].to_list() == [0, 1]
    assert frame.columns[-3:] == ["label", "confidence", "soft_label"]


def test_the_library_loads_the_folder(table):
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    datasets.disable_progress_bars()
    publish(table, "--pseudonyms", "key.json")
    loaded = datasets.load_dataset(str(table / "out"), cache_dir=str(table / "cache"))
    assert set(loaded) == {"train", "dev_1"}
    assert loaded["train"].features["labels"].feature.names == ["cat", "dog"]
    assert sorted(loaded["train"][0]["labels"]) == [0, 1]


def test_pseudonyms_replace_every_name_in_all_that_is_written(table):
    publish(table, "--pseudonyms", "key.json")
    key = json.loads((table / "key.json").read_text())
    assert sorted(key) == sorted(NAMES)
    assert len(set(key.values())) == 3
    for path in (path for path in (table / "out").rglob("*") if path.is_file()):
        body = path.read_bytes()
        assert not any(name.encode() in body for name in NAMES), path
    assert "Their names are pseudonyms." in (table / "out" / "README.md").read_text()
    frame = pl.concat(
        pl.read_parquet(file) for file in sorted((table / "out" / "data").iterdir())[::-1]
    )
    reviewers = dict(
        zip(frame["annotators"].to_list()[0], frame["reviewer"].to_list()[0], strict=True)
    )
    assert reviewers == {key["ann@x.org"]: key["bob"], key["bob"]: key["ann@x.org"]}


def test_labels_are_the_same_under_pseudonyms(table):
    convert(table, "in.csv", "public/out.csv", "--pseudonyms", "key.json")
    key = read_key(table / "key.json")
    there, back = read(table / "in.csv"), read(table / "public" / "out.csv")
    renamed = sorted((item, key[who], label) for item, who, label in rows_of(there))
    assert sorted(rows_of(back)) == renamed
    assert back.annotators.tolist() == sorted(back.annotators.tolist())  # not in the order of names


def test_a_person_keeps_their_pseudonym(table):
    convert(table, "in.csv", "public/1.csv", "--pseudonyms", "key.json")
    first = read_key(table / "key.json")
    (table / "more.csv").write_text("item,annotator,label\nc,bob,cat\nc,eve,dog\n")
    convert(table, "more.csv", "public/2.csv", "--pseudonyms", "key.json")
    second = read_key(table / "key.json")
    assert second.items() >= first.items()
    assert second.keys() == {"ann@x.org", "bob", "eve"}
    assert set(read(table / "public" / "2.csv").annotators.tolist()) == {
        second["bob"],
        second["eve"],
    }


def test_two_conversions_at_once_extend_the_same_key(table):
    """Both begin before the other has ended: they wait for their input."""
    starting = (sys.executable, "-m", "dissensus", "convert", "-")
    names = {"1": range(60), "2": range(30, 90)}
    running = {
        number: subprocess.Popen(
            [*starting, f"public/{number}.csv", "--pseudonyms", "key.json"],
            cwd=table,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in names
    }
    time.sleep(2)
    for number, process in running.items():
        rows = "".join(f"a,person {one},x\nb,person {one},y\n" for one in names[number])
        process.stdin.write(f"item,annotator,label\n{rows}".encode())
        process.stdin.close()
    for process in running.values():
        assert process.wait(60) == 0, process.stderr.read().decode()
        process.stderr.close()
    key = read_key(table / "key.json")
    assert key.keys() == {f"person {one}" for one in range(90)}
    for number, people in names.items():
        known = {key[f"person {one}"] for one in people}
        assert set(read(table / "public" / f"{number}.csv").annotators.tolist()) == known
    assert sorted(path.name for path in table.iterdir()) == ["in.csv", "key.json", "public"]


def test_a_key_is_read_and_written_by_one_at_a_time(tmp_path):
    """Eight threads extend a key by twenty names each."""

    def extend(person):
        for count in range(20):
            with locked(tmp_path / "new" / "key.json"):
                key = read_key(tmp_path / "new" / "key.json")
                name = f"{person}-{count}"
                write_key(tmp_path / "new" / "key.json", key | {name: f"annotator-{name}"})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(extend, range(8)))
    assert len(read_key(tmp_path / "new" / "key.json")) == 160
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["key.json"]


def test_pseudonyms_are_random(table):
    found = examine(table / "in.csv")
    assert pseudonymise(found)[1] != pseudonymise(found)[1]


def test_models_keep_their_names():
    source = ["person", "model"]
    found = Reading(Annotations.from_columns("aa", ["ann", "model:m"], "xy", source=source), "x")
    renamed, key = pseudonymise(found)
    assert set(renamed.annotations.annotators.tolist()) == {key["ann"], "model:m"}


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_key_is_readable_by_its_owner_alone(table):
    previous = os.umask(0)
    try:
        convert(table, "in.csv", "public/1.csv", "--pseudonyms", "key.json")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((table / "key.json").stat().st_mode) == 0o600
    (table / "key.json").chmod(0o644)
    convert(table, "in.csv", "public/1.csv", "--pseudonyms", "key.json")
    assert stat.S_IMODE((table / "key.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "key", ["out/key.json", "out/data/key.json", "./out/../out/key.json", "out"]
)
def test_the_key_is_never_written_into_the_output(table, key):
    for force in ((), ("--force",)):
        message = publish(table, "--pseudonyms", key, *force, code=2)
        assert "never written into the output" in message
    assert not (table / "out").exists()


def test_a_key_beside_the_output_has_to_be_forced(table):
    arguments = ("in.csv", "out.csv", "--pseudonyms", "key.json")
    assert "name another folder, or --force" in convert(table, *arguments, code=2)
    assert not (table / "key.json").exists()
    assert not (table / "out.csv").exists()
    convert(table, *arguments, "--force")
    assert (table / "key.json").exists()
    message = convert(table, "in.csv", "key.json", "--pseudonyms", "key.json", "--force", code=2)
    assert "never written into the output" in message


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "7", '{"ann": 3}', '{"ann": ""}', '{"ann": "x", "bob": "x"}', "item,label\n"],
)
def test_a_file_that_is_no_key_is_left_alone(table, content):
    (table / "key.json").write_text(content)
    message = convert(table, "in.csv", "public/out.csv", "--pseudonyms", "key.json", code=2)
    assert "not a key of pseudonyms" in message
    assert message.count("\n") == 1
    assert (table / "key.json").read_text() == content
    assert not (table / "public").exists()


def test_names_of_any_kind_have_pseudonyms(tmp_path):
    names = ["a\nb", 'x"y', "../../etc/passwd", "👩‍🔬", " ", "=1+1", "\x1b[31m", "n" * 10_000]
    found = Reading(relation([("i", name, "x") for name in names]), "x")
    renamed, key = pseudonymise(found)
    write_key(tmp_path / "key.json", key)
    assert read_key(tmp_path / "key.json") == key
    assert sorted(key) == sorted(names)
    again, same = pseudonymise(found, key)
    assert (again.annotations, same) == (renamed.annotations, key)


def test_a_pseudonym_that_is_somebodys_name_is_refused():
    annotations = Annotations.from_columns("aa", ["ann", "p"], "xy", source=["person", "model"])
    with pytest.raises(DataError, match="is the name of another annotator"):
        pseudonymise(Reading(annotations, "x"), {"ann": "p"})


def test_nothing_is_written_where_the_key_cannot_be(table):
    (table / "folder").mkdir()
    with pytest.raises((OutputError, OptionError, DataError)):
        write_key(table / "folder", {})
    message = convert(table, "in.csv", "public/out.csv", "--pseudonyms", "folder", code=2)
    assert "is a folder; name a file" in message
    assert not (table / "public").exists()


def test_a_card_may_be_given_from_python(tmp_path):
    card = Card("mit", ["Nobody disagrees."], pseudonyms=True)
    write(relation([("a", "x", "y")]), tmp_path / "out", format="huggingface-folder", card=card)
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "license: mit" in text
    assert "- Nobody disagrees." in text
