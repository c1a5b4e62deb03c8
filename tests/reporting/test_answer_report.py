"""Reports on answers of every kind: numbers recomputed from the files, and pages in a browser."""

import csv
import gzip
import re
from collections import Counter, defaultdict

import numpy as np
import pytest

import dissensus as ds
from dissensus.answers import KINDS, Boxes, Rankings, Sets, Spans, Texts
from dissensus.formats import examine
from dissensus.reporting.drawings import contour, counts_tokens

from ..answer_sets import drawn, made
from ..support import run, shared_path
from .test_page import NAMES, PIXEL, browser, folder, opened, pytestmark  # noqa: F401


def small(kind, names=None):
    """Return small answers of a kind, perhaps with other names of annotators."""
    rng = np.random.default_rng(1)
    if kind in ("spans", "boxes", "points", "masks"):
        rows = drawn(kind)
        if names:
            rows = [(row[0], names[int(row[1][1:])], *row[2:]) for row in rows]
        return made(kind, rows)
    people = names or [f"w{j}" for j in range(6)]
    pairs = [(f"i{i}", people[j]) for i in range(30) for j in rng.choice(6, 4, replace=False)]
    item, who = zip(*pairs, strict=True)
    if kind == "sets":
        values = [[o for o in "abc" if rng.random() < 0.4] for _ in pairs]
        return Sets.from_values(item, who, values)
    if kind == "texts":
        words = ["the", "cat", "sat", "on", "a", "mat"]
        values = [" ".join(w for w in words if rng.random() < 0.8) for _ in pairs]
        return Texts.from_values(item, who, values)
    left, right = zip(*[rng.choice(list("pqrst"), 2, replace=False) for _ in pairs], strict=True)
    winner = [str(rng.choice([a, b, "tie"])) for a, b in zip(left, right, strict=True)]
    return Rankings.from_comparisons(item, who, left, right, winner)


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_of_every_kind_is_in_numbers(kind):
    answers = small(kind)
    summary = ds.report(answers).as_dict()
    assert summary["kind"] == kind
    assert summary["n_answers"] == len(answers)
    assert summary["n_empty"] == int(answers.empty.sum())
    assert len(summary["annotators"]) == answers.n_annotators
    assert {one["measure"] for one in summary["agreement"]} >= {"alpha", "observed", "expected"}
    assert f"{len(answers)} answers to {answers.n_items} items" in summary["sentences"][0]


