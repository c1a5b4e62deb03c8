"""Exports that are damaged, cut off or hostile: annotations, or a one-line error."""

import json
import os
import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dissensus import Annotations, DataError, write
from dissensus.base.panics import without_panics
from dissensus.formats import examine
from dissensus.formats.known import read_truth
from dissensus.formats.shapes import from_polygon

from .test_readers_json import FIXTURES, OURS, READABLE, task, write_json


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda tasks: tasks[0].update(annotations=3), "record 1: annotations: expected array"),
        (lambda tasks: tasks[1]["annotations"][0].update(lead_time="x"), "record 2: annotations"),
        (lambda tasks: tasks[0]["annotations"][0].update(result=[3]), "expected object"),
        (lambda tasks: tasks[0]["annotations"][0].update(completed_by=[1]), "completed_by"),
        (lambda tasks: tasks.append("x"), "record 5: expected object"),
        (lambda tasks: tasks.append({}), "task 5: neither an id nor any data"),
    ],
)
def test_a_wrong_type_is_reported_with_its_position(broken, message, tmp_path):
    tasks = json.loads((FIXTURES / "label_studio.json").read_text("utf-8"))
    broken(tasks)
    path = write_json(tmp_path / "t.json", tasks)
    with pytest.raises(DataError) as problem:
        examine(path, format="label-studio", question="mood")
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("name", [name for name in READABLE if not name.endswith("parquet")])
def test_a_file_that_was_cut_off_is_reported_or_read(name, tmp_path):
    body = (FIXTURES / name).read_bytes()
    for size in range(1, len(body), max(1, len(body) // 30)):
        (tmp_path / "cut").write_bytes(body[:size])
        for format in (None, OURS[name]):  # noqa: A001
            outcome(tmp_path / "cut", format)


@pytest.mark.parametrize("name", READABLE)
def test_changed_bytes_give_a_relation_or_one_line(name, tmp_path):
    draw = random.Random(7)
    body = (FIXTURES / name).read_bytes()
    for _ in range(30):
        changed = bytearray(body)
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(changed))] = draw.choice(b'\0\xff"{}[],:0aZ\\ \n')
        (tmp_path / "changed").write_bytes(bytes(changed))
        for format in (None, OURS[name]):  # noqa: A001
            outcome(tmp_path / "changed", format)


def values_in(found):
    if isinstance(found, dict):
        for key in found:
            yield found, key
            yield from values_in(found[key])
    elif isinstance(found, list):
        for position in range(len(found)):
            yield found, position
            yield from values_in(found[position])


WRONG = [
    None,
    True,
    3,
    -1.5,
    "",
    "x",
    "3",
    [],
    {},
    [None],
    [[1]],
    {"a": {}},
    10**400,
    "\0",
    "\ud800",
]


@pytest.mark.parametrize("name", [name for name in READABLE if name.endswith(("json", "jsonl"))])
def test_wrong_types_anywhere_give_a_relation_or_one_line(name, tmp_path):
    draw = random.Random(3)
    lines = (FIXTURES / name).read_text("utf-8").splitlines()
    found = [json.loads(one) for one in lines] if name.endswith("jsonl") else None
    for _ in range(60):
        whole = json.loads(json.dumps(found)) if found else json.loads("\n".join(lines))
        where, key = draw.choice(list(values_in(whole)))
        where[key] = draw.choice(WRONG)
        parts = whole if name.endswith("jsonl") else [whole]
        path = tmp_path / "wrong"
        path.write_text("\n".join(map(json.dumps, parts)), encoding="utf-8")
        outcome(path, OURS[name])


HUGE = "9" * 400


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("label_studio_spans.json", r'"start":\s*'),
        ("label_studio_spans.json", r'"end":\s*'),
        ("label_studio_images.json", r'"width":\s*'),
        ("label_studio_images.json", r'"original_width":\s*'),
        ("potato_state.json", r'"total_time_ms":\s*'),
        ("cvat/ann.xml", r'xbr="'),
        ("cvat/ann.xml", r' id="'),
        ("prodigy_marks.jsonl", r'"start":\s*'),
        ("coco/ann.json", r'"width":\s*'),
        ("coco/bob.json", r"\[\["),
    ],
)
def test_a_number_of_400_digits_gives_answers_or_one_line(name, key, tmp_path):
    homes = (FIXTURES, FIXTURES.parent / "fixtures_kinds")
    body = next(home / name for home in homes if (home / name).exists()).read_text("utf-8")
    changed, count = re.subn(rf"({key})-?[\d.]+", rf"\g<1>{HUGE}", body)
    assert count
    (tmp_path / "a").write_text(changed, encoding="utf-8")
    outcome(tmp_path / "a", None)


