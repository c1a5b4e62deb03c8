"""Rows read and rows left out are the rows of the source: in every reader, for every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dissensus as ds
from dissensus.answers.left_out import LeftOut
from dissensus.errors import DataError
from dissensus.formats import examine

from ..support import run

FIXTURES = Path(__file__).parents[1] / "fixtures"
KINDS = Path(__file__).parents[1] / "fixtures_kinds"
ROLES = ("item", "annotator", "label")

Counts = dict[str | None, int]  # question → entries of the source


# Counting by the csv and json modules only


def lines_of(path: Path) -> list[list[str]]:
    mark = "\t" if path.suffix == ".tsv" else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row for row in csv.reader(file, delimiter=mark) if row]


def cells_of(path: Path) -> list[dict[str, str]]:
    header, *rows = lines_of(path)
    return [dict(zip(header, row, strict=True)) for row in rows]


def json_of(path: Path) -> list[Any]:
    body = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in body.splitlines() if line.strip()]
    found = json.loads(body)
    return found if isinstance(found, list) else [found]


def rows_below(path: Path) -> Counts:
    return {None: len(lines_of(path)) - 1}


def all_rows(path: Path) -> Counts:
    return {"label": len(lines_of(path))}


def columns(*names: str) -> Callable[[Path], Counts]:
    """Count all rows for each of some questions, which have a column each."""
    return lambda path: dict.fromkeys(names, sum(any(row.values()) for row in cells_of(path)))


def filled(*names: str) -> Callable[[Path], Counts]:
    """Count filled cells of some columns."""
    return lambda path: {
        name: sum(row.get(name) not in (None, "", []) for row in table_of(path)) for name in names
    }


def table_of(path: Path) -> list[dict[str, Any]]:
    return cells_of(path) if path.suffix == ".csv" else json_of(path)


def by_question(path: Path) -> Counts:
    return dict(Counter(row["question"] for row in cells_of(path)))


def matrix(path: Path) -> Counts:
    body = [line.replace(",", " , ").split() for line in path.read_text().splitlines()]
    return {"label": sum(cell not in (",", "-1") for line in body for cell in line)}


def wide(path: Path) -> Counts:
    return {"label": sum(cell.strip() != "" for row in lines_of(path)[1:] for cell in row[1:])}


def votes(path: Path) -> Counts:
    if path.suffix == ".csv":
        rows = cells_of(path)
        given = [int(row[name]) for row in rows for name in row if name.startswith("votes_")]
    else:
        given = [one.get("number of annotations", 0) for one in json_of(path)]
        given += [n for one in json_of(path) for n in one.get("label_counter", {}).values()]
    return {"votes": sum(given)}


def parallel(*names: str) -> Callable[[Path], Counts]:
    return lambda path: {name: sum(len(one[name]) for one in json_of(path)) for name in names}


def argilla(path: Path) -> Counts:
    found: Counter[str] = Counter()
    for one in json_of(path):
        nested = isinstance(one.get("responses"), dict)
        flat = {n.split(".")[0]: v for n, v in one.items() if n.endswith(".responses") and v}
        for name, responses in (one["responses"] if nested else flat).items():
            found[name] += len(responses or [])
        suggested = one.get("suggestions") or {} if nested else one
        for name, value in suggested.items():
            if nested or (name.endswith(".suggestion") and value is not None):
                found[name.split(".")[0]] += 1
    return dict(found)


def argilla_csv(path: Path) -> Counts:
    rows = cells_of(path)
    users = sum(row["mood.responses.users"].count("00000000-0000-") for row in rows)
    return {"mood": users + sum(row["mood.suggestion"] != "" for row in rows)}


def label_studio(path: Path) -> Counts:
    """Count results about whole items, and annotations that are left out as a whole."""
    found: Counter[str] = Counter()
    whole = 0
    for task in json_of(path):
        for one in task.get("annotations", task.get("completions", [])):
            if one.get("was_cancelled") or one.get("skipped") or not one.get("completed_by"):
                whole += 1
            else:
                found.update(filter(None, map(_question, one["result"])))
        for one in task.get("predictions", []):
            if isinstance(one, dict):
                found.update(filter(None, map(_question, one["result"])))
    return {name: count + whole for name, count in found.items()}


def _question(result: dict[str, Any]) -> str | None:
    value = result.get("value") or {}
    chosen = {"choices", "rating", "number", "taxonomy", "selected"} & value.keys()
    local = {"start", "x", "end"} & value.keys() or "item_index" in result
    return result.get("from_name") if chosen and not local else None


def lewidi(path: Path) -> Counts:
    items = json.loads(path.read_text()).values()
    return {"label": sum(len(set(one["annotators"].split(","))) for one in items)}


def mlflow(path: Path) -> Counts:
    found: Counter[str] = Counter()
    for record in json_of(path):
        about = record.get("info", record)
        for one in about.get("assessments", [about]):
            if "feedback" in one:
                name, value = one.get("assessment_name") or one["name"], one["feedback"]["value"]
                parts = value if isinstance(value, dict) else {}
                found.update([f"{name}.{part}" for part in parts] or [name])
    return dict(found)


def langfuse(path: Path) -> Counts:
    records = [one for page in json_of(path) for one in page.get("data", [page])]
    named = Counter(one["name"] for one in records if one["dataType"] not in ("TEXT", "CORRECTION"))
    return {name: count + len(records) - named.total() for name, count in named.items()}


def openai_evals(path: Path) -> Counts:
    kinds = Counter(one.get("type") for one in json_of(path))
    wrong = kinds["error"]
    return {"choice": kinds["metrics"] + wrong, "correct": kinds["match"] + wrong}


def promptfoo(path: Path) -> Counts:
    outputs = json.loads(path.read_text())["results"]["results"]
    count = 0
    for one in outputs:
        parts = (one.get("gradingResult") or {}).get("componentResults") or []
        count += sum(not p.get("componentResults") and bool(p.get("assertion")) for p in parts)
        count += not parts
    return {"pass": count}


def zooniverse(path: Path) -> Counts:
    found: Counter[str] = Counter()
    for row in cells_of(path):
        tasks = json.loads(row["annotations"])
        inner = [p for t in tasks if isinstance(t["value"], list) for p in t["value"]]
        tasks += [one for one in inner if isinstance(one, dict) and "task" in one]
        found.update(one["task"] for one in tasks)
    return {name: found[name] for name in ("T0", "T1")}


def mturk_json(path: Path) -> Counts:
    bodies = [row["Answer.taskAnswers"] for row in cells_of(path)]
    found = Counter(name for body in bodies if body for one in json.loads(body) for name in one)
    return {name: count + bodies.count("") for name, count in found.items()}


def doccano_zip(path: Path) -> Counts:
    with zipfile.ZipFile(path) as archive:
        bodies = {name: archive.read(name).decode() for name in archive.namelist()}
    rows = (
        len([*csv.reader(io.StringIO(body))]) - 1
        if name.endswith(".csv")
        else sum(bool(line.strip()) for line in body.splitlines())
        for name, body in bodies.items()
        if not name.startswith("__MACOSX")
    )
    return {"label": sum(rows)}


def doccano_users(path: Path) -> Counts:
    given = [one for record in json_of(path) for one in record["annotations"]]
    return {"label": sum("start_offset" not in one for one in given)}


def nested(path: Path) -> Counts:
    return {None: sum(map(len, json.loads(path.read_text()).values()))}


def potato(path: Path) -> Counts:
    if path.suffix == ".json":
        answers = len(json.loads(path.read_text())["instance_id_to_label_to_value"])
    else:
        answers = len(table_of(path))
    return {"mood": answers, "rate": answers}


def prodigy_choices(path: Path) -> Counts:
    """Count choices, and what is left out whatever it would answer."""
    found: Counter[str] = Counter()
    of_all = 0
    for one in json_of(path):
        who = one.get("_annotator_id") or one.get("_session_id")
        chosen = bool(one.get("options")) or "accept" in one
        if not who or one["answer"] == "ignore" or (chosen and one["answer"] == "reject"):
            of_all += 1
        elif chosen:
            found["choice"] += 1
        elif one.get("label") and not one.get("spans"):
            found[one["label"]] += 1
    return {name: count + of_all for name, count in found.items()}


def prodigy_marks(path: Path) -> Counts:
    lines = json_of(path)
    image = [one for one in lines if "image" in one]
    ignored = sum(one["answer"] == "ignore" for one in lines)
    texts = len(lines) - len(image) - ignored
    return {"spans": texts + ignored, "boxes": len(image) + ignored}


def annotated(path: Path) -> Counts:
    tasks = json_of(path)
    return {"ner": sum(len(one["annotations"] + one.get("predictions", [])) for one in tasks)}


def files(question: str, ending: str, each: int = 1) -> Callable[[Path], Counts]:
    """Count the files of annotators, each with as many documents or images."""
    return lambda path: {question: each * len([*path.rglob(f"*{ending}")])}


SOURCES: dict[str, Callable[[Path], Counts]] = {
    "appen.csv": columns("mood", "tags", "remark"),
    "argilla.json": argilla,
    "argilla_flat.csv": argilla_csv,
    "argilla_flat.json": argilla,
    "argilla_flat.jsonl": argilla,
    "doccano.zip": doccano_zip,
    "doccano_csv.zip": doccano_zip,
    "doccano_users.jsonl": doccano_users,
    "headerless_toolkit.csv": all_rows,
    "headerless_truth.csv": all_rows,
    "huggingface.json": parallel("labels"),
    "huggingface.jsonl": parallel("labels", "hate", "tags"),
    "inverted.json": nested,
    "label_studio.csv": filled("mood", "stars", "topics"),
    "label_studio.json": label_studio,
    "label_studio_completions.json": label_studio,
    "langfuse.json": langfuse,
    "langfuse_page.json": langfuse,
    "lewidi_2023.json": lewidi,
    "lewidi_2025.json": lewidi,
    "lewidi_multiple.json": lewidi,
    "long.csv": rows_below,
    "mlflow.json": mlflow,
    "mlflow_traces.jsonl": mlflow,
    "mturk.csv": columns("mood", "style", "comment", "spam"),
    "mturk_json.csv": mturk_json,
    "openai_evals.jsonl": openai_evals,
    "potato.csv": potato,
    "potato.jsonl": potato,
    "potato_state.json": potato,
    "prodigy.jsonl": prodigy_choices,
    "prodigy_multiple.jsonl": prodigy_choices,
    "promptfoo.json": promptfoo,
    "question_worker_answer.csv": rows_below,
    "questions.csv": by_question,
    "soft_labels.json": votes,
    "toloka.tsv": columns("result", "boxes"),
    "toloka_inputs.tsv": columns("result"),
    "votes.csv": votes,
    "votes.jsonl": votes,
    "wide.csv": wide,
    "wide_matrix.txt": matrix,
    "zooniverse.csv": zooniverse,
    "argilla_kinds.json": argilla,
    "brat": files("spans", ".ann"),
    "coco": files("boxes", ".json", 2),
    "conll": files("spans", ".conll", 2),
    "cvat": files("boxes", ".xml", 2),
    "doccano": files("spans", ".jsonl", 2),
    "label_studio_spans.json": annotated,
    "prodigy_marks.jsonl": prodigy_marks,
}


@pytest.mark.parametrize("name", SOURCES)
def test_rows_read_and_rows_left_out_are_the_rows_of_the_source(name):
    path = next(folder / name for folder in (FIXTURES, KINDS) if (folder / name).exists())
    counted = SOURCES[name](path)
    assert counted
    for question, entries in counted.items():
        found = examine(path, question=question, missing="drop")
        answers = found.answers
        assert len(answers) + answers.left_out.n_rows == entries, question
        for sentence in answers.left_out.sentences:
            assert found.notes.count(sentence) == 1
        assert set(answers.left_out.items).isdisjoint(labelled(answers, "item"))
        assert set(answers.left_out.annotators).isdisjoint(labelled(answers, "annotator"))


def labelled(answers: Any, role: str) -> set[str]:
    names = answers.items if role == "item" else answers.annotators
    return set(names[getattr(answers, role)].tolist())


# Messy files, written by chance

NAMES = st.sampled_from(["", "a", "b", "c", "d 1"])
LABELS = st.sampled_from(["", "", "x", "y", "z", "NaN", "n/a", "NA"])
ROWS = st.lists(st.tuples(NAMES, NAMES, LABELS), min_size=1, max_size=25)
WORDS = {"nan", "n/a", "na"}


def written(rows: list[tuple[str, ...]], ending: str, folder: Path, blank: bool) -> Any:
    """Write rows in a format; return what `read` takes."""
    path = folder / f"messy.{ending}"
    whole = [[cell or None for cell in row] for row in rows]
    records = [dict(zip(ROLES, row, strict=True)) for row in whole]
    if ending in ("csv", "tsv", "csv.gz"):
        body = io.StringIO()
        writer = csv.writer(body, delimiter="\t" if ending == "tsv" else ",")
        writer.writerow(ROLES)
        for row in rows:
            writer.writerow(row)
            body.write("\r\n" * blank)
        packed = gzip.compress(body.getvalue().encode())
        path.write_bytes(packed if ending.endswith("gz") else body.getvalue().encode())
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(one) + "\n" * (1 + blank) for one in records))
    elif ending == "json":
        path.write_text(json.dumps(records))
    else:
        frame = pl.DataFrame(whole, schema=dict.fromkeys(ROLES, pl.String), orient="row")
        if ending == "frame":
            return frame
        if ending == "mapping":
            return {name: frame[name].to_list() for name in ROLES}
        frame.write_parquet(path) if ending == "parquet" else frame.write_ipc(path)
    return path


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "csv.gz", "jsonl", "json", "parquet", "arrow", "frame", "mapping"]
)
@pytest.mark.parametrize("duplicates", ["count", "first", "last"])
@given(rows=ROWS, blank=st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_row_of_a_messy_table_is_read_or_counted(
    ending, duplicates, rows, blank, tmp_path_factory
):
    rows = [("a", "a", "x"), ("b", "b", "y"), *rows]
    source = written(rows, ending, tmp_path_factory.mktemp("messy"), blank)
    found = examine(source, missing="drop", duplicates=duplicates, scale="nominal")
    data, left_out = found.annotations, found.annotations.left_out
    assert len(data) + left_out.n_rows == len(rows)
    usable = [row for row in rows if all(row) and row[2].lower() not in WORDS]
    expected = Counter(
        "empty" if not any(row) else "without a label" if not row[2]
        else repr(row[2]) if row[2].lower() in WORDS
        else "without an item" if not row[0] else "without an annotator"
        for row in rows if row not in usable
    )  # fmt: skip
    if duplicates != "count":
        expected["repeated"] = len(usable) - len({row[:2] for row in usable})
    assert left_out.rows == +expected
    for position, names in enumerate((left_out.items, left_out.annotators)):
        everybody = dict.fromkeys(row[position] for row in rows if row[position])
        there = {row[position] for row in usable}
        assert set(names) == {name for name in everybody if name not in there}
    assert found.notes == left_out.sentences


@given(
    tables=st.lists(
        st.dictionaries(st.sampled_from("pqr"), st.sampled_from(["x", "y", None])), min_size=1
    )
)
@settings(max_examples=40, deadline=None)
def test_every_entry_of_a_list_of_labels_is_read_or_counted(tables, tmp_path_factory):
    tables = [{"p": "x", "q": "y"}, *tables]
    path = tmp_path_factory.mktemp("lists") / "set.jsonl"
    records = [
        {"id": f"i{n}", "annotators": list(one), "labels": list(one.values())}
        for n, one in enumerate(tables)
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    annotations = ds.read(path)
    gaps = [name for one in tables for name, label in one.items() if label is None]
    assert len(annotations) + annotations.left_out.n_rows == sum(map(len, tables))
    assert annotations.left_out.rows == ({"without a label": len(gaps)} if gaps else {})
    without = [f"i{n}" for n, one in enumerate(tables) if not any(one.values())]
    assert sorted(annotations.left_out.items) == sorted(without)
    people = {name for one in tables for name, label in one.items() if label}
    assert set(annotations.left_out.annotators) == set(gaps) - people


@pytest.mark.parametrize("duplicates", ["count", "first", "last"])
@given(
    answers=st.dictionaries(
        st.sampled_from(["i1", "i2", "i3"]),
        st.dictionaries(
            st.sampled_from("pqr"),
            st.one_of(st.sampled_from(["x", None]), st.lists(st.sampled_from(["x", "y", None]))),
        ),
    )
)
@settings(max_examples=40, deadline=None)
def test_every_label_of_an_object_of_objects_is_read_or_counted(
    duplicates, answers, tmp_path_factory
):
    answers = {"i0": {"p": "x", "q": "y"}, **answers}
    path = tmp_path_factory.mktemp("nested") / "answers.json"
    path.write_text(json.dumps(answers))
    for source in (path, answers, path.parent):
        annotations = ds.read(source, missing="drop", duplicates=duplicates, scale="nominal")
        labels = [
            (item, annotator, label)
            for item, given in answers.items()
            for annotator, many in given.items()
            for label in (many if isinstance(many, list) else [many])
        ]
        assert len(annotations) + annotations.left_out.n_rows == len(labels)
        there = {item for item, _, label in labels if label}
        assert set(annotations.left_out.items) == set(answers) - there
        there = {annotator for _, annotator, label in labels if label}
        everybody = {annotator for given in answers.values() for annotator in given}
        assert set(annotations.left_out.annotators) == everybody - there


@given(
    cells=st.lists(
        st.lists(st.sampled_from(["", "", "cat", "dog"]), min_size=4, max_size=4), max_size=12
    ),
    blank=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_items_and_annotators_without_labels_in_a_wide_table_are_named(
    cells, blank, tmp_path_factory
):
    start = [["cat", "dog", "cat", ""], ["dog", "dog", "cat", ""], ["cat", "cat", "dog", ""]]
    rows = [[f"i{n}", *row] for n, row in enumerate([*start, *cells])]
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    body = ["item,p,q,r,s", *map(",".join, rows)]
    path.write_text("\n".join(body) + "\n" * (1 + 3 * blank))
    annotations = ds.read(path)
    assert len(annotations) == sum(cell != "" for _, *row in rows for cell in row)
    assert annotations.left_out.rows == {}
    assert set(annotations.left_out.items) == {name for name, *row in rows if not any(row)}
    nobody = {name for n, name in enumerate("pqrs", 1) if not any(row[n] for row in rows)}
    assert set(annotations.left_out.annotators) == nobody


MARKS = ["item,annotator,start,end,label", "a,p,0,2,X", "b,q,,,", ",p,0,1,X", "c,,1,2,Y", ",,,,"]


def test_rows_of_marks_are_read_or_counted(tmp_path):
    path = tmp_path / "spans.csv"
    path.write_text("\n".join([*MARKS, "", ""]))
    answers = ds.read(path, missing="drop")
    assert answers.left_out == LeftOut(
        {"empty": 1, "without an item": 1, "without an annotator": 1}, ("c",)
    )


def test_a_table_of_which_nothing_is_left_says_why(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\n1,a,\n2,a,NaN\n")
    with pytest.raises(DataError, match="no labels in it; 2 rows are left out: 1 without a label"):
        ds.read(tmp_path / "a.csv", missing="drop")


def test_what_was_left_out_stays_with_the_data_when_their_scale_is_found(tmp_path):
    words = ("disagree", "agree")
    body = "item,annotator,label\n" + "".join(
        f"{n},{who},{words[n % 2]}\n" for n in range(9) for who in "ab"
    )
    (tmp_path / "a.csv").write_text(f"{body}9,a,\n")
    annotations = ds.read(tmp_path / "a.csv", missing="drop", scale="ordinal")
    assert annotations.left_out.items == ("9",)
    numbers = ds.read(
        {"item": [1, 2], "annotator": ["a", "b"], "label": [1.5, None]}, missing="drop"
    )
    assert numbers.left_out.rows == {"without a label": 1}


# What the command says

LINES = [f"i{n},{who},{'xy'[n % 2]}" for n in range(8) for who in "pqr"]
LOST = ["j1,p,", "j2,z,NaN", ",q,x"]
SENTENCES = [
    "3 rows are left out: 1 without a label, 1 'NaN', 1 without an item",
    "2 items have no label: j1, j2",
    "1 annotator has no label: z",
]
ALL = {
    "rows": {"without a label": 1, "'NaN'": 1, "without an item": 1},
    "items": ["j1", "j2"],
    "annotators": ["z"],
}
VERBS = {
    "check": (),
    "aggregate": ("-o", "out.csv"),
    "agree": (),
    "compare": ("-s", "majority", "-s", "wawa"),
    "convert": ("out.parquet",),
    "identify": (),
    "next": ("--budget", 3),
    "report": ("-o", "out.html"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_once_what_was_left_out_and_has_it_in_json(verb, tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(["item,annotator,label", *LINES, *LOST]))
    done = run(verb, "a.csv", *VERBS[verb], "--missing", "drop", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    messages = done.stderr.decode().splitlines()
    assert [line for line in messages if line in SENTENCES] == SENTENCES
    assert json.loads(done.stdout)["left_out"] == ALL


GOLD = "item,label\ni0,x\nu1,x\nu2,y\n"


@pytest.mark.parametrize("verb", ["aggregate", "compare", "convert", "identify", "report"])
def test_gold_about_items_that_are_not_in_the_data_is_counted_and_named(verb, tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(["item,annotator,label", *LINES]))
    (tmp_path / "gold.csv").write_text(GOLD)
    done = run(verb, "a.csv", *VERBS[verb], "--gold", "gold.csv", cwd=tmp_path)
    messages = done.stderr.decode()
    assert messages.count("gold.csv: 2 of 3 items are not in the data: u1, u2\n") == 1
    assert "rows are left out" not in messages


def test_authors_of_items_that_are_not_in_the_data_are_counted_and_named(tmp_path):
    lines = [f"i{n},{who},{n + k}.5" for n in range(6) for k, who in enumerate("pqr")]
    (tmp_path / "a.csv").write_text("\n".join(["item,annotator,label", *lines]))
    (tmp_path / "authors.csv").write_text("item,author\ni0,p\nu1,q\n")
    done = run("aggregate", "a.csv", "--authors", "authors.csv", "-o", "o.csv", cwd=tmp_path)
    assert b"authors.csv: 1 of 2 items are not in the data: u1\n" in done.stderr


def test_many_parquet_files_say_what_was_left_out_in_memory_and_in_parts(tmp_path):
    rows = [line.split(",") for line in (*LINES, *LOST)]
    frame = pl.DataFrame(
        [[cell or None for cell in row] for row in rows], schema=list(ROLES), orient="row"
    )
    frame[:10].write_parquet(tmp_path / "1.parquet")
    frame[10:].write_parquet(tmp_path / "2.parquet")
    (tmp_path / "gold.csv").write_text(GOLD)
    given = ("1.parquet", "2.parquet", "-s", "majority", "-o", "out/", "--missing", "drop")
    whole = run("aggregate", *given[:5], "o.csv", *given[6:], "--gold", "gold.csv", cwd=tmp_path)
    assert [one for one in whole.stderr.decode().splitlines() if one in SENTENCES] == SENTENCES
    parts = run("aggregate", *given, "--gold", "gold.csv", "--memory", "600", cwd=tmp_path)
    assert parts.returncode == 0, parts.stderr
    assert b"3 rows are left out: 3 without an item, an annotator or a label" in parts.stderr
    for done in (whole, parts):
        assert b"gold.csv: 2 of 3 items are not in the data: u1, u2" in done.stderr


def test_a_clean_file_says_nothing_more(tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(["item,annotator,label", *LINES, "", "", ""]))
    done = run("aggregate", "a.csv", "-s", "majority", "-o", "o.csv", "--json", cwd=tmp_path)
    assert done.stderr == b""
    assert "left_out" not in json.loads(done.stdout)


def test_check_prints_the_names_of_all_items_without_labels(tmp_path):
    blank = [f"j{n},p," for n in range(6)]
    (tmp_path / "a.csv").write_text("\n".join(["item,annotator,label", *LINES, *blank]))
    done = run("check", "a.csv", "--missing", "drop", cwd=tmp_path)
    assert b"items without a label: j0, j1, j2, j3, j4, j5\n" in done.stdout
