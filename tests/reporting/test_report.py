"""The report as numbers and sentences; `test_page.py` opens it in a browser."""

import base64
import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from dissensus import (
    Annotations,
    DataError,
    Numbers,
    OptionError,
    aggregate,
    agree,
    demo,
    evaluate,
    identify,
    read,
    report,
    report_groups,
    simulate,
    summarise,
)
from dissensus.aggregation.classes import ClassMethod
from dissensus.aggregation.sections import annotators_figure
from dissensus.cli.report import _distinct_names
from dissensus.formats import Reading
from dissensus.formats.side_tables import read_texts
from dissensus.pages import embedding
from dissensus.pages.charts import save_chart
from dissensus.pages.embedding import embedded_image
from dissensus.pages.wording import amount, listed, percent
from dissensus.reporting.group_comparison import split_by

from ..support import annotation_rows, relation, run, shared, shared_truth

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def photos():
    annotations, truth = demo()
    return annotations, truth, report(annotations, "dawid-skene", name="photos", truth=truth)


def data_of(page: str) -> dict:
    """Return what the page's script reads."""
    match = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page)
    return json.loads(match[1])


def plan_of(summary) -> list[str]:
    return [one.sentence for one in summary.actions]


def test_the_sentences_hold_the_numbers_of_the_verbs(photos):
    annotations, truth, summary = photos
    sentences = " ".join(summary.sentences)
    size = f"{len(annotations)} labels to {annotations.n_items} items"
    assert f"{annotations.n_annotators} annotators gave {size}" in sentences
    alpha = agree(annotations)["alpha"]
    assert f"alpha {alpha.value:.2f}, {alpha.low:.2f} to {alpha.high:.2f}" in sentences
    score = evaluate(aggregate(annotations, "dawid-skene"), truth).scores["accuracy"]
    assert f"{percent(score.value)} are labelled right" in sentences


def test_those_who_do_not_look_are_named(photos):
    *_, summary = photos
    (random,) = [one for one in summary.sentences if "answer at random" in one]
    assert set(re.findall(r"Zoe|Dario|Tilda|Rufus", random)) == {"Zoe", "Dario"}
    (constant,) = [one for one in summary.sentences if "always give one answer" in one]
    assert set(re.findall(r"Zoe|Dario|Tilda|Rufus", constant)) == {"Tilda", "Rufus"}
    (left_out,) = [one for one in plan_of(summary) if one.startswith("Leave out")]
    assert set(re.findall(r"Zoe|Dario|Tilda|Rufus", left_out)) == {"Zoe", "Dario", "Tilda", "Rufus"}


def test_leaving_out_changes_as_many_labels_as_the_plan_says(photos):
    annotations, _, summary = photos
    random = np.isin(summary.annotator_scores.verdict, ["random", "constant"])
    kept = annotations.keep(~random[annotations.annotator])
    changed = int((aggregate(kept, "dawid-skene").label != summary.result.label).sum())
    assert any(f"this changes {amount(changed, 'label')}." in one for one in plan_of(summary))
    assert replace(summary, without=summary.result).effect == "this changes no label"


def test_items_to_label_again_are_the_least_certain_and_no_more_than_needed(photos):
    annotations, _, _ = photos
    summary = report(annotations, "dawid-skene", target=0.99)
    again, certainty = summary.doubt.again, summary.doubt.certainty
    assert 0 < len(again) < annotations.n_items
    others = np.setdiff1d(np.arange(annotations.n_items), again)
    assert certainty[again].max() <= certainty[others].min()
    assert (np.diff(certainty[again]) >= 0).all()
    left = summary.doubt.errors_after
    assert left.expected <= 0.01 * annotations.n_items + 1e-9
    doubt = 1 - certainty
    share = doubt[np.append(others, again[-1])].sum() / doubt.sum()
    assert summary.errors.expected * share > 0.01 * annotations.n_items
    head, rows = data_of(summary.page())["downloads"]["relabel"]
    assert head == ["item", "votes", "label", "certainty", "why"]
    assert [row[0] for row in rows] == annotations.items[again].tolist()
    (words,) = [one for one in plan_of(summary) if "labelled again" in one]
    assert f"Have {len(again)} items labelled again" in words


