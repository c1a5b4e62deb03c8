"""Attention maps, their faithfulness, and the report that shows them."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.numpy import load_file

from dissensus import Annotations
from dissensus.base.names import as_names
from dissensus.deep.nn import Texts, as_inputs, encoder_for
from dissensus.deep.nn.features import Features, features_of
from dissensus.deep.tendency.attention_images import heat
from dissensus.deep.tendency.attention_page import MapNames, attention_report
from dissensus.deep.tendency.auto import Query
from dissensus.deep.tendency.baselines import OwnMajority
from dissensus.deep.tendency.maps import (
    attention_maps,
    faithfulness,
    gradient_maps,
    query_model,
    rank_correlation,
    word_maps,
    word_spans,
)
from dissensus.errors import MethodError, OptionError, OutputError

from ..support import benchmark

simulate_tendency = benchmark("attentive_crowds").simulate_tendency
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
SMALL = Query(width=32, layers=1, heads=2, hidden=32, fc=32, fits=2, epochs=15, lr=1e-2)
NAMES = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "x" * 90, "שלום"]
CLASSES = ["<b>red</b>", "green", "blue"]


@pytest.fixture(scope="module")
def fitted():
    """Return a fitted model, features, and the simulation of four annotators in two groups."""
    simulated = simulate_tendency(
        kind="images", n_items=400, n_annotators=4, groups=2, positions=4, seed=3
    )
    encoder = "patches[size=16,side=8]"
    features = features_of(simulated.inputs, encoder, tokens=True)
    return SMALL.fit(features, simulated.annotations), features, simulated


@pytest.fixture(scope="module")
def report(fitted):
    model, features, simulated = fitted
    few = np.arange(len(NAMES))
    annotations = Annotations.from_matrix(
        np.array(CLASSES, dtype=object)[simulated.labels[few]],
        items=NAMES,
        annotators=NAMES,
        classes=CLASSES,
    )
    return attention_report(
        model,
        as_inputs(simulated.inputs[few]),
        features.take(few),
        MapNames(annotations.items, annotations.annotators, annotations.classes),
        annotations=annotations,
        raw=True,
    )


@pytest.mark.parametrize("layers", ["mean", "last", "rollout"])
def test_maps_sum_to_one(fitted, layers):
    model, features, _ = fitted
    found = attention_maps(model, features, layers=layers, raw=True)
    assert (found.kind, found.shape) == ("patches", (2, 2))
    assert found.values.shape == (400, 4, 4)
    assert_allclose(found.values.sum(axis=2), 1)
    assert [each.shape for each in found.raw] == [(400, 1, 2, 4, 4)] * 2
    for each in found.raw:
        assert_allclose(each.sum(axis=4), 1, atol=1e-5)


def test_maps_may_come_from_one_layer(fitted):
    features = features_of(np.random.default_rng(0).normal(size=(20, 9, 6)))
    annotations = simulate_tendency(n_items=20, n_annotators=2).annotations
    model = Query(width=8, layers=3, heads=2, hidden=8, fc=8, fits=1, epochs=1).fit(
        features, annotations
    )
    for layers, number in (("last", 2), ("penultimate", 1)):
        found = attention_maps(model, features, layers=layers, raw=True)
        assert_allclose(found.values, found.raw[0][:, number].mean(axis=1), atol=1e-6)
    with pytest.raises(MethodError, match="no last but one; use last"):
        attention_maps(fitted[0], fitted[1], layers="penultimate")


def test_maps_point_to_the_true_attention(fitted):
    model, features, simulated = fitted
    found = attention_maps(model, features).values
    assert simulated.pointing(found) > 0.9
    probability = np.random.default_rng(0).random(found.shape)
    assert simulated.pointing(probability) < 0.6
    assert simulated.cosine(found) > simulated.cosine(np.ones_like(found)) + 0.1


def test_some_annotators_have_the_maps_they_have_among_all(fitted):
    model, features, _ = fitted
    for layers in ("mean", "rollout"):
        every, some = (
            attention_maps(model, features, layers=layers),
            attention_maps(model, features, [3, 1], layers=layers),
        )
        assert_allclose(some.values, every.values[:, [3, 1]], atol=1e-6)


def test_a_token_for_the_whole_image_is_left_out():
    features = features_of(np.random.default_rng(0).normal(size=(20, 10, 6)))
    annotations = simulate_tendency(n_items=20, n_annotators=2).annotations
    model = Query(width=8, layers=1, heads=2, hidden=8, fc=8, fits=1, epochs=1).fit(
        features, annotations
    )
    found = attention_maps(model, features)
    assert (found.kind, found.shape) == ("patches", (3, 3))
    assert_allclose(found.values.sum(axis=2), 1)
    assert attention_maps(model, features, all_tokens=True).values.shape == (20, 2, 10)


def test_models_without_queries_have_no_maps(fitted):
    _, features, simulated = fitted
    with pytest.raises(MethodError, match="fit it with query or qumatl"):
        attention_maps(OwnMajority().fit(features, simulated.annotations), features)
    base = Query(qformer=False, fits=1, epochs=1).fit(features, simulated.annotations)
    with pytest.raises(MethodError, match="without a Q-Former"):
        attention_maps(base, features)


def test_queries_inside_another_model_are_found(fitted):
    model, features, _ = fitted

    class Mix(OwnMajority().fit(features, fitted[2].annotations).__class__):
        def __init__(self):
            self.parts = [("first", None), ("second", model)]

    assert query_model(Mix()) is model


def test_faithfulness_is_high_if_maps_show_what_matters(fitted):
    model, features, _ = fitted
    found = faithfulness(model, features, most=24)
    assert found.deletion < found.deletion_random - 0.05
    assert found.insertion > found.insertion_random + 0.05
    assert found.randomization > 0.1
    assert found.stability > 0.6
    assert found.gradient > 0.3
    assert found.distance > 0.2
    assert set(found.as_dict()) == {
        "deletion", "deletion_random", "insertion", "insertion_random", "randomization",
        "stability", "gradient", "distance", "n_items",
    }  # fmt: skip


def test_measuring_faithfulness_does_not_change_the_model(fitted):
    model, features, _ = fitted
    before = model.log_proba(features)
    faithfulness(model, features, most=4)
    assert np.array_equal(model.log_proba(features), before)


def test_gradient_maps_are_zero_where_nothing_is():
    simulated = simulate_tendency(n_items=30, n_annotators=2, groups=2, positions=4)
    mask = np.ones((30, 4), bool)
    mask[:, 3] = False
    features = Features.from_tokens(simulated.inputs, mask)
    model = Query(width=8, layers=1, heads=2, hidden=8, fc=8, fits=1, epochs=1).fit(
        features, simulated.annotations
    )
    found = gradient_maps(model, features, np.arange(2))
    assert found.shape == (30, 2, 4)
    assert not found[:, :, 3].any()
    assert found[:, :, :3].min() > 0
    assert rank_correlation(found, -found) == pytest.approx(-1)


def test_words_add_up_their_parts():
    text = "Unbelievably good, so it was"
    encoder = encoder_for("minilm")
    source = encoder.prepare(Texts((text,)))
    n_tokens = source[[0]].shape[1]
    assert n_tokens > len(text.split()) + 2  # a word is in parts, and there are two marks

    class Given:
        values = np.ones((1, 2, n_tokens)) / n_tokens

    found = word_maps(Given(), [text], encoder.tokenizer, 128)[0]
    assert found.shape == (2, 5)
    assert_allclose(found.sum(axis=1), 1)
    assert found[0, 0] > found[0, 2]
    assert [text[begin:end] for begin, end in word_spans(text)] == text.split()


def test_colours_are_stronger_where_more_is():
    found = heat(np.array([0.0, 0.5, 1.0]), 1.0)
    assert found[:, 3].tolist() == sorted(found[:, 3].tolist())
    assert found[0, 3] == 0
    assert found[2, 1] < found[1, 1]


def test_a_report_is_a_folder_of_pictures_a_sheet_a_table_and_a_page(report, tmp_path):
    from PIL import Image

    report.save(tmp_path / "maps")
    kept = {path.name for path in (tmp_path / "maps").iterdir()}
    assert kept == {
        "index.html",
        "sheet.png",
        "pictures",
        "maps.csv",
        "faithfulness.json",
        "raw.safetensors",
    }
    assert len(list((tmp_path / "maps" / "pictures").iterdir())) == 16
    with (tmp_path / "maps" / "maps.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 4 * 4
    assert rows[0]["item"] == NAMES[0]
    assert rows[1]["position"] == "row 1, column 2"
    total = sum(float(row["weight"]) for row in rows)
    assert total == pytest.approx(16, abs=1e-3)
    assert json.loads((tmp_path / "maps" / "faithfulness.json").read_text())["n_items"] == 4
    raw = load_file(tmp_path / "maps" / "raw.safetensors")
    assert raw["fit 2"].shape == (4, 1, 2, 4, 4)
    with Image.open(tmp_path / "maps" / "sheet.png") as sheet:
        assert sheet.width > 5 * 160
    report.save(tmp_path / "maps")  # maps may take the place of maps
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="holds something else"):
        report.save(tmp_path / "other")
    assert (tmp_path / "other" / "thesis.txt").exists()


def test_a_report_has_the_same_as_json(report):
    summary = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    first = summary["items"][0]["annotators"][0]
    assert first["annotator"] == NAMES[0]
    assert first["label"] in CLASSES
    assert first["given"] in CLASSES
    assert sum(first["map"]) == pytest.approx(1, abs=1e-4)


def test_names_are_data_on_the_page(report):
    page = report.page()
    assert "<script>alert" not in page
    assert "onerror=alert" not in page.replace("onerror=alert(2)&gt;", "")
    assert "http" not in page.split("<body>")[1].replace("http-equiv", "")
    assert "default-src 'none'" in page.split("</head>")[0].replace("&#39;", "'")


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
def test_the_page_works_in_a_browser(report, tmp_path):
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    (tmp_path / "index.html").write_text(report.page(), encoding="utf-8")
    with sync.sync_playwright() as running:
        started = running.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        page = started.new_page()
        wrong = []
        page.on(
            "console",
            lambda summary: wrong.append(summary.text) if summary.type == "error" else None,
        )
        page.on("pageerror", lambda summary: wrong.append(str(summary)))
        page.goto(f"file://{tmp_path}/index.html")
        assert page.locator(".item").count() == 4
        assert page.locator(".item:visible").count() == 4
        page.fill("#find", "שלום")
        assert page.locator(".item:visible").count() == 1
        page.fill("#find", "")
        page.select_option("#who", index=2)
        assert page.locator(".card[data-who]:visible").count() == 4
        page.select_option("#who", "")
        page.check("#difference")
        assert page.locator(".heat.map:visible").count() == 0
        assert page.locator(".heat.change:visible").count() == 16
        assert wrong == []
        started.close()


def test_maps_of_texts_are_of_words():
    simulated = simulate_tendency(kind="text", groups=2, n_items=120, n_annotators=2, seed=1)
    encoder = encoder_for("minilm")
    texts = Texts(simulated.inputs)
    features = features_of(texts, "minilm", tokens=True)
    model = Query(width=32, layers=1, heads=2, hidden=32, fc=32, fits=1, epochs=8, lr=5e-3).fit(
        features, simulated.annotations
    )
    few = np.arange(3)
    maps_report = attention_report(
        model,
        texts.take(few),
        features.take(few),
        MapNames(as_names("abc"), as_names("xy"), simulated.annotations.classes),
        encoder=encoder,
    )
    assert [one.kind for one in maps_report.items] == ["words"] * 3
    assert maps_report.items[0].words == simulated.inputs[0].split()
    assert maps_report.items[0].maps.shape == (2, len(maps_report.items[0].words))
    assert "tint" in maps_report.page()
    with pytest.raises(OptionError, match="need the encoder"):
        attention_report(
            model,
            texts.take(few),
            features.take(few),
            MapNames(as_names("abc"), as_names("xy"), simulated.annotations.classes),
        )


def test_maps_of_videos_are_curves_over_frames():
    simulated = simulate_tendency(kind="video", n_items=40, n_annotators=2, groups=2, positions=4)
    features = Features.from_tokens(np.random.default_rng(0).normal(size=(40, 4, 3, 6)))
    method = Query(width=8, layers=2, heads=2, hidden=8, fc=8, fits=1, epochs=1, frame_queries=3)
    model = method.fit(features, simulated.annotations)
    found = attention_maps(model, features, raw=True)
    assert (found.kind, found.shape) == ("frames", (4,))
    assert_allclose(found.values.sum(axis=2), 1)
    assert found.raw[0].shape == (40, 2, 2, 2, 12)
    assert not np.isnan(faithfulness(model, features, most=4).deletion)
    few = np.arange(2)
    maps_report = attention_report(
        model,
        as_inputs(simulated.inputs[few]),
        features.take(few),
        MapNames(as_names("ab"), as_names("xy"), simulated.annotations.classes),
    )
    assert len(maps_report.items[0].images) == 4
    assert "frame 4" in maps_report.page()
    assert torch.is_tensor(model.nets[0].tokens.positions)


def test_videos_go_from_files_to_maps(tmp_path):
    from click.testing import CliRunner

    from dissensus.cli.tendency import map_
    from dissensus.deep.nn import read_inputs
    from dissensus.deep.tendency.classifier import TendencyClassifier

    from .test_videos import BLUE, GREEN, RED, write_video

    folder = tmp_path / "clips"
    folder.mkdir()
    rows = []  # ann says what colour comes first, bob what comes last
    for number, simulated in enumerate(np.random.default_rng(0).integers(3, size=(18, 3))):
        parts = [(RED, GREEN, BLUE)[each] for each in simulated]
        write_video(folder / f"clip{number}.mp4", parts, each=12)  # three seconds
        words = [("red", "green", "blue")[each] for each in simulated]
        rows += [(f"clip{number}", "ann", words[0]), (f"clip{number}", "bob", words[2])]
    annotations = Annotations.from_columns(*zip(*rows, strict=True))
    with (tmp_path / "answers.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("item", "annotator", "label"), *rows])
    videos = read_inputs(folder, annotations.items, frames=6)
    spec = (
        "query[width=16,layers=1,heads=2,hidden=16,fc=16,fits=1,dropout=0,frame_queries=2,"
        "epochs=25,batch=4,lr=0.01,held_out=0]"
    )
    estimator = TendencyClassifier(spec, encoder="patches[size=16,side=8]").fit(videos, annotations)
    found = estimator.predict_annotators(videos)
    right = [
        found[annotations.items.tolist().index(item), ["ann", "bob"].index(who)] == label
        for item, who, label in rows
    ]
    assert np.mean(right) > 0.55  # a third by chance
    estimator.save(tmp_path / "model")
    arguments = [str(tmp_path / "model"), str(folder), "--frames", "6", "--top", "3", "--raw"]
    arguments += ["--annotations", str(tmp_path / "answers.csv"), "-o", str(tmp_path / "maps")]
    summary = CliRunner().invoke(map_, arguments, catch_exceptions=False)
    assert summary.exit_code == 0
    assert "attention the model paid to a frame" in summary.output
    with (tmp_path / "maps" / "maps.csv").open(encoding="utf-8", newline="") as file:
        weights = list(csv.DictReader(file))
    assert len(weights) == 3 * 2 * 6
    assert weights[0]["item"] == "clip0"
    assert weights[5]["position"] == "frame 6"
    assert load_file(tmp_path / "maps" / "raw.safetensors")["fit 1"].shape == (3, 2, 2, 2, 12)
    page = (tmp_path / "maps" / "index.html").read_text(encoding="utf-8")
    assert "gave <b" in page
    some = CliRunner().invoke(
        map_, [*arguments, "--among", "bob", "--only", "clip4", "--json"], catch_exceptions=False
    )
    summary = json.loads(some.stdout)
    assert [one["annotator"] for one in summary["items"][0]["annotators"]] == ["bob"]
    assert summary["items"][0]["item"] == "clip4"