def test_json_of_every_kind_has_the_same_keys():
    annotations = ds.Annotations.from_columns("aabb", "xyxy", "0110")
    numbers = ds.Numbers.from_columns("aabb", "xyxy", [1.0, 2.0, 3.0, 5.0])
    keys = [
        ds.report(answers).as_dict().keys() for answers in (annotations, numbers, small("sets"))
    ]
    common = {"name", "kind", "sentences", "actions", "method", "check", "agreement", "annotators",
              "errors", "evaluation", "camps", "groups", "judging", "samples"}  # fmt: skip
    assert all(common <= names for names in keys)
    assert ["disputed" if "disputed" in names else "relabel" for names in keys] == [
        "relabel", "relabel", "disputed"
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_every_kind_opens_without_trouble(kind, folder, opened):  # noqa: F811
    summary = ds.report(small(kind, NAMES[:6]), name=NAMES[0])
    summary.save(folder / f"{kind}.html")
    for settings in ({}, {"viewport": {"width": 400, "height": 800}, "color_scheme": "dark"}):
        seen = opened(folder / f"{kind}.html", **settings)
        assert seen.texts(".lead p") == list(summary.sentences)
        assert seen.page.locator("img[onerror]").count() == 0
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert seen.page.evaluate(wide) <= 0
        ids = seen.page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
        assert len(ids) == len(set(ids))
    drawings = {"sets": "#disputed table", "rankings": "#disputed tbody tr"}
    shown = seen.page.locator(drawings.get(kind, "figure.drawing")).count()
    assert shown == len(summary.doubt.most_disputed) > 0


def test_the_page_of_answers_works_without_scripts(folder, opened):  # noqa: F811
    summary = ds.report(small("boxes"))
    summary.save(folder / "static.html")
    seen = opened(folder / "static.html", java_script_enabled=False)
    assert seen.texts(".lead p") == list(summary.sentences)
    assert seen.page.locator("svg.drawn rect.agreed").count() > 0


def test_boxes_are_drawn_over_the_image_in_its_pixels(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    image.new("RGB", (1600, 1200)).save(tmp_path / "p.jpg")
    (tmp_path / "images.csv").write_text(
        f'item,image\np,p.jpg\nq,../{tmp_path.name}x.jpg\nr,"{PIXEL}"\n'
    )
    rows = [("p", who, 10 + 9 * k, 20, 30, 40) for k, who in enumerate("xyz")]
    rows += [(item, who, k, 0, 1, 1) for item in "qr" for k, who in enumerate("xyz")]
    boxes = Boxes.from_columns(*map(list, zip(*rows, strict=True)))
    page = ds.report(boxes, texts=tmp_path / "images.csv").page()
    assert 'viewBox="0 0 1600 1200"' in page
    assert page.count("<image ") == 2
    assert 'width="1600" height="1200"' in page


def test_spans_are_shown_in_the_text_by_characters_or_tokens(tmp_path):
    (tmp_path / "t.csv").write_text("item,text\na,Ann <b> went home\n")
    for start, end in ((0, 1), (0, 3)):  # one token, three characters
        ends = [end, 17 if end == 3 else 4]
        spans = Spans.from_columns("aa", "xy", [start, 0], ends, ["PER", "LOC"])
        report = ds.report(spans, texts=tmp_path / "t.csv")
        assert counts_tokens(report) == (end == 1)
        page = report.page()
        assert '<mark class="k1">Ann</mark><sub>PER</sub> &lt;b&gt; went home' in page


def test_a_contour_has_the_perimeter_of_the_mask():
    rng = np.random.default_rng(0)
    mask = rng.random((9, 7)) < 0.5
    padded = np.pad(mask, 1).astype(int)
    perimeter = np.abs(np.diff(padded, axis=0)).sum() + np.abs(np.diff(padded, axis=1)).sum()
    length = 0
    for x, y, letter, end in re.findall(r"M(\d+) (\d+)([HV])(\d+)", contour(mask)):
        length += int(end) - int(x if letter == "H" else y)
    assert length == perimeter


def test_one_answer_per_item_is_reported_without_agreement():
    boxes = Boxes.from_columns("ab", "xx", [1, 2], [1, 2], [3, 3], [4, 4])
    report = ds.report(boxes)
    assert "Agreement cannot be measured: no item has two answers." in report.sentences
    words = " ".join(action.sentence for action in report.actions)
    assert "Have a part of the items labelled by three annotators" in words
    assert "have one answer" not in words
    assert "<h2" in report.page()


def test_answers_that_all_agree_need_nothing():
    items, people = zip(*[(item, name) for item in "abcde" for name in "xyz"], strict=True)
    report = ds.report(Texts.from_values(items, people, [f"{item}{item}" for item in items]))
    assert report.actions == []
    assert "almost perfect (alpha 1.00" in " ".join(report.sentences)
    assert "No two answers to an item differ" in report.page()


def test_shares_of_votes_are_not_taken_for_probabilities():
    for kind, method in (("boxes", "medoid"), ("sets", "medoid"), ("masks", "auto")):
        report = ds.report(small(kind), method)
        words = " ".join([*report.sentences, *(one.sentence for one in report.actions)])
        assert "confidence" not in words


def test_the_command_reports_on_answers_by_their_columns(tmp_path):
    rows = ["item,annotator,start,end,label", "a,x,0,2,PER", "a,y,0,3,LOC", "a,z,,,"]
    (tmp_path / "spans.csv").write_text("\n".join(rows))
    result = run("report", str(tmp_path / "spans.csv"), "-o", str(tmp_path / "r.html"))
    assert "3 annotators gave 3 answers to 1 item, 3.0 each on average." in result.stdout.decode()
    assert "PER 0–2" in (tmp_path / "r.html").read_text("utf-8")


def raw(name, part="answers"):
    """Return the rows of a shared file."""
    with gzip.open(shared_path(name) / f"{part}.csv.gz", "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shared_report(name, kind=None):
    path = shared_path(name)
    tasks = path / "tasks.csv.gz"
    inputs = tasks if tasks.exists() else None
    return ds.report(examine(path / "answers.csv.gz", kind=kind, inputs=inputs))


def people_and_items(rows):
    pairs = {(row["task"], row["worker"]) for row in rows}
    return len({w for _, w in pairs}), len(pairs), len({t for t, _ in pairs}), pairs


def numbers(sentence):
    """Return the numbers of a sentence."""
    return [float(one) for one in re.findall(r"\d+(?:\.\d+)?", sentence.replace("\u202f", ""))]


def check_volume(report, rows):
    n_people, n_answers, n_items, _ = people_and_items(rows)
    assert numbers(report.sentences[0]) == [
        n_people, n_answers, n_items, round(n_answers / n_items, 1)
    ]  # fmt: skip


def test_sentences_about_named_entities_are_true():
    report, rows = shared_report("ner_conll"), raw("ner_conll")
    check_volume(report, rows)
    marked = [row for row in rows if row["start"]]
    *_, pairs = people_and_items(rows)
    empty = len(pairs - {(row["task"], row["worker"]) for row in marked}) / len(pairs)
    labels = {row["label"] for row in marked}
    assert numbers(report.sentences[1]) == [len(marked), len(labels), round(100 * empty)]
    table = report.result.items
    items = len(set(table["item"].tolist()))
    expected = [len(table["item"]), items, report.answers.n_items - items]
    assert numbers(report.sentences[2]) == expected
    truth = {
        (row["task"], row["start"], row["end"], row["label"]) for row in raw("ner_conll", "truth")
    }
    given = zip(*(table[name].tolist() for name in ("item", "start", "end", "label")), strict=True)
    right = np.mean([(i, str(a), str(b), label) in truth for i, a, b, label in given])
    _, low, high = numbers(report.sentences[3])
    assert low / 100 <= right <= high / 100
    unsure = [c for c in table["confidence"].tolist() if c < 0.8]
    action = report.actions[-1].sentence
    assert numbers(action) == [len(unsure), 80, round(sum(1 - c for c in unsure))]


def test_sentences_about_boxes_are_true():
    report, rows = shared_report("boxes_people"), raw("boxes_people")
    check_volume(report, rows)
    assert numbers(report.sentences[1]) == [len([row for row in rows if row["x"]])]
    found = ds.evaluate(report.result, shared_truth("boxes_people", Boxes, "xywh"))
    table = report.result.items
    f1, recall = found.scores["f1_50"].value, found.scores["recall"].value
    precision = 1 / (2 / f1 - 1 / recall)
    _, low, high = numbers(report.sentences[3])
    assert low / 100 <= precision <= high / 100
    assert len(table["item"]) == numbers(report.sentences[2])[0]


def shared_truth(name, kind, fields):
    rows = raw(name, "truth")
    columns = [[float(row[f]) if row[f] else None for row in rows] for f in fields]
    return kind.from_columns([row["task"] for row in rows], ["truth"] * len(rows), *columns)


def test_sentences_about_masks_are_true():
    report, rows = shared_report("masks_cells"), raw("masks_cells")
    check_volume(report, rows)
    area = [sum(map(int, row["counts"].split()[1::2])) for row in rows]
    assert numbers(report.sentences[1]) == [round(np.mean(area))]
    size = {
        row["task"]: int(row["height"]) * int(row["width"]) for row in raw("masks_cells", "tasks")
    }
    masks = defaultdict(list)
    for row in rows:
        runs = [int(one) for one in row["counts"].split()]
        masks[row["task"]].append(np.repeat(np.arange(len(runs)) % 2, runs))
    apart = []
    for name, several in masks.items():
        several = np.array(several)
        assert several.shape[1] == size[name]
        both = several @ several.T
        union = np.diag(both)[:, None] + np.diag(both) - both
        pairs = np.triu_indices(len(several), 1)
        apart.append((1 - both[pairs] / union[pairs]).mean())
    assert f"distance of {np.mean(apart):.2f} on average" in report.sentences[3]
    worst = max(masks, key=lambda name: apart[list(masks).index(name)])
    assert report.answers.items[report.doubt.most_disputed[0]] == worst


def test_sentences_about_transcripts_are_true():
    report, rows = shared_report("crowdspeech_dev_clean", "texts"), raw("crowdspeech_dev_clean")
    check_volume(report, rows)
    text = next(name for name in rows[0] if name not in ("task", "worker"))
    words = [[w for w in row[text].split() if re.search(r"\w", w)] for row in rows]
    assert numbers(report.sentences[1])[0] == pytest.approx(
        np.mean([len(w) for w in words]), abs=0.06
    )
    confidence = np.mean(report.result.confidence)
    assert numbers(report.sentences[2]) == [round(100 * confidence)]


def test_sentences_about_sets_are_true():
    report, rows = shared_report("relations_sets"), raw("relations_sets")
    check_volume(report, rows)
    labels = next(name for name in rows[0] if name not in ("task", "worker"))
    chosen = [re.split(r"[|; ]+", row[labels]) if row[labels] else [] for row in rows]
    n_options = len({one for several in chosen for one in several})
    mean, empty = np.mean([len(one) for one in chosen]), np.mean([not one for one in chosen])
    assert numbers(report.sentences[1]) == [round(mean, 1), n_options, round(100 * empty)]
    table = report.result.items
    unsure = table["confidence"][table["confidence"] < 0.8]
    assert numbers(report.actions[-1].sentence) == [
        len(unsure),
        80,
        round(float((1 - unsure).sum())),
    ]


def test_sentences_about_comparisons_are_true():
    report, rows = shared_report("convargs", "rankings"), raw("convargs")
    check_volume(report, rows)
    tasks = raw("convargs", "tasks")
    label = next(name for name in rows[0] if name in ("label", "answer", "winner"))
    ties = np.mean([row[label] == "equal" for row in rows])
    sides = [
        name for name in tasks[0] if len({row[name] for row in tasks}) > 500 and name != "task"
    ]
    assert f"{round(100 * ties)}% of the pairs are ties" in report.sentences[1]
    used = {row["task"] for row in rows}
    things = {row[name] for row in tasks if row["task"] in used for name in sides}
    assert numbers(report.sentences[1])[0] <= len(things)
    votes = defaultdict(Counter)
    for row in rows:
        votes[row["task"]][row[label]] += 1
    names = set(report.answers.items[report.doubt.again].tolist())
    split = [t for t, v in votes.items() if v["a1"] == v["a2"] == 2 and not v["equal"]]
    assert set(split) <= names


def test_sentences_about_rankings_are_true():
    report, rows = shared_report("rank_dots"), raw("rank_dots")
    check_volume(report, rows)
    assert "No annotator gave enough answers to be judged." in report.sentences
    clear = int((np.nan_to_num(report.result.items["confidence"]) > 0.975).sum())
    assert numbers(report.sentences[2])[1] == clear