def test_charts_hold_the_numbers(photos):
    annotations, truth, summary = photos
    rows = summary.charts["confidence"].spec["data"]["values"]
    assert sum(row["items"] for row in rows) == annotations.n_items
    below = sum(row["items"] for row in rows if row["kind"] == "less certain")
    assert below == int((summary.result.confidence < 0.8).sum())
    shares = summary.charts["classes"].spec["data"]["values"]
    for of in ("labels given", "labels inferred"):
        assert sum(row["share"] for row in shares if row["of"] == of) == pytest.approx(1, abs=1e-5)
    bins = summary.charts["calibration"].spec["data"]["values"]
    assert sum(row["items"] for row in bins) == len(truth)
    right = sum(row["items"] * row["right"] for row in bins)
    labels = dict(zip(annotations.items.tolist(), summary.result.labels.tolist(), strict=True))
    assert right == pytest.approx(sum(labels[item] == label for item, label in truth.items()))


def test_the_most_frequent_difference_is_counted(photos):
    annotations, _, summary = photos
    true, given = summary.result.label[annotations.item].tolist(), annotations.label.tolist()
    pairs = zip(true, given, strict=True)
    counts = Counter(pair for pair in pairs if pair[0] != pair[1])
    (true, given), count = counts.most_common(1)[0]
    classes = annotations.classes
    words = f"{amount(count, 'label')} “{classes[given]}” on items labelled “{classes[true]}”"
    assert words in summary.charts["confusion"].words


def test_every_chart_names_its_axes_and_has_a_caption(photos):
    *_, summary = photos
    assert set(summary.charts) == {
        *("classes", "confidence", "calibration", "annotators", "confusion", "agreement"),
        "annotator scores",
    }
    for one in summary.charts.values():
        assert one.title
        assert one.words.endswith(".")
        for layer in one.spec.get("layer", [one.spec]):
            for axis in ("x", "y"):
                encoded = layer["encoding"][axis]
                assert encoded.get("title") or encoded["axis"].get("title")


def test_annotators_are_intervals_up_to_sixty_and_counted_beyond():
    few, many = (
        identify(
            simulate("one-coin", n_items=60, n_annotators=n, n_classes=2, feedback=20).annotations
        )
        for n in (60, 90)
    )
    drawn = annotators_figure(few).spec
    follow = few.basis.following
    rows = {row["annotator"]: row for row in drawn["data"]["values"]}
    for code, name in enumerate(few.annotations.annotators.tolist()):
        if not np.isnan(follow.correlation[code]):
            assert rows[name]["follows"] == pytest.approx(follow.correlation[code], abs=1e-3)
            assert rows[name]["low"] <= rows[name]["follows"] <= rows[name]["high"]
            assert rows[name]["verdict"] == few.verdict[code]
    shown = drawn["layer"][0]["encoding"]["y"]["sort"]
    assert [rows[name]["follows"] for name in shown] == sorted(
        row["follows"] for row in rows.values()
    )
    counted = Counter()
    for row in annotators_figure(many).spec["data"]["values"]:
        counted[row["verdict"]] += row["annotators"]
    known = ~np.isnan(many.correlation)
    assert counted == Counter(many.verdict[known].tolist())
    assert known.sum() > 60


def test_a_heat_map_needs_half_of_its_cells():
    dense = simulate("one-coin", n_items=80, n_annotators=10, n_classes=2).annotations
    sparse = simulate("one-coin", n_items=400, n_annotators=40, n_classes=2, feedback=3).annotations
    assert "agreement" in report(dense, "majority").charts
    summary = report(sparse, "majority")
    assert "agreement" not in summary.charts
    assert "Least agreement between pairs" in summary.page()


def test_tables_are_columns_of_one_length(photos):
    annotations, _, summary = photos
    assert {len(column) for column in summary.annotators.values()} == {annotations.n_annotators}
    assert {len(column) for column in summary.items.values()} == {annotations.n_items}
    assert summary.items["label"].tolist() == summary.result.labels.tolist()


def test_downloads_of_the_page_hold_nothing_that_a_spreadsheet_would_run():
    rows = [
        ("=1+1", "-x", "+yes"),
        ("=1+1", "bob", "@no"),
        ("-5", "bob", "@no"),
        ("-5", "-x", "@no"),
    ]
    item, annotator, label = zip(*rows, strict=True)
    data = data_of(report(Annotations.from_columns(item, annotator, label), "majority").page())
    for head, rows in data["downloads"].values():
        assert head[-1] == "added_apostrophes"
        cells = {cell for row in rows for cell in row if isinstance(cell, str)}
        assert {cell for cell in cells if cell[:1] in tuple("=+-@")} <= {"-5"}
    assert {row[0] for row in data["downloads"]["labels"][1]} == {"-5", "'=1+1"}
    assert data["items"][0]["name"] in ("=1+1", "-5")


