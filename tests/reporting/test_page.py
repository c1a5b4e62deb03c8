"""The pages of reports in a browser: Debian's Chromium, without any network."""

import csv
import io
import shutil
from pathlib import Path

import numpy as np
import pytest

from dissensus import Annotations, Numbers, demo, report, report_groups
from dissensus.pages.charts import save_chart

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Debian's chromium is not installed: apt-get install chromium"
)

NAMES = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"quotes\" & 'more'",
    "שלום עולם",
    "🦊 fox",
    "${7*7}{{7*7}}",
    "x" * 120,
]
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def photos(folder):
    annotations, truth = demo()
    summary = report(annotations, "dawid-skene", name="photos", truth=truth)
    summary.save(folder / "photos.html")
    return summary, folder / "photos.html"


@pytest.fixture(scope="module")
def hostile(folder):
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=(len(NAMES), len(NAMES)))
    annotations = Annotations.from_matrix(
        np.array(NAMES, dtype=object)[label], items=NAMES, annotators=NAMES
    )
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [(name, PIXEL if "fox" in name else name) for name in NAMES]
        csv.writer(file).writerows([("item", "text"), *rows])
    summary = report(annotations, "majority", name=NAMES[0], texts=folder / "texts.csv")
    summary.save(folder / "hostile.html")
    return summary, folder / "hostile.html"


class Opened:
    """A page, and everything that went wrong or out while it was open."""

    def __init__(self, browser, path: Path, **settings) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}, "accept_downloads": True} | settings
        )
        self.trouble: list[str] = []
        self.page = self.context.new_page()
        self.page.on(
            "console", lambda message: self.trouble.append(f"{message.type}: {message.text}")
        )
        self.page.on("pageerror", lambda problem: self.trouble.append(str(problem)))
        self.page.on(
            "dialog", lambda dialog: (self.trouble.append(dialog.message), dialog.dismiss())
        )
        self.page.on("request", self._requested)
        self.page.goto(path.as_uri())
        if settings.get("java_script_enabled", True):
            self.page.wait_for_selector("html[data-drawn]", state="attached")

    def _requested(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.trouble.append(request.url)

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_text_contents()]

    def download(self, kind: str) -> list[dict[str, str]]:
        with self.page.expect_download() as coming:
            self.page.click(f"[data-download={kind}]")
        body = Path(coming.value.path()).read_text("utf-8-sig")
        return list(csv.DictReader(io.StringIO(body, newline="")))


@pytest.fixture
def opened(browser):
    pages = []

    def opens(path, **settings):
        pages.append(Opened(browser, path, **settings))
        return pages[-1]

    yield opens
    for one in pages:
        one.context.close()
        assert one.trouble == []


def test_every_chart_is_drawn_and_nothing_goes_out(photos, opened):
    summary, path = photos
    page = opened(path).page
    assert page.locator(".canvas svg").count() == len(summary.charts)
    assert page.locator(".canvas.live").count() == len(summary.charts)
    titles = page.locator(".canvas svg > title").all_text_contents()
    expected = {f"{one.title}. {one.words}" for one in summary.charts.values()}
    assert set(titles) == expected
    wide = page.evaluate(
        "[...document.querySelectorAll('.canvas svg')].filter(s => "
        "s.getBoundingClientRect().right > s.closest('.canvas').getBoundingClientRect().right + 1)"
        ".length"
    )
    assert wide == 0


