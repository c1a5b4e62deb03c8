"""Write the pictures of reports on answers and of the workbench: docs/images/*.png.

python docs/pictures.py      needs playwright and Chromium
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

import dissensus as ds

IMAGES = Path(__file__).parent / "images"
CITIES = ("Rome", "Paris", "Oslo", "Lima")
PEOPLE = ("Ann", "Bob", "Cy", "Dee", "Eve")
WORDS = ("Ada Lovelace met {} in", "Yesterday Grace Hopper left {} for", "The mayor of {} wrote to")


def boxes(rng: np.random.Generator) -> ds.Boxes:
    """Return boxes of five annotators on forty images, who miss some and draw some too many."""
    rows = []
    for item in range(40):
        true = rng.uniform((0, 0, 60, 60), (500, 300, 160, 160), (int(rng.integers(1, 5)), 4))
        for j, name in enumerate(PEOPLE):
            kept = true[rng.random(len(true)) < 0.95 - 0.1 * j]
            given = kept + rng.normal(0, 4 + 2 * j, kept.shape)
            if rng.random() < 0.1 + 0.05 * j:
                given = np.vstack([given, rng.uniform((0, 0, 40, 40), (500, 300, 120, 120))])
            rows += [(f"image {item}", name, *box) for box in given.round(1)]
            rows += [(f"image {item}", name, *[None] * 4)] * (len(given) == 0)
    return ds.Boxes.from_columns(*map(list, zip(*rows, strict=True)))


def spans(rng: np.random.Generator) -> tuple[ds.Spans, str]:
    """Return spans of five annotators in sixty sentences, and the sentences as a table."""
    rows, lines = [], ["item,text"]
    for item in range(60):
        one, two = rng.choice(CITIES, 2, replace=False)
        text = f"{WORDS[item % 3].format(one)} {two} ."
        lines.append(f"s{item},{text}")
        tokens = text.split()
        true = [(tokens.index(name), "LOC") for name in (one, two)]
        for j, name in enumerate(PEOPLE):
            given = [(k, k + 1, label) for k, label in true if rng.random() < 0.95 - 0.1 * j]
            if rng.random() < 0.5 and item % 3 < 2:
                given.append((item % 3, item % 3 + 2, "PER"))
            given = given or [(None, None, None)]
            rows += [(f"s{item}", name, *mark) for mark in given]
    return ds.Spans.from_columns(*map(list, zip(*rows, strict=True))), "\n".join(lines)


def main() -> None:
    """Write the pictures."""
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        folder = Path(name)
        marks, texts = spans(rng)
        (folder / "texts.csv").write_text(texts, encoding="utf-8")
        ds.report(marks, name="cities", texts=folder / "texts.csv").save(folder / "spans.html")
        ds.report(boxes(rng), name="photos").save(folder / "boxes.html")
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 620})
        for kind in ("spans", "boxes"):
            page.goto((folder / f"{kind}.html").as_uri())
            page.wait_for_selector("html[data-drawn]", state="attached")
            page.add_style_tag(
                content="html{scroll-behavior:auto!important;scroll-padding:0!important}.top{display:none}"
            )
            page.evaluate("document.querySelector('#disputed').scrollIntoView()")
            page.screenshot(path=IMAGES / f"answers-{kind}.png")
        report(folder, browser.new_page(viewport={"width": 1180, "height": 700}))
        workbench(folder, browser.new_page(viewport={"width": 1100, "height": 760}))
        browser.close()


def report(folder: Path, page: Page) -> None:
    """Write the pictures of the report on the demo data."""
    ds.report(ds.demo()[0], name="answers.csv").save(folder / "report.html")
    page.goto((folder / "report.html").as_uri())
    page.wait_for_selector("html[data-drawn]", state="attached")
    page.screenshot(path=IMAGES / "report.png")
    page.add_style_tag(content="html{scroll-behavior:auto!important}")
    page.evaluate("document.querySelector('#annotators').scrollIntoView()")
    page.screenshot(path=IMAGES / "report-annotators.png")


def workbench(folder: Path, page: Page) -> None:
    """Write the pictures of the workbench, on the demo data."""
    data, truth = ds.demo()
    ds.write(data, folder / "answers.csv")
    line = [sys.executable, "-m", "dissensus", "open", "answers.csv", "--no-browser", "--port", "0"]
    running = subprocess.Popen(line, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        links = (re.search(r"http://\S+token=\S+", text) for text in running.stderr)
        page.goto(next(found[0] for found in links if found))
        page.click("text=Review the next item")
        classes = data.classes.tolist()
        for _ in range(6):
            item = page.wait_for_selector("#decide input[name=item]", state="attached")
            assert item is not None
            name = item.get_attribute("value") or ""
            page.keyboard.press(str(classes.index(truth[name]) + 1))
            page.wait_for_selector(
                f"#decide input[name=item]:not([value='{name}'])", state="attached"
            )
        page.screenshot(path=IMAGES / "workbench-review.png")
        page.click("nav >> text=What if")
        page.check("input[name=leave] >> nth=0")
        page.click("text=Show the effect")
        page.wait_for_selector("text=mean certainty")
        page.screenshot(path=IMAGES / "workbench-what-if.png")
    finally:
        running.terminate()
        running.wait()


if __name__ == "__main__":
    main()