def test_the_page_holds_all_labels_and_annotations(photos):
    annotations, _, summary = photos
    data = data_of(summary.page())
    head, rows = data["downloads"]["labels"]
    assert head == ["item", "label", "confidence"]
    assert [row[0] for row in rows] == annotations.items.tolist()
    assert [row[1] for row in rows] == summary.result.labels.tolist()
    one = data["items"][0]
    position = annotations.items.tolist().index(one["name"])
    span = slice(annotations.index[position], annotations.index[position + 1])
    given = [
        (data["names"][annotator], data["classes"][label])
        for annotator, label in one["annotations"]
    ]
    assert given == [
        (annotations.annotators[annotator], annotations.classes[label])
        for annotator, label in zip(
            annotations.annotator[span], annotations.label[span], strict=True
        )
    ]


def test_lone_labels_are_those_of_a_loop(photos):
    annotations, _, summary = photos
    data = data_of(summary.page())
    alone = {one["name"]: {item for item, *_ in one["alone"]} for one in data["annotators"]}
    expected = {name: [] for name in annotations.annotators.tolist()}
    for item in range(annotations.n_items):
        span = slice(annotations.index[item], annotations.index[item + 1])
        labels = annotations.label[span].tolist()
        if len(labels) < 3:
            continue
        for annotator, label in zip(annotations.annotator[span].tolist(), labels, strict=True):
            if labels.count(label) == 1 and label != summary.result.label[item] >= 0:
                rank = -summary.result.confidence[item], item
                expected[annotations.annotators[annotator]].append((rank, annotations.items[item]))
    for name, rows in expected.items():
        assert alone[name] == {item for _, item in sorted(rows)[:10]}


def test_a_crowd_that_does_not_follow_the_items_is_blamed_on_the_question():
    rng = np.random.default_rng(1)
    annotations = Annotations.from_matrix(rng.integers(4, size=(150, 6)))
    summary = report(annotations, "majority")
    assert "Look at the question" in plan_of(summary)[0]
    assert not any("Leave out" in one for one in plan_of(summary))


