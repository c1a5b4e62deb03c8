"""Results in notebooks: the page about them run by a kernel, and what it shows in a browser."""

import re
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dissensus as ds
from dissensus.answers import KINDS, kind_class
from dissensus.base.tables import Drawable, Tabular
from dissensus.deep.meta.sections import EmbeddingView, Stage
from dissensus.metrics import pairwise
from dissensus.quality import camps, clean, score
from dissensus.reporting.report import Report

PAGE = Path(__file__).parents[2] / "docs" / "notebooks.md"
ELSEWHERE = ("judging", "deep", "scale")  # rooms whose own tests show their results
HOSTILE = ["<script>alert(1)</script>", "\"&'</svg><img src=x onerror=alert(2)>", "__proto__"]


@pytest.fixture(scope="module")
def results():
    """Return a result of every kind about names that try to be markup."""
    rng = np.random.default_rng(0)
    label = np.array(HOSTILE, dtype=object)[rng.integers(3, size=(40, 3))]
    annotations = ds.Annotations.from_matrix(
        label, items=[f"{HOSTILE[i % 3]} {i}" for i in range(40)], annotators=HOSTILE
    )
    numbers = ds.Numbers.from_columns(HOSTILE * 2, ["x"] * 3 + ["y"] * 3, range(6))
    result = ds.aggregate(annotations)
    return [
        annotations,
        numbers,
        result,
        ds.aggregate(numbers),
        ds.evaluate(result, dict.fromkeys(annotations.items.tolist(), HOSTILE[0])),
        ds.agree(annotations, by="class", resamples=50),
        ds.identify(annotations),
        score(annotations, "entropy"),
        camps(annotations),
        pairwise(annotations),
        clean(annotations, ["labels < 2"]),
        ds.item_scores(annotations),
        ds.crowdlab(annotations, np.full((40, 3), 1 / 3)),
        ds.compare(annotations, folds=2),
        ds.check(annotations),
        ds.plan(annotations, budget=5, draws=2),
        ds.bootstrap(annotations, resamples=3),
        ds.report(annotations, "majority", name=HOSTILE[0]),
        view(),
        *answers(),
    ]


def view():
    """Return a view of a small task."""
    names = np.array(HOSTILE, dtype=object)
    stage = Stage("votes", np.eye(3))
    return EmbeddingView(
        names, names, np.eye(3, 2), np.ones(3, dtype=bool), (stage,), np.array([0, -1, 2])
    )


def answers():
    """Return answers of every kind, and a consensus."""
    spans = [[{"start": 0, "end": 3, "label": HOSTILE[0]}], []]
    boxes = [[{"x": 1, "y": 1, "w": 5, "h": 4, "label": HOSTILE[1]}], []]
    values = {
        "spans": spans,
        "boxes": boxes,
        "points": [[{"x": 1, "y": 2, "label": HOSTILE[2]}], []],
        "masks": [{"counts": [1, 2, 3], "size": [2, 3]}, {"counts": [6], "size": [2, 3]}],
        "sets": [HOSTILE[:2], []],
        "rankings": [HOSTILE, HOSTILE[::-1]],
        "texts": HOSTILE[:2],
    }
    assert values.keys() == KINDS.keys()
    given = [
        kind_class(kind).from_values(HOSTILE[:2], HOSTILE[:2], value)
        for kind, value in values.items()
    ]
    return [*given, ds.aggregate(given[0]), ds.identify(given[0])]


def test_every_result_with_a_table_is_here(results):
    kinds, left = set(), [Tabular]
    while left:
        below = left.pop().__subclasses__()
        left += below
        kinds |= {kind for kind in below if not kind.__subclasses__()}
    ours = {kind for kind in kinds if kind.__module__.split(".")[1] not in ELSEWHERE}
    assert ours == {type(result) for result in results} - {EmbeddingView}


def test_dataframes_of_both_libraries_hold_the_same(results, tmp_path):
    pytest.importorskip("pandas")
    for result in results:
        frame, pandas = result.to_polars(), result.to_pandas()
        assert frame.columns == pandas.columns.tolist()
        assert pandas.shape == frame.shape
        for name in frame.columns:
            there = [None if value != value else value for value in pandas[name].tolist()]
            assert there == frame[name].to_list(), name
        ds.write(result, tmp_path / "table.parquet")
        assert pl.read_parquet(tmp_path / "table.parquet").equals(frame)