def test_names_of_what_scripts_have_are_names_like_others(folder, opened):
    names = ["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "Ann"]
    rng = np.random.default_rng(0)
    rows = [
        (f"i{position}", name, names[(position + (rng.random() < 0.3)) % 3])
        for position in range(40)
        for name in names
    ]
    summary = report(Annotations.from_columns(*zip(*rows, strict=True)), "dawid-skene")
    summary.save(folder / "names.html")
    seen = opened(folder / "names.html")
    assert seen.page.locator(".canvas.live").count() == len(summary.charts)
    drawn = " ".join(one.text_content() for one in seen.page.locator(".canvas svg").all())
    assert all(name in drawn for name in names[:3])


def test_the_page_begins_with_the_sentences(photos, opened):
    summary, path = photos
    seen = opened(path)
    assert seen.texts(".lead p") == list(summary.sentences)
    assert seen.texts(".facts strong")[:3] == ["40", "500", "2527"]


def test_headings_sort_both_ways_with_unknown_last(photos, opened):
    summary, path = photos
    seen = opened(path)
    head = seen.page.locator("#annotator-table thead button", has_text="labels")
    head.click()
    counts = [int(text) for text in seen.texts("#annotator-table tbody td:nth-of-type(1)")]
    assert counts == sorted(summary.annotations.labels_per_annotator.tolist())
    head.click()
    again = [int(text) for text in seen.texts("#annotator-table tbody td:nth-of-type(1)")]
    assert again == sorted(counts, reverse=True)
    sorted_by = seen.page.locator("#annotator-table th[aria-sort]")
    assert sorted_by.get_attribute("aria-sort") == "descending"
    assert sorted_by.count() == 1
    seen.page.locator("#annotator-table thead button", has_text="annotator").click()
    names = seen.texts("#annotator-table tbody th")
    assert names == sorted(names)


def test_search_and_filter_narrow_the_tables(photos, opened):
    summary, path = photos
    seen = opened(path)
    seen.page.select_option("[data-filter=annotator-table]", "random")
    shown = seen.texts("#annotator-table tbody tr:not([hidden]) th")
    verdict = summary.annotator_scores.verdict
    assert set(shown) == set(summary.annotations.annotators[verdict == "random"].tolist())
    assert seen.texts("[data-count=annotator-table]") == [f"{len(shown)} of 40 shown"]
    seen.page.fill("[data-search=annotator-table]", shown[0].lower())
    assert seen.texts("#annotator-table tbody tr:not([hidden]) th") == shown[:1]
    seen.page.fill("[data-search=item-table]", "meadow")
    items = seen.texts("#item-table tbody tr:not([hidden]) th")
    assert len(items) == sum("meadow" in name for name in summary.annotations.items.tolist())
    seen.page.select_option("[data-filter=item-table]", "differs from the known label")
    wrong = seen.page.locator("#item-table tbody tr:not([hidden])")
    assert wrong.count() == wrong.locator(".differs").count() > 0


def test_one_clicks_from_an_annotator_to_an_item_and_on(photos, opened):
    summary, path = photos
    seen = opened(path)
    seen.page.click("#annotator-table tbody tr:nth-child(1) .open-button")
    assert seen.page.locator("#detail").is_visible()
    first = seen.page.locator("#detail-title").text_content()
    position = summary.annotations.annotators.tolist().index(first)
    assert (
        summary.annotator_scores.evidence[position]
        in seen.page.locator("#detail-body").inner_text()
    )
    assert seen.page.locator("#detail .matrix tbody tr").count() == summary.annotations.n_classes
    button = seen.page.locator("#detail-body li .open-button").first
    item = button.text_content()
    button.click()
    assert seen.page.locator("#detail-title").text_content() == item
    code = summary.annotations.items.tolist().index(item)
    span = slice(summary.annotations.index[code], summary.annotations.index[code + 1])
    names = summary.annotations.annotators[summary.annotations.annotator[span]].tolist()
    given = seen.page.locator("#detail-body table").last
    assert given.locator("tbody th").all_text_contents() == names
    other = next(name for name in names if name != first)
    given.get_by_role("button", name=other, exact=True).click()
    assert seen.page.locator("#detail-title").text_content() == other
    seen.page.keyboard.press("Escape")
    assert not seen.page.locator("#detail").is_visible()


def test_names_in_the_plan_and_in_tables_open_their_details(photos, opened):
    summary, path = photos
    seen = opened(path)
    left_out = seen.page.locator(".advice li", has_text="Leave out").first
    (sentence,) = [one.sentence for one in summary.actions if "Leave out" in one.sentence]
    assert left_out.text_content().startswith(sentence)
    left_out.locator(".open-button").last.click()
    named = seen.page.locator("#detail-title").text_content()
    assert named in sentence
    assert seen.page.locator("#detail-body strong").first.text_content() in ("random", "constant")
    seen.page.keyboard.press("Escape")
    pair = seen.page.locator("#agreement td .open-button").first
    name = pair.text_content()
    pair.click()
    assert seen.page.locator("#detail-title").text_content() == name


def test_key_figures_and_actions_lead_to_sections_that_exist(photos, opened):
    seen = opened(photos[1])
    targets = seen.page.eval_on_selector_all(
        ".facts a, .advice a, nav a", "links => links.map(link => link.getAttribute('href'))"
    )
    assert len(targets) > 10
    assert all(seen.page.locator(target).count() == 1 for target in targets)


def test_a_dot_of_the_scatter_opens_the_annotator(photos, opened):
    summary, path = photos
    seen = opened(path)
    dot = seen.page.locator("[data-chart=annotators] .mark-symbol.role-mark path").first
    dot.scroll_into_view_if_needed()
    dot.click(force=True)
    assert (
        seen.page.locator("#detail-title").text_content() in summary.annotations.annotators.tolist()
    )


def test_keys_are_enough(photos, opened):
    seen = opened(photos[1])
    seen.page.locator("#item-table tbody .open-button").first.focus()
    seen.page.keyboard.press("Enter")
    assert seen.page.locator("#detail").is_visible()
    assert seen.page.evaluate("document.activeElement.closest('dialog') !== null")
    seen.page.keyboard.press("Escape")
    assert seen.page.evaluate("document.activeElement.className") == "open-button"


def test_downloads_hold_the_labels_and_the_lists(photos, opened):
    summary, path = photos
    seen = opened(path)
    labels = seen.download("labels")
    assert [row["item"] for row in labels] == summary.annotations.items.tolist()
    assert [row["label"] for row in labels] == summary.result.labels.tolist()
    posteriors = np.array([float(row["confidence"]) for row in labels])
    np.testing.assert_allclose(posteriors, summary.result.confidence, atol=1e-4)
    again = [row["item"] for row in seen.download("relabel")]
    assert again == summary.annotations.items[summary.doubt.again].tolist()
    assert {row["annotator"] for row in seen.download("annotators")} == set(
        summary.annotations.annotators.tolist()
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_in_both_themes(photos, opened, scheme):
    seen = opened(photos[1], color_scheme=scheme)
    contrast = """() => {
      const parts = (colour) => colour.match(/[0-9.]+/g).slice(0, 3).map(Number);
      const light = (colour) => {
        const [r, g, b] = parts(colour).map((v) => {
          v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = getComputedStyle(document.body).backgroundColor;
      const seen = ["body", "nav a", ".dim", "caption", ".open-button"].map(
        (name) => getComputedStyle(document.querySelector(name)).color);
      for (const text of document.querySelectorAll(".role-axis-label text, .role-axis-title text"))
        seen.push(getComputedStyle(text).fill);
      return Math.min(...seen.map((colour) => {
        const [a, b] = [light(colour), light(paper)].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05); }));
    }"""
    assert seen.page.evaluate(contrast) > 4.5  # what the Web's guidelines ask of small texts
    before = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    seen.page.click("#theme")
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert seen.page.evaluate(contrast) > 4.5


@pytest.mark.parametrize("clicks", [0, 2])
def test_print_is_black_on_white_and_whole(photos, opened, clicks):
    seen = opened(photos[1], color_scheme="dark")
    for _ in range(clicks):
        seen.page.click("#theme")
    seen.page.emulate_media(media="print")
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    label = seen.page.locator(".role-axis-label text").first
    assert label.evaluate("node => getComputedStyle(node).fill") == "rgb(0, 0, 0)"
    assert not seen.page.locator("nav").is_visible()
    assert not seen.page.locator(".downloads").is_visible()
    hidden = seen.page.locator("#annotator-table").evaluate(
        "node => node.parentElement.scrollHeight - node.parentElement.clientHeight"
    )
    assert hidden <= 1
    assert seen.page.locator("#item-table tbody tr:visible").count() == 40
    assert seen.page.pdf().startswith(b"%PDF")


def test_without_scripts_the_page_is_read_all_the_same(photos, opened):
    summary, path = photos
    seen = opened(path, java_script_enabled=False)
    assert seen.texts(".lead p") == list(summary.sentences)
    assert seen.page.locator("#annotator-table tbody tr").count() == 40
    assert not seen.page.locator(".controls").first.is_visible()
    assert not seen.page.locator(".canvas").first.is_visible()
    numbers = seen.page.locator("#chart-confidence details table")
    assert numbers.is_visible()
    counts = [int(text) for text in numbers.locator("td").all_text_contents()]
    assert sum(counts) == summary.annotations.n_items


def test_a_narrow_window_needs_no_sideways_scrolling(photos, opened):
    seen = opened(photos[1], viewport={"width": 400, "height": 800})
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400
    sideways = """tables => tables.filter(one => one.scrollWidth > one.clientWidth + 1).length"""
    assert seen.page.eval_on_selector_all(".tall, .canvas", sideways) == 0
    cell = seen.page.locator("#annotator-table tbody td").last
    assert cell.evaluate("one => getComputedStyle(one, '::before').content") == '"verdict: "'


def test_hostile_names_are_shown_as_text(hostile, opened):
    seen = opened(hostile[1])
    assert seen.page.locator("h1").text_content() == NAMES[0]
    assert set(seen.texts("#annotator-table tbody th")) == set(NAMES)
    assert set(seen.texts("#item-table tbody th")) == set(NAMES)
    for kind in ("annotator", "item"):
        for position in range(len(NAMES)):
            seen.page.locator(f"#{kind}-table .open-button").nth(position).click()
            assert seen.page.locator("#detail-title").text_content() in NAMES
            seen.page.keyboard.press("Escape")
    assert seen.page.locator("#detail-body script").count() == 0
    assert {row["item"] for row in seen.download("labels")} == set(NAMES)
    seen.page.locator("[data-chart=confusion] .mark-text text").first.hover(force=True)
    summary = seen.page.locator("#vg-tooltip-element").text_content(timeout=5000)
    assert any(name[:20] in summary for name in NAMES)


def test_texts_and_images_of_items_are_shown(hostile, opened):
    seen = opened(hostile[1])
    seen.page.locator("#item-table .open-button", has_text="שלום").click()
    assert seen.page.locator("#detail .item-text").text_content() == "שלום עולם"
    seen.page.keyboard.press("Escape")
    seen.page.locator("#item-table .open-button", has_text="🦊").click()
    assert seen.page.locator("#detail img").evaluate("node => node.naturalWidth") == 1


def test_groups_and_numbers_have_pages_that_sort_and_download(folder, opened):
    annotations, _ = demo()
    groups = report_groups(annotations, annotations, "majority", names=("</script>before", "after"))
    groups.save(folder / "groups.html")
    seen = opened(folder / "groups.html")
    assert seen.texts(".lead p") == groups.sentences
    assert len(seen.download("annotators")) == 40
    rng = np.random.default_rng(0)
    item, annotator = np.divmod(np.arange(200), 5)
    annotations = Numbers.from_codes(
        item, annotator, rng.normal(item, 3), items=40, annotators=NAMES[:5]
    )
    summary = report(annotations, name=NAMES[1])
    summary.save(folder / "numbers.html")
    seen = opened(folder / "numbers.html")
    assert seen.texts(".lead p") == list(summary.sentences)
    seen.page.locator("#item-table thead button", has_text="value").click()
    shown = [float(text) for text in seen.texts("#item-table tbody td:nth-of-type(1)")]
    assert shown == sorted(shown)
    seen.page.click("#item-table .open-button >> nth=0")
    answers = seen.page.locator("#detail-body table td").all_text_contents()
    assert len(answers) == 5
    seen.page.locator("#detail-body table .open-button").first.click()
    assert "Use of the scale" in seen.page.locator("#detail-body").inner_text()
    assert seen.page.locator("#detail-body h3").inner_text().startswith("Answers that are farthest")
    seen.page.keyboard.press("Escape")
    values = [float(row["value"]) for row in seen.download("values")]
    np.testing.assert_allclose(values, summary.result.value, rtol=1e-5)


def test_a_chart_of_its_own_is_a_page_of_its_own(photos, folder, browser):
    save_chart(photos[0].charts["agreement"].spec, folder / "chart.html")
    context = browser.new_context()
    page, trouble = context.new_page(), []
    page.on("console", lambda message: trouble.append(message.text))
    page.goto((folder / "chart.html").as_uri())
    page.wait_for_selector("svg")
    context.close()
    assert trouble == []
