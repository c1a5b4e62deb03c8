"""`dissensus judge`, and kinds of annotators in the other commands."""

import json
import shutil

import numpy as np
import pytest

from dissensus import Annotations, ClassAggregation, DataError, OptionError, aggregate, read
from dissensus.datasets.simulation import simulate_judges
from dissensus.formats.side_tables import read_items, read_kinds
from dissensus.quality.checks import check

from ..support import run

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def write_table(path, annotations: Annotations, **columns) -> None:
    names = [
        annotations.items[annotations.item].tolist(),
        annotations.annotators[annotations.annotator].tolist(),
        annotations.classes[annotations.label].tolist(),
        *([fill(item) for item in annotations.item.tolist()] for fill in columns.values()),
    ]
    lines = [",".join(["item", "annotator", "label", *columns])]
    lines += [",".join(map(str, row)) for row in zip(*names, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def table(tmp_path):
    drawn = simulate_judges(n_items=300, n_labelled=150, n_classes=3, judge_accuracy=0.8, seed=1)
    path = tmp_path / "answers.csv"
    write_table(path, drawn.annotations, system=lambda item: "ab"[item % 2], doc=lambda i: i // 3)
    return path


# The command


def test_it_prints_sentences_and_ends_well(table):
    done = run("judge", table, "--repeats", 20)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert "May a model replace an annotator?" in text
    assert "m1 agrees with a person on " in text
    assert "The panel of 4 models says " in text
    assert "Ask people about the " in text


def test_json_has_every_section(table):
    content = json.loads(run("judge", table, "--repeats", 10, "--json").stdout)
    sections = ("replacement", "judges", "shares", "panel", "pool", "escalation", "sentences")
    assert all(content[name] for name in sections)
    assert content["models"] == ["m1", "m2", "m3", "m4"]
    assert content["n_labels"] == 150


def test_models_are_never_guessed_from_a_bare_name(tmp_path):
    rows = [("a", "gpt-4o", "0"), ("a", "ann", "0"), ("b", "gpt-4o", "1"), ("b", "ann", "0")]
    lines = ["item,annotator,label", *(",".join(row) for row in rows)]
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    done = run("judge", "answers.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert b"no annotator is known to be a model" in done.stderr
    assert b"ann, gpt-4o" in done.stderr
    assert run("judge", "answers.csv", "--models", "gpt*", cwd=tmp_path).returncode == 0
    assert run("judge", "answers.csv", "--people", "a*", cwd=tmp_path).returncode == 0
    both = run("judge", "answers.csv", "--models", "*", "--people", "a*", cwd=tmp_path)
    assert both.returncode == 2
    assert b"is both a model and a person" in both.stderr


@pytest.mark.parametrize(
    ("requirement", "code", "word"),
    [
        ("agreement(m1) >= 0.3", 0, b"holds"),
        ("agreement(m1) >= 0.99", 1, b"does not hold"),
        ("share(1) <= 0.9", 0, b"holds"),
        ("position(m1) <= 0.1", 1, b"cannot be told"),
        ("share(nothing) >= 0.1", 2, b"no class 'nothing'"),
        ("shares(1) >= 0.1", 2, b"cannot read the requirement"),
    ],
)
def test_a_requirement_decides_the_exit_code(table, requirement, code, word):
    done = run("judge", table, "--repeats", 20, "--require", requirement)
    assert done.returncode == code
    assert word in done.stderr


def test_all_requirements_have_to_hold(table):
    good, bad = "agreement(m1) >= 0.3", "agreement(m1) >= 0.99"
    done = run("judge", table, "--repeats", 20, "--require", good, "--require", bad, "--json")
    assert done.returncode == 1
    assert [one["holds"] for one in json.loads(done.stdout)["requirements"]] == [True, False]


def test_items_to_check_are_written(table, tmp_path):
    out = tmp_path / "check.csv"
    done = run("judge", table, "--repeats", 5, "--check", out, "--budget", 40)
    assert done.returncode == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "item,doubt,audit"
    assert len(lines) == 41
    assert sum(line.endswith("true") for line in lines) == 4
    assert (
        f"items in {out}:".encode() in done.stdout.replace(b"\n", b" ")
        or b"short cut" in done.stdout
    )


def test_groups_and_clusters_come_from_columns(table):
    done = run("judge", table, "--by", "system", "--cluster", "doc", "--repeats", 10, "--json")
    content = json.loads(done.stdout)
    assert {row["group"] for row in content["shares"]} == {"a", "b"}
    plain = json.loads(run("judge", table, "--repeats", 10, "--json").stdout)
    assert plain["shares"][0]["group"] == ""


def test_groups_come_from_a_table_of_items_too(table, tmp_path):
    names = read(table).items.tolist()
    lines = ["item,question,lang", *(f"{name},q,{'xy'[int(name) % 2]}" for name in names)]
    (tmp_path / "items.csv").write_text("\n".join(lines) + "\n")
    given = ("judge", table, "--inputs", tmp_path / "items.csv", "--repeats", 5, "--json")
    content = json.loads(run(*given, "--by", "lang").stdout)
    assert {row["group"] for row in content["shares"]} == {"x", "y"}
    missing = run(*given, "--by", "nothing")
    assert missing.returncode == 2
    assert b"--by nothing: no such column" in missing.stderr
    assert read_items(tmp_path / "items.csv")["0"] == {"question": "q", "lang": "x"}


def test_how_items_were_chosen_is_an_option(table):
    done = run("judge", table, "--sampled", "by-label", "--repeats", 5)
    assert b"chosen by their true class" in done.stdout.replace(b"\n", b" ")


def test_a_page_is_written_whole(table, tmp_path):
    out = tmp_path / "judge.html"
    done = run("judge", table, "-o", out, "--repeats", 10)
    assert done.returncode == 0
    page = out.read_text(encoding="utf-8")
    for part in ("Judges and people", "Correlation of errors", "Shares", "most doubtful"):
        assert part in page
    assert run("judge", table, "-o", tmp_path / "judge.txt").returncode == 2


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
def test_a_browser_shows_the_page_without_errors(table, tmp_path):
    from playwright.sync_api import sync_playwright

    out = tmp_path / "judge.html"
    assert run("judge", table, "-o", out, "--repeats", 10).returncode == 0
    problems = []
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(out.as_uri())
        page.wait_for_selector("section#panel svg, section#panel canvas", timeout=20_000)
        titles = page.locator("h2").all_inner_texts()
        browser.close()
    assert problems == []
    assert "How good is each judge?" in titles
    assert "Which items should people check?" in titles


def test_a_report_has_a_section_on_models_and_people(table, tmp_path):
    out = tmp_path / "report.html"
    assert run("report", table, "-o", out).returncode == 0
    page = out.read_text(encoding="utf-8")
    assert "Models and people" in page
    assert "agrees with a person on" in page
    everybody = read(table)
    people = everybody.subset(annotators=~everybody.is_kind("model"))
    write_table(tmp_path / "people.csv", people)
    assert run("report", tmp_path / "people.csv", "-o", out, "--force").returncode == 0
    assert "Models and people" not in out.read_text(encoding="utf-8")


# Kinds in the other commands


def test_aggregate_warns_about_models_among_people(table):
    done = run("aggregate", table, "-s", "majority")
    assert b"-s judge-pool weights them" in done.stderr
    pooled = run("aggregate", table, "-s", "judge-pool")
    assert b"judge-pool weights" not in pooled.stderr
    assert b"the models count like " in pooled.stderr


def test_agree_separates_people_models_and_both(table):
    content = json.loads(run("agree", table, "--repeats", 5, "--json").stdout)
    assert [one["between"] for one in content["kinds"]] == ["people", "people and models", "models"]
    assert [one["pairs"] for one in content["kinds"]] == [3, 12, 6]
    assert b"People and models, means over pairs" in run("agree", table, "--repeats", 5).stdout


def test_identify_shows_kinds(table, tmp_path):
    out = tmp_path / "annotators.csv"
    assert run("identify", table, "-o", out).returncode == 0
    assert out.read_text().splitlines()[0].startswith("annotator,verdict,kind,labels")
    assert b"kind" in run("identify", table).stdout


def test_next_asks_people_only(table, tmp_path):
    out = tmp_path / "plan.csv"
    done = run("next", table, "--budget", 10, "--draws", 0, "-o", out)
    assert b"only people are asked" in done.stderr
    asked = {line.split(",")[1] for line in out.read_text().splitlines()[1:]}
    assert asked <= {"p1", "p2", "p3"}
    named = run("next", table, "--budget", 5, "--draws", 0, "--among", "p1", "-o", out, "--force")
    assert named.returncode == 0
    assert {line.split(",")[1] for line in out.read_text().splitlines()[1:]} == {"p1"}


def test_check_names_models_and_classes_that_one_kind_uses():
    rows = [
        (f"i{k}", who, "yes" if k % 2 else "no") for k in range(9) for who in ("ann", "model:m")
    ]
    item, who, label = zip(*[*rows, ("i0", "bob", "n/a")], strict=True)
    found = check(Annotations.from_columns(item, who, label).with_kinds())
    codes = {one.code: one for one in found.findings}
    assert codes["kinds"].sentence == "Models gave 9 of 19 labels: 1 annotator is a model."
    assert codes["one-kind-classes"].examples == ("n/a: 1 labels of people, 0 of models",)


# Kinds in the data


def kinds(**given) -> Annotations:
    return Annotations.from_columns("aab", ["ann", "bot", "ann"], "010", **given)


def test_kinds_are_unknown_unless_they_are_given():
    plain = kinds()
    assert plain.annotator_kinds.tolist() == []
    assert not plain.is_kind("model").any()
    assert not plain.mixed_kinds
    assert plain == plain.with_kinds()
    known = kinds(annotator_kinds={"bot": "model"})
    assert known.annotator_kinds.tolist() == ["", "model"]
    assert known != plain
    with pytest.raises(DataError, match="no kind of annotator 'robot'"):
        kinds(annotator_kinds={"bot": "robot"})
    with pytest.raises(OptionError, match="no kind of annotator 'robot'"):
        known.is_kind("robot")
    with pytest.raises(DataError, match="3 kinds for 2 annotators"):
        kinds(annotator_kinds=["model"] * 3)


def test_kinds_follow_every_change():
    known = kinds(annotator_kinds=["person", "model"])
    assert known.subset(annotator_kind="model").annotators.tolist() == ["bot"]
    assert known.subset(annotators=["bot"]).annotator_kinds.tolist() == ["model"]
    assert known.take(np.array([0, 0])).annotator_kinds.tolist() == ["person", "model"]
    assert known.keep(np.array([True, False, True])).annotator_kinds.tolist() == ["person", "model"]
    assert known.with_codes(classes=["0", "1", "2"]).annotator_kinds.tolist() == ["person", "model"]
    renamed = known.with_codes(annotators=["ann", "cat"])
    assert renamed.annotator_kinds.tolist() == ["person", ""]
    assert known.recode("10").annotator_kinds.tolist() == ["person", "model"]
    assert known.with_scale("ordinal").annotator_kinds.tolist() == ["person", "model"]
    more = Annotations.from_columns("c", ["zed"], "1", annotator_kinds=["code"])
    assert known.merge(more).annotator_kinds.tolist() == ["person", "model", "code"]
    assert kinds().merge(more).annotator_kinds.tolist() == ["", "", "code"]


def test_kinds_are_saved_with_a_result(tmp_path):
    known = kinds(annotator_kinds=["person", "model"])
    aggregate(known, "majority").save(tmp_path / "kept")
    assert ClassAggregation.load(tmp_path / "kept").answers == known


@pytest.mark.parametrize("column", ["kind", "source"])
def test_a_column_of_rows_gives_kinds(tmp_path, column):
    rows = ["a,ann,0,human", "a,bot,1,LLM_JUDGE", "a,rule,1,CODE", "b,ann,0,human"]
    (tmp_path / "a.csv").write_text("\n".join([f"item,annotator,label,{column}", *rows]) + "\n")
    assert read(tmp_path / "a.csv").annotator_kinds.tolist() == ["person", "model", "code"]


def test_a_source_that_is_no_kind_is_left_alone(tmp_path):
    (tmp_path / "a.csv").write_text(
        "item,annotator,label,source\na,ann,0,twitter\nb,bob,1,person\n"
    )
    assert read(tmp_path / "a.csv").annotator_kinds.tolist() == []


def test_an_annotator_of_two_kinds_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label,kind\na,ann,0,model\nb,ann,1,person\n")
    with pytest.raises(DataError, match="'ann' is a model in one row, a person in another"):
        read(tmp_path / "a.csv")


def test_a_table_of_annotators_gives_kinds(tmp_path):
    (tmp_path / "w.csv").write_text("worker,kind\nann,person\nbot,model\n")
    assert read_kinds(tmp_path / "w.csv") == {"ann": "person", "bot": "model"}
    (tmp_path / "w.csv").write_text("worker,age\nann,30\n")
    with pytest.raises(DataError, match="no column kind or source"):
        read_kinds(tmp_path / "w.csv")
    (tmp_path / "w.csv").write_text("worker,kind\nann,robot\n")
    with pytest.raises(DataError, match="'ann' is of the kind 'robot'"):
        read_kinds(tmp_path / "w.csv")


def test_the_prefix_of_a_name_gives_its_kind():
    found = read({"a": {"ann": "0", "model:gpt": "1"}})
    assert found.annotator_kinds.tolist() == ["", "model"]


def test_patterns_come_before_columns_and_the_rest_is_of_the_other_kind():
    given = Annotations.from_columns("aaa", ["ann", "gpt-4", "model:x"], "010")
    assert given.with_kinds(models=["gpt*"]).annotator_kinds.tolist() == [
        "person",
        "model",
        "model",
    ]
    assert given.with_kinds(people=["a*", "x"]).annotator_kinds.tolist() == [
        "person",
        "model",
        "person",
    ]
    with pytest.raises(DataError, match="models=… 'b\\*' matches no annotator"):
        given.with_kinds(models=["b*"])