def test_a_result_is_shown_in_a_line(results):
    for result in results:
        names = tuple(f"<{one.__name__.lower()}" for one in type(result).__mro__)
        assert repr(result).lower().startswith(names)
        assert "\n" not in repr(result)
        assert len(repr(result)) < 400 or isinstance(result, Report)


def test_names_are_escaped_in_tables_and_charts(results):
    for result in results:
        shown = result._repr_html_()
        if isinstance(result, Drawable):
            with suppress(ds.DataError):  # there is nothing to draw
                shown += result.plot()._repr_html_()
        assert "<script" not in shown
        assert "<img" not in shown


def test_a_notebook_shows_the_first_rows_and_columns():
    labels = np.arange(60).reshape(20, 3) % 30
    result = ds.aggregate(ds.Annotations.from_matrix(labels), "naive-soft")
    shown = result._repr_html_()
    assert shown.count("<tr>") == 1 + 10 + 1
    assert shown.count("<th ") == 12 + 1
    assert shown.count("…") == 1 + 10 + 13


def test_charts_are_saved_as_svg_png_and_html(results, tmp_path):
    figure = next(one for one in results if isinstance(one, ds.ClassAggregation)).plot()
    for ending, begin in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".html", b"<!doctype html>")):
        figure.save(tmp_path / f"chart{ending}")
        assert (tmp_path / f"chart{ending}").read_bytes().startswith(begin)


def test_there_is_no_chart_without_numbers():
    single = ds.Annotations.from_columns("abc", "xyz", "011")
    with pytest.raises(ds.DataError, match="no item has two labels"):
        ds.compare(single, folds=2).plot()
    with pytest.raises(ds.DataError, match="plan with draws=10"):
        ds.plan(single, budget=1, draws=0).plot()


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """Return the page as a notebook, run by a kernel of its own."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("pandas")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    cells = [
        nbformat.v4.new_code_cell("\n".join(re.findall(r"^>>> (.*)$", block, re.MULTILINE)))
        for block in blocks
    ]
    made = nbformat.v4.new_notebook(cells=cells)
    folder = tmp_path_factory.mktemp("notebook")
    client = nbclient.NotebookClient(
        made, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def outputs(notebook):
    """Return what the cells show as HTML."""
    shown = [one for cell in notebook.cells for one in cell.outputs if "data" in one]
    return [one["data"]["text/html"] for one in shown if "text/html" in one["data"]]


def test_the_page_runs_in_a_notebook_and_shows_tables_and_charts(notebook):
    shown = outputs(notebook)
    assert sum("<table" in one for one in shown) == 4
    assert sum("<svg" in one for one in shown) == 5
    for cell in notebook.cells:
        assert not [one for one in cell.outputs if one.output_type in ("error", "stream")]


@pytest.mark.parametrize(
    ("scheme", "ink", "paper"), [("light", "#111111", "#ffffff"), ("dark", "#eeeeee", "#111111")]
)
def test_outputs_take_the_colours_of_the_page_and_fetch_nothing(
    notebook, tmp_path, scheme, ink, paper
):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if chromium is None:
        pytest.skip("Debian's chromium is not installed: apt-get install chromium")
    page = tmp_path / f"{scheme}.html"
    body = "\n<hr>\n".join(outputs(notebook))
    style = f"body{{background:{paper};color:{ink};font:14px sans-serif}}"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><style>{style}</style><body>{body}', "utf-8"
    )
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        tab = browser.new_page(viewport={"width": 1000, "height": 800})
        fetched = []
        tab.on("request", lambda request: fetched.append(request.url))
        tab.goto(page.as_uri())
        wanted = tab.evaluate("getComputedStyle(document.body).color")
        colours = tab.evaluate(
            "[...document.querySelectorAll('td, th, div, figcaption')]"
            ".map(one => getComputedStyle(one).color)"
        )
        fills = tab.evaluate(
            "[...document.querySelectorAll('svg text')].map(one => getComputedStyle(one).fill)"
        )
        tab.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
        browser.close()
    assert fetched == [page.as_uri()]
    assert set(colours) == {wanted}
    assert set(fills) == {wanted}
