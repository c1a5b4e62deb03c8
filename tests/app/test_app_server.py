"""The workbench over HTTP: who is let in, what hostile requests and names do, what pages show."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from urllib.parse import urlencode

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from dissensus import read, read_truth
from dissensus.answers.annotations import Annotations
from dissensus.app.exports import OF_FIT
from dissensus.app.guard import POLICY, Hosts, Sessions, is_password, set_password
from dissensus.app.journal import Journal
from dissensus.app.server import make_app, serve
from dissensus.app.workbench import Caller, Workbench
from dissensus.cli.open import aggregate_command
from dissensus.errors import DataError, OptionError
from dissensus.formats import examine
from dissensus.formats.sources import open_source
from dissensus.formats.tables import read_columns

from ..support import rows_of

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "../../etc/passwd",
    "..",
    "a/b?c=d&e#f",
    "' OR 1=1 --",
    "\u202eabc",
    "%2e%2e",
    "javascript:alert(1)",
    "=HYPERLINK(0)",
)
PAGES = ("/", "/items", "/review", "/annotators", "/what-if", "/take-home", "/status", "/report")
ORIGIN = "http://127.0.0.1"


def crowd() -> Annotations:
    """Return annotations whose items, annotators and classes have hostile names."""
    rows = [
        (item, who, HOSTILE[(i + j * (i % 3 == 0)) % 4])
        for i, item in enumerate(HOSTILE)
        for j, who in enumerate(HOSTILE[:6])
    ]
    item, annotator, label = zip(*rows, strict=True)
    return Annotations.from_columns(item, annotator, label)


class Served:
    """A workbench behind a test client."""

    def __init__(self, folder, host: str = "127.0.0.1") -> None:
        texts = pl.DataFrame({"item": HOSTILE, "text": ["<b>bold</b> " + one for one in HOSTILE]})
        reading = examine(crowd())
        object.__setattr__(reading, "texts", texts)
        self.folder = folder
        self.bench = Workbench(
            lambda: reading,
            Journal(folder / "state"),
            name="<i>hostile</i>",
            method="majority",
            folder=folder,
            caller=Caller(aggregate_command),
        )
        self.sessions = Sessions(80)
        app = make_app(self.bench, self.sessions, Hosts(host))
        self.client = TestClient(app, base_url=ORIGIN, follow_redirects=False)

    def enter(self) -> TestClient:
        answer = self.client.get(f"/enter?token={self.sessions.token}")
        assert answer.status_code == 303
        return self.client

    def post(self, path: str, **fields: str):
        return self.client.post(path, data=fields, headers={"origin": ORIGIN})


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    one = Served(tmp_path_factory.mktemp("app"))
    one.enter()
    yield one
    one.bench.close()


@pytest.fixture
def fresh(tmp_path):
    one = Served(tmp_path)
    yield one
    one.bench.close()


def test_without_the_token_nothing_is_shown_or_done(fresh):
    for path in (*PAGES, "/export?what=all", "/file?item=a", "/items/one?name=.."):
        assert fresh.client.get(path).status_code == 401, path
    for path in ("/decide", "/undo", "/changes", "/changes/undo", "/reviewer"):
        assert fresh.post(path, item="..", kind="split").status_code == 401
    assert fresh.client.get("/enter?token=guess").status_code == 401
    assert fresh.bench.journal.entries() == []


def test_the_cookie_is_http_only_and_strict(fresh):
    answer = fresh.client.get(f"/enter?token={fresh.sessions.token}")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil", "[::2]", "10.0.0.1"]
)
def test_another_host_is_refused(served, host):
    assert served.client.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:80", "127.0.0.1", "[::1]:80"])
def test_names_of_this_machine_are_known(served, host):
    assert served.client.get("/status", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:9"]
)
def test_a_form_from_another_site_is_refused(served, origin):
    answer = served.client.post(
        "/decide", data={"item": "..", "kind": "split"}, headers={"origin": origin}
    )
    assert answer.status_code == 403


def test_a_cross_site_form_without_an_origin_is_refused(served):
    answer = served.client.post("/undo", headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "path", [*PAGES, "/items/one?name=..", "/annotators/one?name=..", "/nowhere"]
)
def test_every_answer_has_the_policy(served, path):
    answer = served.client.get(path)
    policy = answer.headers["content-security-policy"]
    assert policy == POLICY or path == "/report"
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_on_every_page(served, name):
    for path in (
        "/items?" + urlencode({"q": name}),
        "/items?" + urlencode({"label": name, "annotator": name}),
        "/items/one?" + urlencode({"name": name}),
        "/annotators/one?" + urlencode({"name": name}),
        "/annotators?" + urlencode({"q": name}),
        "/what-if?" + urlencode({"try": "1", "leave": name, "class-0": name, "method": name}),
    ):
        answer = served.client.get(path)
        assert answer.status_code in (200, 400)
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        assert "<b>bold" not in answer.text
        assert "49" not in re.findall(r">\s*(\d+)\s*<", answer.text) or name != "{{ 7 * 7 }}"


def test_every_item_and_annotator_has_a_page_under_its_name(served):
    for name in HOSTILE:
        assert served.client.get("/items/one", params={"name": name}).status_code == 200
    for name in HOSTILE[:6]:
        assert served.client.get("/annotators/one", params={"name": name}).status_code == 200


def test_a_page_says_why_annotators_disagree_only_where_they_do(served):
    for index, name in enumerate(HOSTILE):
        shown = served.client.get("/items/one", params={"name": name}).text
        assert ("Why annotators disagree" in shown) == (index % 3 == 0)


def test_a_decision_goes_to_the_journal_and_on_to_the_next_item(fresh):
    fresh.enter()
    page = fresh.client.get("/review").text
    item = "a/b?c=d&e#f"
    assert 'id="decide"' in page
    answer = fresh.post(
        "/decide", item=item, value=HOSTILE[0], comment="why", origin="review", request="1"
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/review")
    fresh.post("/decide", item=item, value=HOSTILE[0], request="1")
    (entry,) = fresh.bench.journal.entries()
    assert (entry.item, entry.value, entry.comment) == (item, HOSTILE[0], "why")
    assert "provisional" in fresh.client.get("/items/one", params={"name": item}).text
    assert fresh.post("/undo").status_code == 303
    assert fresh.bench.decisions.gold() == {}


def test_a_decision_that_is_not_possible_is_refused_in_words(fresh):
    fresh.enter()
    for fields, words in (
        ({"item": "none", "value": HOSTILE[0]}, "no item"),
        ({"item": "..", "value": "cow"}, "no class"),
        ({"item": "..", "kind": "maybe"}, "a decision is"),
    ):
        answer = fresh.post("/decide", **fields)
        assert answer.status_code == 400
        assert words in answer.text
    assert fresh.bench.journal.entries() == []


def test_blind_pages_show_no_votes_and_no_names(fresh):
    fresh.enter()
    fresh.post("/reviewer", name="ann", blind="1")
    page = fresh.client.get("/items/one", params={"name": ".."}).text
    assert "<caption>All labels" not in page
    assert "probability" not in page
    assert "certainty" not in fresh.client.get("/items?sort=certainty&label=x").text


def test_only_the_file_of_an_item_is_served(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "ok.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG")
    (tmp_path / "images" / "out.png").symlink_to(tmp_path / "secret.png")
    names = ["ok.png", "../secret.png", "out.png", str(tmp_path / "secret.png")]
    reading = examine(Annotations.from_columns(list("abcd"), list("xxxx"), list("0101")))
    object.__setattr__(reading, "texts", pl.DataFrame({"item": list("abcd"), "text": names}))
    bench = Workbench(
        lambda: reading,
        Journal(tmp_path / "s"),
        name="n",
        method="majority",
        folder=tmp_path / "images",
    )
    sessions = Sessions(80)
    client = TestClient(make_app(bench, sessions, Hosts("127.0.0.1")), base_url=ORIGIN)
    client.get(f"/enter?token={sessions.token}")
    found = [client.get("/file", params={"item": item}).status_code for item in "abcde"]
    assert found == [200, 404, 404, 404, 404]
    for path in (
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/journal.py",
        "/file/../../etc/passwd",
    ):
        assert client.get(path).status_code == 404
    bench.close()


def test_a_large_form_is_refused(served):
    answer = served.post("/decide", item="..", comment="x" * 300_000)
    assert answer.status_code == 413


def test_a_large_form_without_a_session_is_refused(tmp_path):
    one = Served(tmp_path, host="0.0.0.0")
    set_password(one.bench.journal, "long enough")
    answer = one.post("/login", name="ann", password="x" * 300_000)
    assert answer.status_code == 413
    assert "too large" in answer.text
    for path in ("/decide", "/undo", "/changes", "/nowhere"):
        assert one.post(path, comment="x" * 300_000).status_code == 401
    one.bench.close()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/login", "/enter", "/decide", "/static/app.css"])
def test_odd_methods_without_a_session_are_refused_in_words(fresh, method, path):
    answer = fresh.client.request(method, path)
    assert answer.status_code == 405
    assert answer.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data; boundary=x", b"--x\r\nbroken"),
        ("multipart/form-data", b"x"),
        ("application/json", b'{"name": 1}'),
        ("application/x-www-form-urlencoded", b"name=%ed%a0%80&password=%00%zz"),
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % k for k in range(6000))),
        ("\xff", bytes(range(256))),
    ],
)
@pytest.mark.parametrize("cookie", ["", "=;;;", 'dissensus-80="\\777"', "dissensus-80=\xff; ;"])
def test_broken_forms_and_cookies_without_a_session_are_refused_in_words(
    tmp_path, monkeypatch, kind, body, cookie
):
    monkeypatch.setattr("dissensus.app.server._SLOW", 0.0)
    one = Served(tmp_path, host="0.0.0.0")
    set_password(one.bench.journal, "long enough")
    headers = {
        "origin": ORIGIN,
        "content-type": kind.encode("latin-1"),
        "cookie": cookie.encode("latin-1"),
    }
    answer = one.client.post("/login", content=body, headers=headers)
    assert answer.status_code == 403
    assert "password" in answer.text
    one.bench.close()


_TEXTS = st.one_of(
    st.sampled_from([*HOSTILE, "", "1", "-1", "label", "split"]), st.text(max_size=30)
)
_FIELDS = st.sampled_from(
    ["name", "q", "label", "cause", "status", "votes", "annotator", "sort", "down", "page"]
) | st.sampled_from(
    ["try", "leave", "class-0", "method", "what", "format", "item", "kind", "value", "comment"]
)
_PATHS = st.one_of(
    st.sampled_from(
        [
            *PAGES,
            "/items/one",
            "/annotators/one",
            "/export",
            "/file",
            "/decide",
            "/undo",
            "/changes",
        ]
    ),
    st.text(
        st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="?#\\"), max_size=20
    ).map("/".__add__),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_PATHS, st.dictionaries(_FIELDS, _TEXTS, max_size=5), st.booleans())
def test_no_request_ends_in_a_fault_of_the_server(served, path, fields, posted):
    if path.startswith("//") or path == "/report":
        return
    query = urlencode({name: text.encode("utf-8", "replace") for name, text in fields.items()})
    if posted:
        headers = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
        answer = served.client.post(path, content=query, headers=headers)
    else:
        answer = served.client.get(f"{path}?{query}")
    assert answer.status_code < 500
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert "<script>alert" not in answer.text


def test_a_team_needs_the_password(tmp_path):
    one = Served(tmp_path, host="0.0.0.0")
    with pytest.raises(OptionError, match="at least 8"):
        set_password(one.bench.journal, "short")
    set_password(one.bench.journal, "long enough")
    assert b"long enough" not in (tmp_path / "state").read_bytes()
    assert is_password(one.bench.journal, "long enough")
    assert "Password" in one.client.get("/").text
    assert one.client.get("/items").status_code == 401
    assert one.post("/login", name="ann", password="wrong").status_code == 403
    assert one.post("/login", name="ann", password="long enough").status_code == 303
    assert one.client.get("/items").status_code == 200
    one.bench.close()


def test_exports_wait_for_a_finished_fit(fresh):
    fresh.enter()
    fresh.post("/decide", item="..", value=HOSTILE[0])
    assert not fresh.bench.settled
    answer = fresh.client.get("/export?what=decisions")
    assert fresh.bench.settled
    assert answer.text.splitlines()[1].startswith("..,")
    for what in ("labels", "all", "reviews", "journal", "relabel", "report", "script", "notebook"):
        assert fresh.client.get(f"/export?what={what}").status_code == 200
    assert fresh.client.get("/export?what=../state").status_code == 404


@pytest.mark.parametrize("running", [False, True])
def test_after_a_fit_that_failed_only_what_needs_no_fit_is_exported(fresh, monkeypatch, running):
    def failing(*_args, **_options):
        raise DataError("the labels ran away")

    fresh.enter()
    if running:
        fresh.bench.start()
    with monkeypatch.context() as patch:
        patch.setattr("dissensus.app.workbench.fit", failing)
        fresh.post("/decide", item="..", value=HOSTILE[0], comment="the newest")
        for what in ("labels", "all", *OF_FIT):
            answer = fresh.client.get(f"/export?what={what}")
            assert answer.status_code == 503, what
            assert "the labels ran away" in answer.text
        for what in ("reviews", "journal"):
            answer = fresh.client.get(f"/export?what={what}")
            assert answer.status_code == 200
            assert "the newest" in answer.text
        page = fresh.client.get("/take-home").text
        assert "The last fit failed: the labels ran away" in page
        assert "what=reviews" in page
        assert "what=all" not in page
    fresh.post("/decide", item="..", value=HOSTILE[1])
    assert fresh.client.get("/export?what=decisions").status_code == 200
    assert "what=all" in fresh.client.get("/take-home").text


def test_reviews_and_journal_do_not_wait_for_a_fit(fresh):
    fresh.enter()
    fresh.post("/decide", item="..", value=HOSTILE[0], comment="the newest")
    for what in ("reviews", "journal"):
        assert "the newest" in fresh.client.get(f"/export?what={what}").text
    assert not fresh.bench.settled


def test_a_method_that_does_not_exist_is_not_kept(fresh):
    fresh.enter()
    answer = fresh.post("/changes", method="nonsense")
    assert answer.status_code == 400
    assert "no method" in answer.text
    assert fresh.bench.journal.entries() == []


def test_pages_say_which_kept_changes_are_skipped(fresh):
    fresh.enter()
    stored = {"left_out": ["gone"], "renamed": {"lost": "found"}, "method": ""}
    with fresh.bench._wanted:
        fresh.bench._enter("ann", "change", value=json.dumps(stored))
    fresh.bench.settle()
    for path in ("/what-if", "/take-home"):
        page = fresh.client.get(path).text
        assert "gone" in page
        assert "lost" in page
        assert "This is skipped" in page
    assert fresh.post("/changes/undo").status_code == 303
    fresh.bench.settle()
    assert "skipped" not in fresh.client.get("/take-home").text


def test_no_download_has_a_cell_that_a_spreadsheet_would_run(fresh, tmp_path):
    fresh.enter()
    for comment in ('=HYPERLINK("http://evil.example")', "@SUM(1)", "+1+1", "-2", "'quoted", "-x"):
        fresh.post("/decide", item="=HYPERLINK(0)", value=HOSTILE[0], comment=comment)
    fresh.post("/decide", item="' OR 1=1 --", value=HOSTILE[1], comment="\t=1")
    fresh.bench.settle()
    files = {}
    for what in ("labels", "labels&format=crowd-kit", "reviews", "journal", *OF_FIT):
        answer = fresh.client.get(f"/export?what={what}")
        if answer.headers["content-type"].startswith("text/csv"):
            files[what] = tmp_path / f"{what.replace('&', '-')}.csv"
            files[what].write_bytes(answer.content)
    assert len(files) == 7
    for what, path in files.items():
        with path.open(newline="", encoding="utf-8") as file:
            cells = {cell for row in csv.reader(file) for cell in row}
        assert {cell for cell in cells if cell[:1] in tuple("=+-@\t\r")} <= {"-2"}
        assert "'=HYPERLINK(0)" in cells or what == "relabel"
    annotations = read(files["annotations"])
    assert sorted(annotations.items.tolist()) == sorted(HOSTILE)
    assert rows_of(annotations) == rows_of(fresh.bench.reading.annotations)
    assert set(read_truth(files["decisions"])) == {"=HYPERLINK(0)", "' OR 1=1 --"}
    assert set(read(files["reviews"]).items.tolist()) == {"=HYPERLINK(0)", "' OR 1=1 --"}
    frame = read_columns(open_source(files["journal"]), ["comment"])
    wanted = ["@SUM(1)", "+1+1", "-2", "'quoted", "-x"]
    assert frame["comment"].to_list()[1:6] == wanted


class OfFile:
    """A workbench on a file, behind a test client whose forms are those of the pages."""

    def __init__(self, path: Path, text: str | None = None) -> None:
        if text is not None:
            path.write_bytes(text.encode())
        self.bench = Workbench(
            lambda: examine(path), Journal(f"{path}.workbench"), name=path.name, method="majority"
        )
        sessions = Sessions(80)
        app = make_app(self.bench, sessions, Hosts("127.0.0.1"))
        self.client = TestClient(app, base_url=ORIGIN, follow_redirects=False)
        self.client.get(f"/enter?token={sessions.token}")

    def post(self, path: str, **fields: str):
        """Send fields as a browser does, which sends every line break as CR LF."""
        sent = {name: re.sub("\r\n|\r|\n", "\r\n", text) for name, text in fields.items()}
        return self.client.post(path, data=sent, headers={"origin": ORIGIN})

    def form(self, page: str, action: str) -> dict[str, str]:
        """Return the hidden fields of a form of a page, as a browser reads them."""
        text = self.client.get(page).text
        inside = re.search(f'<form[^>]*action="{action}".*?</form>', text, re.DOTALL)[0]
        pairs = re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', inside)
        return {name: re.sub("\r\n|\r", "\n", html.unescape(value)) for name, value in pairs}

    def decide(self, item: str, value: str):
        page = "/items/one?" + urlencode({"name": item})
        return self.post("/decide", **self.form(page, "/decide"), value=value)

    def export(self, what: str) -> list[dict[str, str]]:
        answer = self.client.get(f"/export?what={what}")
        assert answer.status_code == 200
        return list(csv.DictReader(io.StringIO(answer.text, newline="")))

    def end(self) -> None:
        self.bench.close()


def table_of(*rows: tuple[str, str, str]) -> str:
    held = io.StringIO(newline="")
    csv.writer(held).writerows([("item", "annotator", "label"), *rows])
    return held.getvalue()


PETS = [
    (f"i{k}", who, label)
    for k in range(6)
    for who, label in zip("abc", ("cat", "dog", "cow"), strict=True)
]


def test_an_id_that_was_used_is_the_same_entry_or_refused_in_words(tmp_path):
    served = OfFile(tmp_path / "a.csv", table_of(*PETS))
    fields = {"item": "i1", "value": "cat", "comment": "why", "request": "r"}
    for _ in range(2):
        assert served.post("/decide", **fields).status_code == 303
    for other in ({"item": "i2"}, {"value": "dog"}, {"comment": ""}, {"kind": "split"}):
        answer = served.post("/decide", **{**fields, **other})
        assert answer.status_code == 409
        assert "sent before" in answer.text
    served.post("/reviewer", name="bob")
    assert served.post("/decide", **fields).status_code == 409
    assert served.post("/undo", request="r").status_code == 409
    assert served.post("/changes/undo", request="r").status_code == 409
    assert served.post("/changes", request="r", **{"class-0": "lion"}).status_code == 409
    long = {**fields, "request": "r" * 200}
    assert served.post("/decide", **long).status_code == 303
    assert served.post("/decide", **{**long, "request": "r" * 201}).status_code == 303
    assert len(served.bench.journal.entries()) == 3
    served.end()


def test_an_undo_that_is_sent_twice_takes_back_one_and_three_at_once_three(tmp_path):
    served = OfFile(tmp_path / "a.csv", table_of(*PETS))
    for k in range(6):
        assert served.decide(f"i{k}", "cat").status_code == 303
    fields = served.form("/items/one?name=i5", "/undo")
    answers = [served.post("/undo", **fields) for _ in range(2)]
    assert [one.headers["location"] for one in answers] == ["/items/one?name=i5"] * 2
    assert len(served.bench.decisions.all) == 5
    start = Barrier(3)

    def undo(request: str) -> str:
        start.wait()
        return served.post("/undo", request=request).headers["location"]

    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(undo, "abc"))) == 3
    assert [one.item for one in served.bench.decisions.all] == ["i0", "i1"]
    served.end()


@pytest.mark.parametrize(
    "names", [("dog", "cow", "fox"), ("dog", "cow", "cat"), ("ox", "ox", "dog")]
)
def test_what_a_button_says_is_what_is_exported(tmp_path, names):
    served = OfFile(tmp_path / "a.csv", table_of(*PETS))
    assert served.decide("i0", "dog").status_code == 303
    fields = {f"class-{k}": name for k, name in enumerate(names)}  # of cat, cow and dog
    assert served.post("/changes", **fields).status_code == 303
    served.bench.settle()
    buttons = sorted(set(names))
    for k, name in enumerate(buttons, 1):
        assert served.decide(f"i{k}", name).status_code == 303
        assert "dog" in names or served.decide(f"i{k}", "dog").status_code == 400
        page = served.client.get(f"/items/one?name=i{k}").text
        assert re.search(f'value="{name}" class="choice chosen"', page)
    stated = {row["item"]: row["label"] for row in served.export("decisions")}
    assert stated == {"i0": names[2], **{f"i{k}": name for k, name in enumerate(buttons, 1)}}
    reviews = {row["item"]: row["label"] for row in served.export("reviews")}
    assert reviews == stated
    labels = {row["item"]: row["label"] for row in served.export("labels")}
    assert stated.items() <= labels.items()
    assert served.post("/changes/undo", request="t").status_code == 303
    back = {row["item"]: row["label"] for row in served.export("decisions")}
    of_file = dict(zip(names, ("cat", "cow", "dog"), strict=True))
    apart = {name for name in names if names.count(name) > 1}
    expected = {f"i{k}": of_file[name] for k, name in enumerate(buttons, 1) if name not in apart}
    assert back == {"i0": "dog", **expected}
    assert ("apart again" in served.client.get("/take-home").text) == bool(apart)
    served.end()


def test_changes_are_not_kept_for_the_classes_of_an_older_page(tmp_path):
    served = OfFile(tmp_path / "a.csv", table_of(*PETS))
    page = "/what-if?" + urlencode({"try": "1", "class-2": "fox"})  # of cat, cow and dog
    keep, ask = served.form(page, "/changes"), served.form("/what-if", "/what-if")
    served.bench.source = tmp_path / "a.csv"
    served.bench.source.write_text(table_of(("i0", "ann", "ape"), *PETS))
    served.bench._look_at_file()  # classes are ape, cat, cow and dog now
    answers = served.post("/changes", **keep), served.client.get("/what-if", params=ask)
    assert [answer.status_code for answer in answers] == [400, 400]
    assert all("have changed since" in answer.text for answer in answers)
    assert not served.bench.decisions.changes
    keep = served.form("/what-if?" + urlencode({"try": "1", "class-3": "fox"}), "/changes")
    assert served.post("/changes", **keep).status_code == 303
    assert served.bench.decisions.changes.renamed == {"dog": "fox"}
    served.end()


BREAKS = ("one\ntwo", "three\r\nfour", "five\rsix", "\nseven\n", " eight  nine ")


def test_names_with_line_breaks_are_decided_from_a_form_and_export_as_they_were(tmp_path):
    names = zip(BREAKS, BREAKS[1:] + BREAKS[:1], strict=True)
    reading = examine(Annotations.from_columns(*zip(*[(i, i, c) for i, c in names], strict=True)))
    bench = Workbench(lambda: reading, Journal(tmp_path / "s"), name="n", method="majority")
    served = OfFile.__new__(OfFile)
    served.bench, sessions = bench, Sessions(80)
    app = make_app(bench, sessions, Hosts("127.0.0.1"))
    served.client = TestClient(app, base_url=ORIGIN, follow_redirects=False)
    served.client.get(f"/enter?token={sessions.token}")
    for name in BREAKS:
        answer = served.decide(name, name)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/items/one?" + urlencode({"name": name})
    assert {row["item"]: row["label"] for row in served.export("decisions")} == {
        name: name for name in BREAKS
    }
    assert [row["item"] for row in served.export("journal")] == list(BREAKS)
    shown = {f"class-{k}": re.sub("[\r\n]", "", name) for k, name in enumerate(sorted(BREAKS))}
    served.post("/changes", **shown, leave=BREAKS[0])  # fields of one line lose line breaks
    kept = bench.decisions.changes
    assert (kept.left_out, kept.renamed) == (BREAKS[:1], {})
    bench.close()


def test_names_that_differ_in_line_breaks_only_are_refused_not_mixed_up(tmp_path):
    served = OfFile(tmp_path / "a.csv", table_of(("a\nb", "w", "x"), ("a\r\nb", "w", "y")))
    answer = served.decide("a\nb", "x")
    assert answer.status_code == 400
    assert "line breaks" in answer.text
    assert served.bench.journal.entries() == []
    served.end()


def test_decisions_of_another_data_set_are_confirmed_on_a_page(tmp_path):
    path = tmp_path / "a.csv"
    served = OfFile(path, table_of(*PETS))
    for k in range(6):
        assert served.decide(f"i{k}", "dog").status_code == 303
    assert "6 decisions" not in served.client.get("/").text
    served.end()
    served = OfFile(
        path,
        table_of(*[(f"i{k}", who, "cat") for k in range(6) for who in "xyz"], ("i6", "x", "dog")),
    )
    for page in ("/", "/review", "/items", "/take-home"):
        assert "6 decisions were made on labels" in served.client.get(page).text, page
    assert served.export("decisions") == []
    assert {row["label"] for row in served.export("labels") if row["item"] != "i6"} == {"cat"}
    fields = served.form("/", "/confirm")
    assert served.post("/confirm", **{**fields, "mark": "0"}).status_code == 400
    for _ in range(2):
        assert served.post("/confirm", **fields).status_code == 303
    assert "6 decisions were made on labels" not in served.client.get("/").text
    assert {row["label"] for row in served.export("decisions")} == {"dog"}
    assert [row["kind"] for row in served.export("journal")] == ["label"] * 6 + ["confirm"]
    served.end()
    served = OfFile(path)
    assert len(served.export("decisions")) == 6
    served.end()


def test_the_terminal_states_decisions_on_labels_that_are_gone(tmp_path, monkeypatch):
    path, sentences = tmp_path / "a.csv", []
    served = OfFile(path, table_of(*PETS))
    served.decide("i1", "dog")
    served.end()
    path.write_text(table_of(*[(item, "z", label) for item, _, label in PETS]))
    monkeypatch.setattr("uvicorn.Server.run", lambda _server, sockets: sockets[0].close())
    serve(OfFile(path).bench, port=0, browser=False, say=sentences.append)
    assert sentences[0].startswith(
        "1 decision was made on labels that are no longer in a.csv; it is"
    )