@pytest.mark.parametrize("encoding", ["utf-0", "rot13", "utf-7", "idna", "punycode", "x" * 300])
def test_xml_in_an_encoding_that_nobody_knows_ends_in_one_line(encoding, tmp_path):
    body = (FIXTURES.parent / "fixtures_kinds" / "cvat" / "ann.xml").read_text("utf-8")
    body = body[body.find("<annotations") :]
    (tmp_path / "a.xml").write_text(f'<?xml version="1.0" encoding="{encoding}"?>\n{body}')
    with pytest.raises(DataError, match=r"encoding|not XML"):
        examine(tmp_path / "a.xml")


@pytest.mark.parametrize("text", ["\\ud800", "a\\udfffb", "\\ud83d"])
@pytest.mark.parametrize("name", [name for name in READABLE if name.endswith(("json", "jsonl"))])
def test_half_a_character_anywhere_gives_answers_or_one_line(name, text, tmp_path):
    body = (FIXTURES / name).read_text("utf-8")
    matches = list(re.finditer(r'"[^"\\]*"(?!:)', body))
    draw = random.Random(5)
    for match in draw.sample(matches, min(12, len(matches))):
        changed = f'{body[: match.start()]}"{text}"{body[match.end() :]}'
        (tmp_path / "half").write_text(changed, encoding="utf-8")
        outcome(tmp_path / "half", None)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
def test_a_bit_that_flips_gives_answers_or_one_line_and_no_panic_on_the_terminal(
    kind, tmp_path, capfd
):
    days = pl.Series([f"2026-01-{n:02d}" for n in range(1, 29)]).str.to_datetime()
    table = {
        "item": [f"i{n % 9}" for n in range(28)],
        "annotator": [f"w{n % 4}" for n in range(28)],
    }
    frame = pl.DataFrame(table | {"label": ["xyz"[n % 3] for n in range(28)], "time": days})
    writers = {"parquet": "write_parquet", "arrow": "write_ipc", "stream": "write_ipc_stream"}
    getattr(frame, writers[kind])(tmp_path / "a")
    body = (tmp_path / "a").read_bytes()
    draw = random.Random(1)
    for _ in range(150):
        changed = bytearray(body)
        changed[draw.randrange(len(body))] ^= 1 << draw.randrange(8)
        (tmp_path / "changed").write_bytes(bytes(changed))
        outcome(tmp_path / "changed", None)
    assert capfd.readouterr().err == ""


def test_a_panic_of_polars_is_an_error_and_leaves_other_messages(capfd):
    times = pl.Series(["2026-01-01"] * 3 + ["2026-0٠-01"])

    def panic():
        with without_panics():
            os.write(2, b"a message\n")
            times.str.to_datetime()

    with pytest.raises(pl.exceptions.ComputeError):
        panic()
    assert capfd.readouterr().err == "a message\n"
    with without_panics(), without_panics():
        os.write(2, b"another\n")
    assert capfd.readouterr().err == "another\n"


def test_a_run_of_mutations_finds_nothing():
    command = [
        sys.executable,
        "benchmarks/run.py",
        "robustness",
        "mutations",
        "--files",
        "400",
        "--seed",
        "3",
    ]
    home = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("400 files\n")


def outcome(path, format):  # noqa: A002
    """Read whatever is there; anything but a relation or one line of complaint is an error here."""
    complaint = ""
    try:
        examine(path, format=format)
        examine(path, format=format)
    except DataError as problem:
        complaint = str(problem)
    assert "\n" not in complaint
    assert len(complaint) < 1500


@pytest.mark.parametrize("format", sorted(set(OURS.values())))
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 20_000,
        b'[{"id":' * 20_000,
        b'[{"id":1,"data":' + b"[" * 20_000 + b"]" * 20_000 + b',"annotations":[]}]',
        b'{"1":' + b'{"text":' * 20_000,
        b"\xff\xfe[\x00",
        '[{"id": "é"}]'.encode("latin-1"),
        b"[]",
        b"{}",
        b"null",
        b"\0" * 100,
        b"PK\x03\x04" + b"\0" * 50,
    ],
    ids=range(11),
)
def test_hostile_files_end_in_one_line(format, body, tmp_path):  # noqa: A002
    (tmp_path / "x").write_bytes(body)
    with pytest.raises(DataError):
        examine(tmp_path / "x", format=format)


def test_a_very_long_label_is_a_label(tmp_path):
    path = write_json(tmp_path / "t.json", [task(1, "q", "a" * 10**6)])
    assert len(examine(path).annotations.classes[0]) == 10**6


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return path


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path):
    line = json.dumps({"id": 1, "text": "a", "label": ["x"]}) + "\n"
    path = zipped(tmp_path / "z.zip", {"ann.jsonl": line * 2_000_000})
    assert path.stat().st_size < 2**20
    with pytest.raises(DataError, match="unpacks to more than"):
        examine(path)


