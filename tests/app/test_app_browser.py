"""The workbench in Debian's Chromium: a reviewer's whole way, two at once, keyboard, phones."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest

from dissensus import demo, write
from dissensus.app.journal import Journal

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"
)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    + "1f15c4890000000d49444154789c6360"
    "f8cf500f0003860180" + "5a347d6b0000000049454e44ae426082"
)
NAV = ("Overview", "Review", "Items", "Annotators", "What if", "Take home")


class Bench:
    """`dissensus open` in a process of its own."""

    def __init__(self, path: Path, *options: str) -> None:
        line = [sys.executable, "-m", "dissensus", "open", str(path), "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(
            [*line, "--strategy", "dawid-skene-map", *options], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        for text in self.process.stderr:
            found = re.search(r"(http://127.0.0.1:\d+)/enter\?token=\S+", text)
            if found:
                self.link, self.address = found[0], found[1]
                return
        raise AssertionError("the workbench did not start")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield started
        started.close()


@pytest.fixture
def data(tmp_path):
    annotations, _ = demo()
    annotations = annotations.subset(items=annotations.items[:80].tolist())
    write(annotations, tmp_path / "answers.csv")
    items = annotations.items.tolist()
    (tmp_path / "one.png").write_bytes(PIXEL)
    texts = ["one.png", *[f"<b>photo</b> {k}" for k in range(1, len(items))]]
    pl.DataFrame({"item": items, "text": texts}).write_csv(tmp_path / "texts.csv")
    return tmp_path


@pytest.fixture
def bench(data):
    one = Bench(data / "answers.csv", "--inputs", str(data / "texts.csv"))
    yield one
    one.end()


class Person:
    """A reviewer with a browser; its errors are collected."""

    def __init__(self, browser, bench: Bench, name: str = "ann", **settings) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on(
            "console",
            lambda one: (
                self.problems.append(one.text) if one.type in ("error", "warning") else None
            ),
        )
        self.page.on("pageerror", lambda one: self.problems.append(str(one)))
        self.page.goto(bench.link)
        self.page.fill("footer input[name=name]", name)
        self.page.click("footer button")
        self.page.wait_for_selector("#decide")

    def go(self, title: str) -> None:
        self.page.click(f"nav >> text={title}")
        self.page.wait_for_selector(f"nav a[aria-current] >> text={title}")
        self.page.wait_for_function("() => !document.querySelector('.htmx-added, .htmx-settling')")

    def decide(self, key: str) -> str:
        """Press a key, wait for the next item, and return the one that was decided."""
        item = self.page.input_value("#decide input[name=item]")
        self.page.keyboard.press(key)
        self.page.wait_for_function(
            "(item) => document.querySelector('#decide input[name=item]')?.value !== item", arg=item
        )
        return item

    def end(self) -> None:
        self.context.close()
        assert self.problems == []


def test_the_whole_way_of_a_reviewer(browser, bench, data):
    ann = Person(browser, bench)
    page = ann.page
    ann.go("Overview")
    page.wait_for_selector("html[data-drawn=yes]")
    assert page.locator("svg").count() >= 2
    ann.go("Items")
    page.select_option("select[name=votes]", "split")
    page.wait_for_url("**votes=split*")
    page.fill("input[name=q]", "</b> 1")
    page.wait_for_url("**q=%3C*")
    page.wait_for_function("() => !document.querySelector('#found').innerText.includes('page')")
    shown = int(page.inner_text("#found p").split()[0])
    assert 0 < shown == page.locator("#found tbody tr").count()
    ann.go("Review")
    decided = [ann.decide(key) for key in "12345123sx"]
    assert len(set(decided)) == 10
    page.keyboard.press("u")
    page.wait_for_url("**/items/one?*")
    assert page.input_value("#decide input[name=item]") == decided[-1]
    ann.go("What if")
    page.check("input[name=leave] >> nth=0")
    page.fill("input[name=class-0]", "boar")
    page.click("text=Show the effect")
    page.wait_for_selector("text=mean certainty")
    page.click("text=Keep this")
    page.wait_for_selector("text=Kept now")
    ann.go("Take home")
    with page.expect_download() as waiting:
        page.click("text=Everything, as one zip file")
    archive = zipfile.ZipFile(waiting.value.path())
    known = {
        row["item"]: row["label"]
        for row in csv.DictReader(io.TextIOWrapper(archive.open("decisions.csv")))
    }
    classes = ["boar", "boar", "deer", "empty", "fox"]
    assert known == {
        item: classes[int(key) - 1] for item, key in zip(decided[:8], "12345123", strict=True)
    }
    labels = {
        row["item"]: row["label"]
        for row in csv.DictReader(io.TextIOWrapper(archive.open("labels.csv")))
    }
    assert known.items() <= labels.items()
    archive.close()
    ann.end()
    bench.end()
    again = Bench(data / "answers.csv")
    ann = Person(browser, again)
    ann.go("Overview")
    assert "8 items decided" in ann.page.inner_text("main")
    assert "ann: 9 decided" in ann.page.inner_text("main")
    ann.end()
    again.end()


def test_two_reviewers_at_once_see_each_other(browser, bench):
    ann, bob = Person(browser, bench, "ann"), Person(browser, bench, "bob")
    first = [(ann.decide("1"), bob.decide("2")) for _ in range(3)]
    assert len({item for pair in first for item in pair}) == 6
    item = first[0][0]
    bob.page.goto(f"{bench.address}/items")
    bob.page.fill("input[name=q]", item)
    bob.page.wait_for_function("() => document.querySelectorAll('#found tbody tr').length === 1")
    bob.page.click("#found tbody a")
    bob.page.wait_for_selector("#decide")
    assert "ann: badger" in bob.page.inner_text("main")
    bob.page.keyboard.press("3")
    bob.page.wait_for_selector("text=reviewers differ")
    ann.go("Overview")
    assert "1 item on which reviewers differ" in ann.page.inner_text("main")
    ann.end()
    bob.end()


def test_a_slow_click_on_a_found_item_opens_it(browser, bench):
    ann = Person(browser, bench)
    page = ann.page
    for title, found in (("Items", "photo"), ("Annotators", "Zoe")):
        ann.go(title)
        with page.expect_response(lambda one: "q=" in one.url):
            page.fill("input[name=q]", found)
        page.wait_for_url("**q=*")
        box = page.locator("#found tbody a >> nth=0").bounding_box()
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.down()
        page.wait_for_timeout(600)
        page.mouse.up()
        page.wait_for_url("**/one?name=*")
    ann.end()


def test_the_keyboard_is_enough(browser, bench):
    ann = Person(browser, bench)
    page = ann.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    item = page.input_value("#decide input[name=item]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.value") == "boar"
    page.keyboard.press("c")
    page.keyboard.type("1 comment")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "(was) => document.querySelector('#decide input[name=item]').value !== was", arg=item
    )
    page.keyboard.press("u")
    page.wait_for_selector(".status")
    page.wait_for_url("**/items/one?*")
    page.keyboard.press("n")
    page.wait_for_url("**/review")
    ann.end()


@pytest.mark.parametrize(("width", "theme"), [(1200, "light"), (400, "dark")])
def test_pages_are_accessible_and_fit(browser, bench, width, theme):
    from axe_playwright_python.sync_playwright import Axe

    ann = Person(browser, bench, viewport={"width": width, "height": 800}, color_scheme=theme)
    page = ann.page
    ann.decide("1")
    faults = []
    paths = ["/", "/review", "/items", "/annotators", "/what-if?try=1&leave=Zoe", "/take-home"]
    paths += ["/annotators/one?name=Zoe", "/items/one?name=nothing"]
    for path in paths:
        with page.expect_navigation():
            page.goto(bench.address + path)
        if path == "/":
            page.wait_for_selector("html[data-drawn=yes]")
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        faults += [
            (path, one["id"], one["nodes"][0]["html"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    assert faults == []
    ann.problems = [one for one in ann.problems if "400 (Bad Request)" not in one]  # no such item
    ann.end()


def test_images_of_items_are_shown(browser, bench):
    ann = Person(browser, bench)
    ann.page.goto(f"{bench.address}/items?sort=item")
    ann.page.click("#found tbody a >> nth=0")
    image = ann.page.wait_for_selector("img.item-image")
    ann.page.wait_for_function("() => document.querySelector('img.item-image').naturalWidth === 1")
    assert image.get_attribute("src").startswith("/file?item=")
    ann.end()


def test_files_of_items_run_nothing_and_send_nothing(tmp_path, browser):
    script = "<script>window.ran = 1; fetch('http://127.0.0.1:9/' + document.cookie)</script>"
    page = f"<!doctype html><body onload='window.ran = 1'>{script}<img src='http://127.0.0.1:9/'>"
    drawing = f"<svg xmlns='http://www.w3.org/2000/svg' onload='window.ran = 1'>{script}</svg>"
    files = {
        "page.png": page.encode(),
        "drawing.png": drawing.encode(),
        "drawing.svg": drawing.encode(),
        "both.png": PIXEL + page.encode(),
        "both.gif": b"GIF89a/*" + bytes(20) + b"*/=1;window.ran=1",
        "page.mp4": page.encode(),
        "wide.webp": page.encode("utf-16"),
        '"><img src=x onerror=window.ran=1>.png': PIXEL,
        f"{'n' * 240}.png": PIXEL,
    }
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    texts = [*files, "http://127.0.0.1:9/x.png", "../x.png", page, f"{'x' * 5000}.png"]
    items = [*map(str, range(len(texts) - 1)), f"<svg onload=window.ran=1>{'i' * 3000}"]
    rows = [(item, who, label) for item in items for who, label in (("a", "x"), (script, "y"))]
    pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row").write_csv(
        tmp_path / "answers.csv"
    )
    pl.DataFrame({"item": items, "text": texts}).write_csv(tmp_path / "texts.csv")
    bench = Bench(tmp_path / "answers.csv", "--inputs", str(tmp_path / "texts.csv"))
    try:
        context = browser.new_context()
        requests: list[str] = []
        context.on("request", lambda request: requests.append(request.url))
        tab = context.new_page()
        tab.goto(bench.link)
        for item in items:
            for path in ("items/one?name=", "file?item="):
                tab.goto(f"{bench.address}/{path}{quote(item)}")
                assert tab.evaluate("window.ran") is None
        tab.goto(f"{bench.address}/")
        for tag in ("script", "iframe", "object", "embed"):
            for item in items:
                tab.evaluate(
                    "([tag, url]) => { const one = document.createElement(tag);"
                    "one[tag === 'object' ? 'data' : 'src'] = url; document.body.append(one); }",
                    [tag, f"{bench.address}/file?item={quote(item)}"],
                )
        tab.wait_for_timeout(500)
        assert tab.evaluate("window.ran") is None
        assert len(requests) > 2 * len(items)
        assert {url for url in requests if not url.startswith((bench.address, "data:"))} == set()
        context.close()
    finally:
        bench.end()


def test_take_home_and_what_if_say_what_is_skipped_and_what_failed(data, browser):
    def stored(**changes):
        journal = Journal(data / "answers.csv.workbench")
        journal.add("ann", "change", value=json.dumps({"renamed": {}, **changes}))
        journal.close()

    stored(left_out=["gone"])
    bench = Bench(data / "answers.csv")
    tab = browser.new_page()
    try:
        tab.goto(bench.link)
        for path in ("take-home", "what-if"):
            tab.goto(f"{bench.address}/{path}")
            assert "'gone' is left out, but has no labels in the file any more" in tab.inner_text(
                "main"
            )
        tab.click("text=Take this back")
        tab.wait_for_selector("text=Kept now", state="detached")
        tab.goto(f"{bench.address}/take-home")
        assert "gone" not in tab.inner_text("main")
    finally:
        bench.end()
    stored(left_out=[], method="kos")
    bench = Bench(data / "answers.csv")
    try:
        tab.goto(bench.link)
        tab.goto(f"{bench.address}/take-home")
        assert "The last fit failed" in tab.inner_text("main")
        assert "kos chooses between 2 classes" in tab.inner_text("main")
        assert tab.locator(".files a").count() == 2
    finally:
        tab.close()
        bench.end()