def crowd_of(right, n_items=300, n_classes=2, seed=0):
    """Return annotations of people who are right this often, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    hit = rng.random((n_items, len(right))) < right
    wrong = (truth[:, None] + rng.integers(1, n_classes, hit.shape)) % n_classes
    known = {str(item): str(label) for item, label in enumerate(truth.tolist())}
    return Annotations.from_matrix(np.where(hit, truth[:, None], wrong)), known


@pytest.mark.parametrize("right", [0.6, 0.75, 0.9, 0.99])
@pytest.mark.parametrize("target", [0.8, 0.95, 0.99])
def test_a_plan_never_says_both_to_stop_and_to_label_again(right, target):
    annotations, truth = crowd_of([right] * 5)
    for known in (None, truth):
        summary = report(annotations, "dawid-skene", truth=known, target=target)
        stops, again, checks = (
            any(word in one for one in plan_of(summary))
            for word in ("Stop here", "labelled again", "random items against known")
        )
        assert stops == summary.doubt.should_stop == (summary.errors.accuracy[1] >= target)
        assert not (stops and (again or checks))
        assert again == (len(summary.doubt.again) > 0)
        settles = any("probably reached" in one for one in plan_of(summary))
        assert again + stops + settles <= 1
        assert again or stops or settles or checks


def test_camps_are_the_headline_and_nobody_is_wrong_for_them():
    rng = np.random.default_rng(0)
    truth = rng.random(400)
    limits = [0.75, 0.75, 0.75, 0.45, 0.45, 0.45]  # from which on an item is hateful
    hateful = truth[:, None] > np.array(limits) + rng.normal(0, 0.03, (400, 6))
    odd = rng.random(400) < 0.25  # on which the second camp sees the opposite
    hateful[:, 3:] ^= odd[:, None]
    summary = report(Annotations.from_matrix(np.where(hateful, "hate", "fine")), "dawid-skene")
    assert summary.has_camps
    assert "There are two camps" in summary.sentences[1]
    assert plan_of(summary)[0].startswith("Keep the labels of both camps")
    assert not any(word in one for one in plan_of(summary) for word in ("Leave out", "again"))
    assert not any("% of the inferred labels are right" in one for one in summary.sentences)
    assert len(summary.doubt.again) == 0
    assert "Items that divide the camps most" in summary.page()


def test_annotators_are_judged_by_known_items_first():
    annotations, truth = crowd_of([0.95, 0.9, 0.9, 0.5, 0.9])
    summary = report(annotations, "dawid-skene", truth=truth)
    label = annotations.label.reshape(300, 5)
    right = (annotations.classes[label[:, 3]] == list(truth.values())).mean()
    assert f"Right on {right:.0%} of 300 known labels" in summary.annotator_scores.evidence[3]
    assert f"{percent(right)} of 300" in summary.page()
    score = evaluate(summary.result, truth).scores["accuracy"]
    assert summary.sentences[1] == (
        f"Of the 300 items whose label is known, {percent(score.value)} are labelled right "
        f"({percent(score.low)} to {percent(score.high)})."
    )


def test_all_wrong_known_items_are_on_the_page_however_many_items_there_are(monkeypatch):
    monkeypatch.setattr("dissensus.reporting.details.MAX_ITEMS", 20)
    annotations, truth = crowd_of([0.8] * 5)
    summary = report(annotations, "majority", truth=truth)
    shown = data_of(summary.page())["items"]
    labels = dict(zip(annotations.items.tolist(), summary.result.labels.tolist(), strict=True))
    wrong = {item for item, label in truth.items() if labels[item] != label}
    assert len(shown) < 300
    assert wrong <= {one["name"] for one in shown}
    assert len(wrong) > 10


def test_ordered_labels_are_certain_within_one_step():
    rng = np.random.default_rng(0)
    level = rng.integers(5, size=200)[:, None]
    given = np.clip(np.rint(level + rng.normal(0, 0.8, (200, 5))), 0, 4).astype(int)
    annotations = Annotations.from_matrix(given).with_scale("ordinal")
    summary = report(annotations, "dawid-skene")
    for item in range(200):
        label, probability = summary.result.label[item], summary.result.probabilities[item]
        near = sum(probability[k] for k in range(5) if abs(k - label) <= 1)
        assert summary.doubt.certainty[item] == pytest.approx(near)
    assert "are right within one step" in " ".join(summary.sentences)
    assert "within one step" in summary.page()
    known = {str(item): str(label) for item, label in enumerate(level[:, 0].tolist())}
    scored = report(annotations, "dawid-skene", truth=known).sentences
    assert any("are right within one step" in one for one in scored)


def test_split_votes_and_labels_that_nobody_gave_are_named_as_such():
    rows = [("split", "wxyz", "aabb"), ("three", "wxyz", "abca"), ("clear", "wxyz", "aaaa")]
    columns = [
        (item, name, label)
        for item, names, labels in rows
        for name, label in zip(names, labels, strict=True)
    ]
    annotations = Annotations.from_columns(*zip(*columns, strict=True))
    plain = report(annotations, "majority")
    assert plain.doubt.odd_items == {"with a split vote": 1}
    assert "Look at these yourself: 1 item with a split vote." in plain.sentences
    label = np.where(annotations.items == "clear", 2, plain.result.label)
    odd = replace(plain.doubt, result=replace(plain.result, label=label))
    assert odd.odd_items["with a label that nobody gave"] == 1


def test_large_data_are_aggregated_by_one_method_and_the_report_says_so(monkeypatch):
    monkeypatch.setattr("dissensus.reporting.report._ONE_METHOD", 500)
    simulated = simulate("hammer-spammer", n_items=300, n_annotators=10, n_classes=3, feedback=4)
    summary = report(simulated.annotations)
    assert summary.result.method.startswith("hierarchical")
    assert "instead of a pool of methods" in summary.samples[0]
    assert summary.samples[0] in summary.page()


@settings(max_examples=8, deadline=None)
@given(rows=annotation_rows(most=20))
def test_any_annotations_make_a_page(rows):
    summary = report(relation(rows), "majority")
    assert all(one.endswith(".") for one in summary.sentences)
    json.dumps(summary.as_dict(), allow_nan=False)
    assert data_of(summary.page())["classes"] == summary.annotations.classes.tolist()


def test_one_annotator_one_class_and_empty_items_make_a_page():
    alone = Annotations.from_columns("abc", "xxx", "011")
    silent = Annotations.from_columns("aab", "xyx", "000", items=["a", "b", "c"])
    for annotations in (alone, silent):
        summary = report(annotations, "majority")
        assert any("Agreement cannot be measured" in one for one in summary.sentences)
        assert summary.page()


def test_no_labels_and_settings_of_other_kinds_are_refused_in_a_line():
    with pytest.raises(DataError, match="no labels to report on"):
        report(Annotations.from_columns([], [], []))
    with pytest.raises(OptionError, match="report of numbers has no waum"):
        report(Numbers.from_columns("ab", "xy", [1.0, 2.0]), waum={"a": 1.0})


def test_several_options_are_noted():
    annotations = Annotations.from_columns("aabb", "xyxy", ["p|q", "p", "q", "q"])
    summary = report(Reading(annotations, "label-studio", kind="sets"), "majority")
    assert any("every combination counts as a class" in one for one in summary.reading.notes)
    assert "every combination counts as a class" in summary.page()


def test_paths_tables_and_annotations_are_reported_alike(tmp_path):
    import pandas as pd
    import polars as pl

    rows = {"item": list("aabbcc"), "annotator": list("xyxyxy"), "label": list("121122")}
    pl.DataFrame(rows).write_csv(tmp_path / "a.csv")
    sources = tmp_path / "a.csv", pd.DataFrame(rows), pl.DataFrame(rows)
    known = pl.DataFrame({"item": list("abc"), "label": list("112")})
    truth = dict(zip("abc", "112", strict=True))
    expected = Annotations.from_columns(*rows.values())
    result = aggregate(expected, "majority")
    for source in sources:
        assert (
            report(source, "majority", truth=known).sentences
            == report(expected, "majority", truth=truth).sentences
        )
        assert summarise(source, result, truth=known) == summarise(expected, result, truth=truth)
        groups = report_groups(source, expected, "majority", truth=known)
        assert groups.sentences == report_groups(expected, expected, "majority").sentences
        numbers = Numbers.from_columns(rows["item"], rows["annotator"], [1, 2, 1, 1, 2, 2])
        as_read = read(source, scale="numeric")
        assert report(as_read).sentences == report(numbers).sentences


def test_a_report_fits_no_method_twice(monkeypatch):
    from dissensus.aggregation import DawidSkene
    from dissensus.aggregation.classes import ClassMethod

    fitted = []

    def counting(self, annotations, fit=ClassMethod.fit, **settings):
        fitted.append((self, annotations))
        return fit(self, annotations, **settings)

    monkeypatch.setattr(ClassMethod, "fit", counting)
    annotations = simulate("one-coin", n_items=40, n_annotators=5, n_classes=3).annotations
    report(annotations, "dawid-skene")
    whole = [one for one, given in fitted if given is annotations]
    assert whole.count(DawidSkene()) == 1
    assert len(whole) == len(set(whole)) <= 2


# Words


def test_words_for_amounts():
    assert amount(1, "class") == "1 class"
    assert amount(12_345, "item") == "12\u202f345 items"
    assert percent(0.0004) == "below 0.1%"
    assert percent(0.005) == "0.5%"
    assert listed([]) == ""
    assert listed(["a", "b", "c", "d"]) == "a, b, c and d"


# What is inside a page


def test_names_cannot_leave_the_data_of_a_page():
    names = ["</script><script>alert(1)</script>", "<!--", "'\"&", "\u2028", "שלום", "🦊"]
    annotations = Annotations.from_columns(names * 2, names[::-1] * 2, names[1:] * 2 + names[:2])
    summary = report(annotations, "majority", name=names[0])
    page = summary.page()
    assert "<script>alert" not in page
    assert data_of(page)["classes"] == annotations.classes.tolist()


def test_a_page_asks_nobody_for_anything(photos):
    *_, summary = photos
    page = summary.page()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "unsafe-eval" not in policy
    head = page.partition("</style>")[0] + page.partition("<body>")[2].partition("<script>")[0]
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", head)


def test_the_chart_library_is_cached_and_the_cache_may_be_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda _exports: "draw('</script')")
    embedding.bundle.cache_clear()
    library = embedding.bundle()
    assert library == "draw('<\\/script')"
    (cached,) = (tmp_path / "dissensus").iterdir()
    assert cached.read_text("utf-8") == library
    cached.write_text("cached")
    embedding.bundle.cache_clear()
    assert embedding.bundle() == "cached"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    embedding.bundle.cache_clear()
    assert embedding.bundle() == library
    embedding.bundle.cache_clear()


def test_a_report_shows_in_notebooks(photos):
    *_, summary = photos
    assert summary._repr_html_().startswith('<iframe sandbox="allow-scripts')
    assert "<svg" in summary.charts["agreement"]._repr_html_()


@pytest.mark.parametrize(("ending", "begin"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_charts_are_saved_as_pictures(photos, tmp_path, ending, begin):
    *_, summary = photos
    path = tmp_path / f"c.{ending}"
    summary.charts["classes"].save(path)
    assert path.read_bytes().startswith(begin)


def test_a_chart_that_fills_a_page_stays_one_there(photos, tmp_path):
    *_, summary = photos
    save_chart(summary.charts["confidence"].spec, tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text("utf-8")
    assert '"width":"container"' in page
    assert "Content-Security-Policy" in page


# Texts and images


def test_texts_come_from_a_table_of_their_own(tmp_path):
    annotations = Annotations.from_columns("aaabbb", "xyzxyz", "010010")
    (tmp_path / "t.csv").write_text("task,split,text\na,train,Hello\nb,test,World\na,train,again\n")
    assert read_texts(str(tmp_path / "t.csv")).to_dicts() == [
        {"item": "a", "text": "Hello"},
        {"item": "b", "text": "World"},
    ]
    summary = report(annotations, "majority", texts=tmp_path / "t.csv")
    data = data_of(summary.page())
    assert {one["name"]: one["text"] for one in data["items"]} == {"a": "Hello", "b": "World"}
    head = data["downloads"]["check"][0]
    assert head == ["item", "text", "votes", "label", "certainty", "why"]
    (tmp_path / "u.csv").write_text("task,words\na,Hello\n")
    with pytest.raises(DataError, match="no column for the text"):
        read_texts(str(tmp_path / "u.csv"))


def test_images_are_embedded_from_the_folder_of_the_data_alone(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.png").write_bytes(PIXEL)
    (tmp_path / "b.png").write_bytes(PIXEL)
    (folder / "c.png").write_text("not an image")
    (folder / "link.png").symlink_to(tmp_path / "b.png")
    whole = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    assert embedded_image("a.png", folder) == whole
    assert embedded_image(whole) == whole
    for refused in ("../b.png", str(tmp_path / "b.png"), "link.png", "c.png", "d.png", "a\0.png"):
        assert embedded_image(refused, folder) is None
    assert embedded_image("a.png") is None
    assert embedded_image("data:image/svg+xml;base64,AAAA") is None


# Two groups


def test_groups_show_who_changed_and_which_labels():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=200)

    def crowd(right):
        hit = rng.random((200, 5)) < right
        return Annotations.from_matrix(np.where(hit, truth[:, None], (truth[:, None] + 1) % 3))

    before = crowd([0.9, 0.9, 0.8, 0.5, 0.8])
    after = crowd([0.9, 0.9, 0.8, 0.95, 0.8])
    known = {str(item): str(label) for item, label in enumerate(truth)}
    summary = report_groups(before, after, "majority", names=("before", "after"), truth=known)
    people = summary.annotators
    verdicts = dict(zip(people["annotator"], people["verdict"], strict=True))
    assert verdicts.pop("3") == "better"
    assert set(verdicts.values()) == {"no clear change"}
    assert summary.alpha.low > 0
    assert summary.n_common == 200
    first, second = (aggregate(side, "majority").label for side in (before, after))
    assert len(summary.items["item"]) == int((first != second).sum())
    assert summary.same.value == pytest.approx(float((first == second).mean()))
    assert "Clearly better in after: 3." in summary.sentences
    json.dumps(summary.as_dict(), allow_nan=False)
    assert data_of(summary.page())["downloads"]["changed_items"][0][0] == "item"


def test_changed_items_stand_with_the_surest_first():
    one, two = (
        Annotations.from_matrix(np.random.default_rng(seed).integers(3, size=(50, 7)))
        for seed in (0, 1)
    )
    items = report_groups(one, two, "naive-soft").items
    surest = np.minimum(items["first_confidence"], items["second_confidence"]).tolist()
    assert surest == sorted(surest, reverse=True)
    assert len(set(surest)) > 2


def test_kappa_of_groups_is_that_of_scikit_learn():
    from sklearn.metrics import cohen_kappa_score

    one, two = (
        simulate("hammer-spammer", n_items=100, n_annotators=5, n_classes=3, seed=seed).annotations
        for seed in (0, 1)
    )
    summary = report_groups(one, two, "majority")
    labels = [aggregate(side, "majority").label for side in (one, two)]
    assert summary.kappa == pytest.approx(cohen_kappa_score(*labels))


def test_groups_without_anything_in_common_say_so():
    one = Annotations.from_columns("aabb", "xyxy", "0101")
    two = Annotations.from_columns("ccdd", "uvuv", "0122")
    summary = report_groups(one, two, "majority")
    assert summary.sentences[-2:] == [
        "No item is in both, so labels cannot be compared.",
        "No annotator is in both.",
    ]
    assert (
        summary.first.annotations.classes.tolist()
        == summary.second.annotations.classes.tolist()
        == ["0", "1", "2"]
    )
    assert summary.page()


def test_groups_are_split_by_a_column_of_two_values():
    annotations = Annotations.from_columns("aabbcc", "xyxyxz", "010101", source=["p", "m"] * 3)
    sides = split_by(annotations, "source")
    assert sides["p"].annotators.tolist() == ["x"]
    assert sides["m"].annotators.tolist() == ["y", "z"]
    for column, message in (("nothing", "no column 'nothing'"),):
        with pytest.raises(OptionError, match=message):
            split_by(annotations, column)
    three = Annotations.from_columns("abc", "xyz", "010", source=["p", "m", "q"])
    with pytest.raises(OptionError, match="3 values"):
        split_by(three, "source")


# Numbers


def test_numbers_are_reported_with_those_who_answer_too_high():
    rng = np.random.default_rng(0)
    true = rng.normal(0, 10, 200)
    value = true[:, None] + rng.normal(0, 1, (200, 8)) + np.array([0, 0, 0, 6, 0, 0, 0, 0])
    value[:, 4] = rng.normal(0, 10, 200)
    item, annotator = np.divmod(np.arange(1600), 8)
    annotations = Numbers.from_codes(item, annotator, value.ravel(), items=200, annotators=8)
    known = {str(k): str(v) for k, v in enumerate(true)}
    summary = report(annotations, truth=known)
    assert (
        summary.annotator_scores.verdict.tolist()
        == identify(annotations, gold=known).verdict.tolist()
    )
    assert summary.annotator_scores.verdict[3:5].tolist() == ["lenient", "random"]
    np.testing.assert_allclose(summary.doubt.scatter, value.std(axis=1, ddof=1))
    json.dumps(summary.as_dict(), allow_nan=False)
    data = data_of(summary.page())
    assert data["downloads"]["values"][0][:2] == ["item", "value"]
    (harsh,) = [one for one in data["annotators"] if one["name"] == "3"]
    name, level, _ = harsh["styles"][0]
    assert name == "answers higher by"
    assert float(level) == pytest.approx(6, abs=0.5)
    without = np.delete(value, 4, axis=1).mean(axis=1) - value.mean(axis=1)
    np.testing.assert_allclose(summary.without.value - summary.result.value, without)
    mean = f"{np.abs(without).mean():.{summary.doubt.decimals}f}"
    assert plan_of(summary)[0] == (
        "Leave out annotator 4, whose answers do not follow the items: this changes 200 values by "
        f"{mean} on average."
    )


def test_numbers_that_scatter_are_answered_again_with_the_expected_standard_error(tmp_path):
    rng = np.random.default_rng(0)
    spread = 5 * np.sqrt(rng.gamma(2, 0.5, 400))
    value = rng.normal(0, 10, 400)[:, None] + spread[:, None] * rng.normal(size=(400, 6))
    item, annotator = np.divmod(np.arange(2400), 6)
    annotations = Numbers.from_codes(item, annotator, value.ravel(), items=400, annotators=6)
    (tmp_path / "t.csv").write_text("item,text\n" + "".join(f"{k},text {k}\n" for k in range(400)))
    summary = report(annotations, texts=tmp_path / "t.csv")
    wide = summary.doubt.again
    scatter = value.std(axis=1, ddof=1)
    expected = np.flatnonzero(scatter > 2 * np.median(scatter))
    assert wide.tolist() == expected[np.argsort(-scatter[expected])].tolist()
    assert len(wide) > 10
    (words,) = [one for one in plan_of(summary) if "answered again" in one]
    assert words.startswith(f"Have {len(wide)} items answered again")
    now, after = map(float, re.findall(r"from ([0-9.]+) to ([0-9.]+)", words)[0])
    assert after == pytest.approx(now / 2**0.5, rel=0.05)
    assert now == pytest.approx((spread[wide] / 6**0.5).mean(), rel=0.15)
    assert now < 0.9 * (scatter[wide] / 6**0.5).mean()
    head, rows = data_of(summary.page())["downloads"]["relabel"]
    assert head[:6] == ["item", "text", "answers", "value", "standard_error", "scatter"]
    assert head[6:] == ["added_apostrophes"]  # lists of answers begin with a minus
    assert [row[1] for row in rows] == [f"text {k}" for k in wide.tolist()]
    details = data_of(summary.page())["items"][0]
    assert details["text"] == f"text {wide[0]}"
    given = [answer for _, answer in details["annotations"]]
    np.testing.assert_allclose(given, annotations.value[6 * wide[0] : 6 * wide[0] + 6])


def test_few_numbers_make_a_page():
    annotations = Numbers.from_columns("ab", "xy", [1.0, 1.0])
    summary = report(annotations)
    assert "Agreement cannot be measured" in summary.sentences[1]
    assert summary.page()


# The command


def test_the_command_writes_the_page_and_prints_the_sentences(tmp_path):
    simulated = simulate("hammer-spammer", n_items=60, n_annotators=6, n_classes=3)
    rows = zip(
        simulated.annotations.items[simulated.annotations.item].tolist(),
        simulated.annotations.annotators[simulated.annotations.annotator].tolist(),
        simulated.annotations.classes[simulated.annotations.label].tolist(),
        strict=True,
    )
    body = "".join(
        f"{item},{annotator},{label},{int(annotator) % 2}\n" for item, annotator, label in rows
    )
    (tmp_path / "a.csv").write_text(f"item,annotator,label,team\n{body}")
    done = run("report", "a.csv", "-s", "majority", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"6 annotators gave 360 labels to 60 items" in done.stdout
    assert b"What to do:" in done.stdout
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")
    summary = json.loads(run("report", "a.csv", "-s", "majority", "--json", cwd=tmp_path).stdout)
    assert (
        summary["sentences"][0] == "6 annotators gave 360 labels to 60 items, 6.0 each on average."
    )
    page = run("report", "a.csv", "-s", "majority", "-o", "-", cwd=tmp_path).stdout
    assert page.startswith(b"<!doctype html>")
    both = run("report", "a.csv", "a.csv", "-s", "majority", "-o", "r.html", cwd=tmp_path)
    assert b"Of 60 items in both, 0 (0%) got another label." in both.stdout
    by = run("report", "a.csv", "--by", "team", "-s", "majority", "-o", "b.html", cwd=tmp_path)
    assert b"0: 3 annotators gave 180 labels to 60 items." in by.stdout
    numbers = run("report", "a.csv", "--scale", "numeric", "-o", "n.html", cwd=tmp_path)
    assert b"6 annotators gave 360 numbers to 60 items" in numbers.stdout


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("a/answers.csv", "b/answers.csv", ("a", "b")),
        ("a/x/answers.csv", "b/x/answers.csv", ("a", "b")),
        ("before.csv.gz", "data/after.csv", ("before", "after")),
        ("v1.2.csv", "v1.3.csv", ("v1.2.csv", "v1.3.csv")),
        ("a.csv", "x/a.csv", ("a.csv", "x/a.csv")),
        ("a.csv", "a.csv", ("first", "second")),
    ],
)
def test_two_files_have_their_shortest_distinct_names(first, second, names):
    assert _distinct_names(first, second) == names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "r.pdf"], b"a report ends in .html"),
        (["--by", "nothing"], b"no column 'nothing'"),
        (["a.csv", "--gold", "a.csv"], b"--gold does not go with"),
        (["a.csv", "--by", "label"], b"two files and --by"),
        (["-s", "nobody"], b"no method 'nobody'"),
        (["--scale", "numeric"], b"a.csv: line 2: label 'p' is not a number; 2 more"),
    ],
)
def test_the_command_says_what_is_wrong_in_a_line(tmp_path, options, message):
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,p\na,y,q\nb,x,p\n")
    done = run("report", "a.csv", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_no_method_is_fitted_twice_to_the_same_labels(monkeypatch):
    fitted = Counter()
    fit = ClassMethod.fit

    def counted(method, annotations, **given):
        fitted[method.spec, annotations.label.tobytes()] += 1
        return fit(method, annotations, **given)

    monkeypatch.setattr(ClassMethod, "fit", counted)
    summary = report(demo()[0])
    assert summary.without is not None
    assert set(fitted.values()) == {1}


# Real data


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("bluebirds", "39 annotators gave 4212 labels to 108 items"),
        ("labelme", "59 annotators gave 2547 labels to 1000 items"),
    ],
)
def test_real_data_are_reported_with_their_truth(name, counts):
    annotations = shared(name)
    summary = report(annotations, "majority", truth=shared_truth(name))
    assert counts in summary.sentences[0]
    assert f"Of the {annotations.n_items} items whose label is known" in summary.sentences[1]