def test_paths_in_a_zip_lead_nowhere(tmp_path):
    line = json.dumps({"id": 1, "text": "a", "label": ["x"]})
    names = ["../../ann.jsonl", "/etc/bob.jsonl", "a/b/cyd.jsonl"]
    path = zipped(tmp_path / "z.zip", dict.fromkeys(names, line))
    before = sorted(tmp_path.iterdir())
    assert examine(path).annotations.annotators.tolist() == ["ann", "bob", "cyd"]
    assert sorted(tmp_path.iterdir()) == before


def test_a_zip_of_something_else_is_reported(tmp_path):
    path = zipped(tmp_path / "z.zip", {"table.csv": "item,annotator,label\na,b,c\n"})
    with pytest.raises(DataError, match="table, record 1: no id or label as doccano has"):
        examine(path)


def test_a_damaged_zip_is_reported(tmp_path):
    body = bytearray((FIXTURES / "doccano.zip").read_bytes())
    body[60] ^= 0xFF
    (tmp_path / "z.zip").write_bytes(bytes(body))
    with pytest.raises(DataError, match=r"damaged zip|not JSON"):
        examine(tmp_path / "z.zip")


def test_a_zip_with_an_unreadable_name_is_reported(tmp_path):
    path = zipped(tmp_path / "z.zip", {"äö.jsonl": '{"id": 1, "text": "a", "label": ["x"]}'})
    path.write_bytes(path.read_bytes().replace("äö".encode(), b"\xff\xff\xff\xff"))
    with pytest.raises(DataError, match="damaged zip"):
        examine(path)


def test_huge_numbers_are_one_line_or_a_float(tmp_path):
    (tmp_path / "a.ann").write_text(f"T1\tX 0 {'9' * 10_001}\tMarie\nT2\tX 0 2\tMa\n")
    with pytest.raises(DataError, match="line 1: not a span") as problem:
        examine(tmp_path / "a.ann", format="brat")
    assert len(str(problem.value)) < 300
    value = {"x": 1, "y": 1, "width": 2, "height": 2, "rotation": 10**400, "rectanglelabels": ["X"]}
    result = {"from_name": "r", "to_name": "t", "type": "rectanglelabels", "value": value}
    result |= {"original_width": 10, "original_height": 10}
    annotation = {"completed_by": 1, "result": [result]}
    write_json(tmp_path / "t.json", [{"id": 1, "data": {}, "annotations": [annotation]}])
    with pytest.raises(DataError, match=r"a rotation of 1000\d+ degrees"):
        examine(tmp_path / "t.json", format="label-studio")
    frame = pl.DataFrame({"item": ["a"], "annotator": ["x"], "label": ["0"]})
    wide = frame.with_columns(duration=pl.Series([2**100], dtype=pl.Int128))
    assert examine(wide).annotations.columns["duration"].tolist() == [2.0**100]


def test_long_names_do_not_make_an_error_long(tmp_path):
    gold = "item,label\n" + f"{'i' * 999},{'x' * 999}\n{'i' * 999},{'y' * 999}\n"
    (tmp_path / "gold.csv").write_text(gold)
    with pytest.raises(DataError, match=r"two true labels, 'xxx.*…' and 'yyy.*…'") as problem:
        read_truth(tmp_path / "gold.csv")
    assert len(str(problem.value)) < 300 + len(str(tmp_path))


def test_boxes_of_one_name_may_be_numbers(tmp_path):
    body = (FIXTURES / "mturk_json.csv").read_text("utf-8")
    changed = body.replace('""sure"": ""3""', '""sure"": 3').replace('""5""', '""5|4""')
    (tmp_path / "t.csv").write_text(changed)
    classes = examine(
        tmp_path / "t.csv", question="sure", kind="single", missing="drop"
    ).annotations.classes
    assert {"3", "4|5"} <= set(classes.tolist())


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_times_of_no_calendar_are_refused_when_written(ending, tmp_path, capfd):
    time = np.array([2**63 - 1], dtype="datetime64[us]")
    annotations = Annotations.from_columns(["a"], ["x"], ["1"], time=time)
    with pytest.raises(DataError, match="a time is out of the years that can be written"):
        write(annotations, tmp_path / f"answers.{ending}")
    assert capfd.readouterr().err == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("points", [["1", "2", " 1, 5, 4", "3"], [None, 1, 2, 3], [{}, 1]])
def test_corners_that_are_no_numbers_are_refused(points):
    with pytest.raises(DataError, match="a polygon with a corner that is no number"):
        from_polygon(points, (4, 4))


def test_a_long_label_is_shortened_in_a_message(tmp_path):
    label = "x" * 5000
    (tmp_path / "a.csv").write_text(f"item,annotator,start,end,label\na,x,1,2,y\nb,x,,,{label}\n")
    with pytest.raises(DataError, match=r"line 3: the label 'x{60}…' without") as caught:
        examine(tmp_path / "a.csv")
    assert len(str(caught.value)) < 400
