"""Files that are damaged, or made to do harm: annotations, or one line that says what is wrong."""

import gzip
import io
import json
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dissensus import DataError, read
from dissensus.formats import examine
from dissensus.formats.format import TOOLS
from dissensus.formats.sources import unpacked

from ..support import rows_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
ALL = sorted(path.name for path in FIXTURES.iterdir() if path.is_file())
TABLE = "task,worker,label\na,x,1\nb,y,2\n"
PARTS = 12


def outcome(path, **options):
    """Return annotations, or the message; anything else fails the test."""
    try:
        return examine(path, **options).answers
    except DataError as problem:
        summary = str(problem)
        assert "\n" not in summary
        assert len(summary) < 700
        assert summary.startswith(str(path))
        return summary


def written(tmp_path, body):
    path = tmp_path / "file.dat"
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    return path


@pytest.mark.parametrize("name", ALL)
def test_a_file_that_was_cut_off_ends_well(name, tmp_path):
    body = (FIXTURES / name).read_bytes()
    for part in range(PARTS):
        outcome(written(tmp_path, body[: len(body) * part // PARTS]))


@pytest.mark.parametrize("name", ALL)
def test_every_encoding_ends_well(name, tmp_path):
    text = (FIXTURES / name).read_bytes().decode("utf-8", errors="replace")
    for encoded in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp037"):
        outcome(written(tmp_path, text.encode(encoded, errors="replace")))
    outcome(written(tmp_path, text.replace("\n", "\r\n")))
    outcome(written(tmp_path, text.replace("\n", "\r")))
    outcome(written(tmp_path, text.replace(" ", "\0")))


@pytest.mark.parametrize(
    "name", [name for name in ALL if not name.endswith((".zip", ".eval", ".parquet"))]
)
def test_marks_and_line_ends_of_windows_change_nothing(name, tmp_path):
    body = (FIXTURES / name).read_bytes()
    if b"\r" in body or name == "long.csv":  # there, a line end is part of a name
        pytest.skip("it has them already")
    options = {"missing": "drop"}
    first = outcome(FIXTURES / name, **options)
    if isinstance(first, str):
        return
    assert outcome(written(tmp_path, b"\xef\xbb\xbf" + body), **options) == first
    assert outcome(written(tmp_path, body.replace(b"\n", b"\r\n")), **options) == first
    assert outcome(written(tmp_path, gzip.compress(body)), **options) == first


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("fixture", ALL)
def test_any_file_may_be_read_as_any_format(name, fixture):
    outcome(FIXTURES / fixture, format=name)


DEEP = {
    "a list": "[" * 10_000 + "]" * 10_000,
    "an object": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "in a line": '{"task":"a","worker":"x","label":' + "[" * 10_000 + "]" * 10_000 + "}\n{}",
    "in a record": '[{"id":1,"annotations":' + "[" * 10_000 + "]" * 10_000 + "}]",
    "an open list": "[" * 200_000,
    "in a cell": 'HITId,WorkerId,Answer.taskAnswers\nH,W,"' + "[" * 10_000 + '"\n',
    "in a classification": "classification_id,annotations,subject_ids\n1," + "[" * 10_000 + ",2\n",
}


@pytest.mark.parametrize("case", DEEP)
def test_json_nested_ten_thousand_deep_ends_well(case, tmp_path):
    outcome(written(tmp_path, DEEP[case]))


@pytest.mark.parametrize("length", [10**6])
def test_a_label_of_a_million_characters_is_a_label(length, tmp_path):
    label = "x" * length
    path = written(tmp_path, f"task,worker,label\na,x,{label}\nb,x,y\n")
    assert sorted(map(len, read(path).classes.tolist())) == [1, length]
    path = written(tmp_path, f"task,worker,label\na,x,1\nb,y,{label},3\n")
    assert "line 3: 4 fields, but the header has 3" in outcome(path)
    path = written(tmp_path, f"HITId,WorkerId,Answer.q\nH,W,{label}\nH,V,y\n")
    assert len(read(path)) == 2
    path = written(tmp_path, f"{label},worker,label\na,x,1\n")
    assert "no column for the item" in outcome(path)


def test_nul_characters_are_left_out_of_text_tables_and_kept_elsewhere(tmp_path):
    path = written(tmp_path, 'task,worker,label\n"a\0b",x,1\n')
    assert rows_of(read(path)) == [("ab", "x", "1")]
    assert "1 NUL character is left out of the texts" in examine(path).notes
    path = written(tmp_path, '[{"item": "a\\u0000b", "annotator": "x", "label": "1"}]')
    assert rows_of(read(path)) == [("a\0b", "x", "1")]
    path = written(tmp_path, "ta\0sk,worker,label\na,x,1\n")
    assert "NUL characters in its first line" in outcome(path)


def test_half_characters_in_json_are_refused(tmp_path):
    for body in (
        '[{"task":"a","worker":"x","label":"\\ud800"}]',
        '{"\\ud800": {"x": 1}}',
        '[{"id": "a", "annotators": ["\\udfff", "b"], "labels": [0, 1]}]',
    ):
        assert "not valid" in outcome(written(tmp_path, body))


def test_a_label_larger_than_any_number_is_named(tmp_path):
    path = written(tmp_path, "task,worker,label\na,x,1e999\na,y,2.5\n")
    with pytest.raises(DataError, match=r"line 2: label '1e999' is larger .*; scale='nominal'"):
        examine(path)
    assert examine(path, scale="nominal").answers.classes.tolist() == ["1e999", "2.5"]


def test_numbers_that_no_computer_holds(tmp_path):
    huge = "9" * 5000
    for body in (
        f'[{{"task":"a","worker":"x","label":{huge}}}]',
        f'{{"task":"a","worker":"x","label":{huge}}}\n{{"task":"b"}}',
        f"task,worker,label,duration\na,x,{huge},1e999\n",
        '[{"task":1e999,"worker":"x","label":1}]',
        f"id,votes_a,votes_b\n1,{huge},1\n2,3,4\n",
        "id,votes_a,votes_b\n1,999999999,999999999\n2,999999999,1\n",
    ):
        outcome(written(tmp_path, body))


def bomb(size):
    return gzip.compress(b"0" * 2**20) * (size // 2**20)


def zstd_bomb(blocks):
    """Return a frame of runs of zeros, 128 KiB each, four bytes for every one of them."""
    header = struct.pack("<IB", 0xFD2FB528, 0) + b"\x58"
    run = (2**17 << 3 | 1 << 1).to_bytes(3, "little") + b"0"
    last = (2**17 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"0"
    return header + run * (blocks - 1) + last


def archive(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, body in members.items():
            packed.writestr(name, body)
    return out.getvalue()


def test_what_unpacks_to_far_more_is_refused(tmp_path):
    path = written(tmp_path, bomb(2**27))
    assert "unpacks to more than 64 MiB; unpack it first" in outcome(path)
    path = written(tmp_path, zstd_bomb(10**4))
    assert "unpacks to more than 64 MiB" in outcome(path)
    path = written(tmp_path, archive({"ann.jsonl": b"0" * 2**27}))
    assert "unpacks to more than" in outcome(path)


def test_a_small_frame_is_not_taken_for_a_large_one(tmp_path):
    path = tmp_path / "answers.csv.zst"
    frame = pl.read_csv(TABLE.encode(), infer_schema=False)
    frame.write_csv(path, compression="zstd")
    assert unpacked(path, "it") == path
    assert len(read(path)) == 2
    assert unpacked(zstd_bomb(100), "it") == zstd_bomb(100)
    with pytest.raises(DataError, match="damaged or not text"):
        unpacked(zstd_bomb(3)[:-5], "it")


@pytest.mark.parametrize("members", [1, 3])
def test_names_in_archives_are_only_names(members, tmp_path):
    record = b'{"id":1,"text":"a","label":["x"]}\n'
    names = ["../../etc/ann.jsonl", "/root/bob.jsonl", "C:\\cy.jsonl"][:members]
    path = written(tmp_path, archive(dict.fromkeys(names, record)))
    before = sorted(tmp_path.rglob("*"))
    outcome(path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("position", range(0, 80, 4))
def test_a_damaged_archive_ends_well(position, tmp_path):
    body = bytearray(archive({"ann.jsonl": b'{"id":1,"text":"a","label":["x"]}\n' * 50}))
    body[position % len(body)] ^= 0xFF
    outcome(written(tmp_path, bytes(body)))


def test_arrays_that_are_not_matrices_are_refused(tmp_path):
    for array in (np.zeros(3), np.zeros((2, 2, 2)), np.array("x"), np.zeros((0, 3), dtype=int)):
        np.save(tmp_path / "array.npy", array)
        outcome(tmp_path / "array.npy")


def test_wide_headers_take_no_longer_than_they_should(tmp_path):
    names = ",".join(f"c{n % 3}" for n in range(20_000))
    start = time.process_time()
    outcome(written(tmp_path, f"{names}\n{names}\n{names}\n"))
    assert time.process_time() - start < 10


def test_records_with_other_types_than_expected_end_well(tmp_path):
    odd = [None, True, 0, -1.5, "", "x", [], {}, [None], {"a": [1]}, [[1]], [{"task": 1}]]
    for name in ("annotators", "labels", "votes", "soft_label", "annotations", "responses", "id"):
        for value in odd:
            record = {"id": 1, "text": "t", "annotators": ["a", "b"], "labels": ["x", "y"]}
            outcome(written(tmp_path, json.dumps([{**record, name: value}, record])))


MEASURE = """
import resource, sys
from dissensus import DataError
from dissensus.formats import examine
import dissensus.formats.tools.label_studio, dissensus.formats.tools.huggingface
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        examine(path)
    except DataError:
        pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory has other units elsewhere")
def test_a_megabyte_never_takes_a_gibibyte(tmp_path):
    """Each is a megabyte or less: packed zeros, brackets, commas, tiny records, many columns."""
    bodies = [
        bomb(2**30),
        zstd_bomb(250_000),
        archive({"ann.jsonl": b"0" * 2**27}),
        b"[" * 10**6,
        b"," * 10**5,
        b"[" + b"{}," * 300_000 + b"{}]",
        b"a,b,c\n" + b"1,,2\n" * 200_000,
        b'{"a":{"b":1},' + b",".join(b'"%d":{"%d":1}' % (n, n) for n in range(60_000)) + b"}",
        b"id," + b",".join(b"n%d" % n for n in range(10**4)) + b"\n1" + b",1" * 10**4,
    ]
    paths = []
    for number, body in enumerate(bodies):
        paths.append(tmp_path / f"{number}.dat")
        paths[-1].write_bytes(body)
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr[-1000:]
    assert int(run.stdout) < 1024


def test_blank_lines_before_around_and_after_are_nothing(tmp_path):
    for end in ("\n", "\r\n"):
        body = f"{end}{end}task,worker,label{end}{end}a,x,1{end}b,y,2{end}{end}"
        assert rows_of(read(written(tmp_path, body))) == [("a", "x", "1"), ("b", "y", "2")]
    first = read(FIXTURES / "headerless_truth.csv")
    body = (FIXTURES / "headerless_truth.csv").read_bytes()
    assert read(written(tmp_path, b"\n\n" + body + b"\n")) == first
    path = written(tmp_path, "\n\ntask,worker,label\na,x,1\nb,y\n")
    assert "line 5: 2 fields, but the header has 3" in outcome(path)
