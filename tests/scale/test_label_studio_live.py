"""`watch --label-studio`: labels arrive, predictions and agreement go back, the key is hidden."""

import csv
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest

from dissensus import DataError, OptionError
from dissensus.scale import (
    ApiKey,
    LabelStudioApi,
    LabelStudioProject,
    WebhookReceiver,
    read_api_key,
)
from dissensus.scale import label_studio_api as api_module

from ..label_studio_server import JWT, KEY, FakeLabelStudio, send
from ..support import run

METHOD = "dissensus dawid-skene"
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(api_module, "PAUSE", 0)
    monkeypatch.setenv(api_module.VARIABLE, KEY)


@pytest.fixture
def studio():
    with FakeLabelStudio(["nice", "bad", "so so"]) as server:
        yield server


def watch(studio, folder, *arguments, code=0, project=1):
    done = run(
        *("watch", "--label-studio", studio.url, "--project", project, "-o", "labels.csv"),
        *("--once", *arguments),
        cwd=folder,
    )
    message = done.stderr.decode() + done.stdout.decode()
    assert done.returncode == code, message
    assert KEY not in message
    return message


def labels_in(folder):
    with (folder / "labels.csv").open(newline="") as file:
        return {row["item"]: row["label"] for row in csv.DictReader(file)}


def labelled(studio):
    for task, labels in {1: ["pos", "pos", "neg"], 2: ["neg", "neg", "neg"]}.items():
        for by, label in enumerate(labels, 1):
            studio.annotate(task, by, label)


def test_labels_go_back_as_predictions_and_agreement_as_meta(studio, tmp_path):
    labelled(studio)
    studio.tasks[1]["meta"] = {"mine": 7}
    message = watch(studio, tmp_path)
    assert "6 new annotations, 0 gone, 6 in all; labels of 2 items are in labels.csv" in message
    assert "2 predictions were written to project 1; Krippendorff's alpha" in message
    assert labels_in(tmp_path) == {"1": "pos", "2": "neg"}
    made = studio.predictions()
    assert [(version, value) for version, value, _ in made[1]] == [(METHOD, {"choices": ["pos"]})]
    assert [(version, value) for version, value, _ in made[2]] == [(METHOD, {"choices": ["neg"]})]
    assert made[3] == []
    assert all(0 < score <= 1 for one in made.values() for *_, score in one)
    result = studio.tasks[1]["predictions"][0]["result"][0]
    assert (result["from_name"], result["to_name"], result["type"]) == ("mood", "text", "choices")
    assert studio.tasks[1]["meta"] == {"mine": 7, "dissensus": {"agreement": 0.3333, "labels": 3}}
    assert studio.tasks[2]["meta"] == {"dissensus": {"agreement": 1.0, "labels": 3}}
    assert studio.tasks[3]["meta"] == {}


def test_what_is_there_already_is_not_written_again(studio, tmp_path):
    labelled(studio)
    watch(studio, tmp_path)
    studio.requests.clear()
    watch(studio, tmp_path)
    assert {method for method, *_ in studio.requests} == {"GET"}


def test_a_prediction_changes_with_its_label_and_goes_with_the_last_one(studio, tmp_path):
    labelled(studio)
    watch(studio, tmp_path)
    before = studio.tasks[1]["predictions"][0]["id"]
    for one in list(studio.tasks[1]["annotations"]):
        studio.annotate(1, one["completed_by"], "neg", number=one["id"])
    for one in list(studio.tasks[2]["annotations"]):
        studio.delete(one["id"])
    watch(studio, tmp_path)
    assert studio.predictions()[1][0][1] == {"choices": ["neg"]}
    assert studio.tasks[1]["predictions"][0]["id"] == before
    assert studio.predictions()[2] == []
    assert studio.tasks[2]["meta"] == {}
    assert labels_in(tmp_path) == {"1": "neg"}


def test_predictions_of_others_are_neither_read_nor_changed(studio, tmp_path):
    labelled(studio)
    other = {
        "id": 9,
        "model_version": "theirs",
        "score": 0.1,
        "result": [
            {
                "from_name": "mood",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": ["odd"]},
            }
        ],
    }
    studio.tasks[1]["predictions"].append(dict(other))
    watch(studio, tmp_path)
    assert studio.tasks[1]["predictions"][0] == other
    assert "odd" not in (tmp_path / "labels.csv").read_text()
    assert (tmp_path / "labels.csv").read_text().splitlines()[
        0
    ] == "item,label,confidence,p:neg,p:pos"


def test_all_pages_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(api_module, "_PAGE", 7)
    with FakeLabelStudio([f"text {number}" for number in range(30)]) as studio:
        for task in studio.tasks:
            studio.annotate(task, 1, "pos")
        assert "30 new annotations" in watch(studio, tmp_path)
    assert len(labels_in(tmp_path)) == 30


@pytest.mark.parametrize("gone", [(1,), (3, 4, 5), (1, 2, 3)])
def test_tasks_deleted_while_pages_are_read_hide_no_other(gone, tmp_path, monkeypatch):
    monkeypatch.setattr(api_module, "_PAGE", 2)
    with FakeLabelStudio([f"text {number}" for number in range(5)]) as studio:
        for task in studio.tasks:
            studio.annotate(task, 1, "pos" if task % 2 else "neg")
        studio.before_page = lambda page: [studio.tasks.pop(n, None) for n in gone if page > 1]
        watch(studio, tmp_path)
        assert set(labels_in(tmp_path)) == {str(task) for task in studio.tasks}


@pytest.mark.parametrize("shape", ["bare", "list"])
@pytest.mark.parametrize("n_tasks", [1, 4, 5])
def test_pages_without_a_total_are_read_to_the_end(shape, n_tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(api_module, "_PAGE", 2)
    with FakeLabelStudio(["x"] * n_tasks) as studio:
        for task in studio.tasks:
            studio.annotate(task, 1, "pos" if task % 2 else "neg")
        studio.shape = shape
        watch(studio, tmp_path)
        assert len(labels_in(tmp_path)) == n_tasks


def test_what_is_left_out_of_a_project_is_reported_once(studio, tmp_path):
    labelled(studio)
    studio.annotate(1, None, "pos")  # whose account was deleted
    studio.annotate(2, 9, "pos", was_cancelled=True)
    studio.tasks[3].update(annotations=None, predictions=None, meta=None, data=None)
    message = watch(studio, tmp_path)
    assert message.count("1 without an annotator") == 1
    assert message.count("1 cancelled") == 1
    assert "6 new annotations, 0 gone, 6 in all; labels of 2 items" in message


def test_an_empty_project_is_no_error(studio, tmp_path):
    assert "no labels in project 1 yet" in watch(studio, tmp_path)
    assert not (tmp_path / "labels.csv").exists()


def test_a_duplicate_of_ours_is_removed(studio, tmp_path):
    labelled(studio)
    watch(studio, tmp_path)
    studio.tasks[1]["predictions"].append({**studio.tasks[1]["predictions"][0], "id": 5000})
    watch(studio, tmp_path)
    assert len(studio.predictions()[1]) == 1


def test_several_options_ratings_and_several_questions(studio, tmp_path):
    for by, options in enumerate((["a", "b"], ["b", "a"], ["a"]), 1):
        studio.annotate(1, by, options)
    watch(studio, tmp_path)
    assert studio.predictions()[1][0][1] == {"choices": ["a", "b"]}
    stars = [{"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": 4}}]
    for by in (1, 2):
        studio.annotate(2, by, "x", result=stars)
    assert "several questions, mood (3 labels), stars (2 labels)" in watch(studio, tmp_path, code=2)
    watch(studio, tmp_path, "--question", "stars")
    assert {"rating": 4} in [value for _, value, _ in studio.predictions()[2]]


def test_annotators_who_see_predictions_are_warned_about(studio, tmp_path):
    studio.settings["show_collab_predictions"] = True
    assert "shows predictions to annotators" in watch(studio, tmp_path)


# The key.


def test_a_wrong_key_ends_in_one_line_that_does_not_show_it(studio, tmp_path, monkeypatch):
    monkeypatch.setenv(api_module.VARIABLE, wrong := "not-the-right-key")
    message = watch(studio, tmp_path, code=2)
    assert "the key is not accepted; LABEL_STUDIO_API_KEY or --key FILE holds it" in message
    assert message.count("\n") == 1
    assert wrong not in message


def test_the_key_is_in_no_message_and_no_traceback(studio, tmp_path):
    studio.failures = [418] * 10  # its answer repeats the key
    message = watch(studio, tmp_path, code=2)
    assert "status 418" in message
    assert "Token …" in message
    key = ApiKey(KEY)
    assert KEY not in f"{key!r} {key} {key!s} {vars(LabelStudioApi(studio.url, key))}"
    for secret in (KEY, JWT):
        for status in (500, 418, 404, 200):
            studio.failures, studio.body = [status] * 10, b"<html>" if status == 200 else None
            with pytest.raises(DataError) as problem:
                LabelStudioApi(studio.url, ApiKey(secret)).project(1)
            shown = traceback.TracebackException.from_exception(problem.value, capture_locals=True)
            ours = [frame for frame in shown.stack if "test_" not in frame.filename]
            assert len(ours) > 1
            assert secret not in f"{shown} {[frame.locals for frame in ours]}"


def test_the_key_comes_from_a_file(studio, tmp_path, monkeypatch):
    labelled(studio)
    monkeypatch.delenv(api_module.VARIABLE)
    assert "no API key; set LABEL_STUDIO_API_KEY" in watch(studio, tmp_path, code=2)
    (tmp_path / "key.txt").write_text(f"{KEY}\n")
    watch(studio, tmp_path, "--key", "key.txt")
    assert labels_in(tmp_path)
    assert "nowhere.txt: no such file" in watch(studio, tmp_path, "--key", "nowhere.txt", code=2)
    for content in ("", "two words", f"{KEY}\nX-Other: 1", "kéy"):
        (tmp_path / "key.txt").write_text(content)
        with pytest.raises(OptionError, match="empty, or not one word of ASCII"):
            read_api_key(str(tmp_path / "key.txt"))


def test_a_personal_token_is_exchanged_and_renewed(studio, tmp_path, monkeypatch):
    labelled(studio)
    monkeypatch.setenv(api_module.VARIABLE, JWT)
    message = watch(studio, tmp_path)
    assert JWT not in message
    assert studio.requests[0] == ("POST", "/api/token/refresh/", "")
    assert {given for *_, given in studio.requests[1:]} == {"Bearer a.b.c"}
    api = LabelStudioApi(studio.url, ApiKey(JWT))
    api.project(1)
    studio.access = "d.e.f"  # the other has expired
    assert api.project(1)["id"] == 1
    monkeypatch.setenv(api_module.VARIABLE, "x.y.z")
    assert "the key is not accepted" in watch(studio, tmp_path, code=2)


def test_the_key_is_not_sent_elsewhere(studio, tmp_path):
    with FakeLabelStudio(["x"]) as other:
        studio.redirect = other.url + "/api/projects/1/"
        assert "redirects elsewhere; name the address itself" in watch(studio, tmp_path, code=2)
        assert other.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8080",
        "ftp://x",
        "file:///etc/passwd",
        "http://",
        "http://me:secret@x",
        "http://x?a=b",
        "",
    ],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(OptionError) as problem:
        LabelStudioApi(url, ApiKey(KEY))
    assert "secret" not in str(problem.value)


def test_a_key_in_the_open_is_reported():
    assert LabelStudioApi("http://label.example.org", ApiKey(KEY)).is_exposed
    assert not LabelStudioApi("https://label.example.org", ApiKey(KEY)).is_exposed
    assert not LabelStudioApi("http://localhost:8080/", ApiKey(KEY)).is_exposed


# A server that fails.


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def test_a_server_that_is_down_is_tried_again_and_then_reported(studio, tmp_path):
    labelled(studio)
    studio.failures = [503, 502]
    watch(studio, tmp_path)
    assert labels_in(tmp_path)
    studio.failures = [503] * 20
    message = watch(studio, tmp_path, code=2)
    assert "status 503 after 4 attempts; is Label Studio running?" in message
    assert message.count("\n") == 1
    studio.url = f"http://127.0.0.1:{free_port()}"
    message = watch(studio, tmp_path, code=2)
    assert re.search(r"no answer \(connection refused\) after 4 attempts", message)
    assert message.count("\n") == 1


def test_a_busy_server_is_given_the_time_it_asks_for(studio, tmp_path, monkeypatch):
    labelled(studio)
    pauses = []
    monkeypatch.setattr(api_module.time, "sleep", pauses.append)
    studio.failures, studio.retry_after = [429, 520], "7"
    watch(studio, tmp_path)
    assert pauses == [7, 7]
    assert labels_in(tmp_path)
    for answer, seconds in (("86400", 60), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-1", 0)):
        pauses.clear()
        studio.failures, studio.retry_after = [429] * 4, answer
        message = watch(studio, tmp_path, code=2)
        assert "status 429 after 4 attempts; look less often" in message
        assert pauses == [seconds] * 3


def test_what_is_not_label_studio_ends_in_one_line(studio, tmp_path):
    assert "no project 7 there" in watch(studio, tmp_path, code=2, project=7)
    for body in (
        b"<html>",
        b"[]",
        b"7",
        b'"x"',
        b"{}",
        b'{"tasks": 3}',
        b'{"tasks": [3]}',
        b"[" * 9999,
    ):
        studio.body = body
        message = watch(studio, tmp_path, code=2)
        assert studio.url in message
        assert message.count("\n") == 1


def test_options_have_to_fit(studio, tmp_path):
    def refused(*arguments):
        done = run("watch", *arguments, "-o", "labels.csv", "--once", cwd=tmp_path)
        assert done.returncode == 2
        return done.stderr.decode()

    assert "name a file or folder to watch" in refused()
    assert "PATH and --label-studio exclude each other" in refused(
        "x.csv", "--label-studio", studio.url
    )
    assert "needs the number of a project" in refused("--label-studio", studio.url)
    assert "--listen and --label-studio belong together" in refused("x.csv", "--listen", "80")


# Webhooks.


def test_events_change_the_project(studio):
    project = LabelStudioProject(LabelStudioApi(studio.url, ApiKey(KEY)), 1)
    project.load()
    first = studio.annotate(1, 1, "pos")
    created = {
        "action": "ANNOTATION_CREATED",
        "annotation": studio.tasks[1]["annotations"][0],
        "project": {"id": 1},
    }
    assert project.apply(created)
    assert not project.apply(created)  # sent twice
    assert project.reading(None).annotations.to_dict() == {"1": {"1": "pos"}}
    older = dict(created["annotation"])
    studio.annotate(1, 1, "neg", number=first)
    newer = studio.tasks[1]["annotations"][0]
    assert project.apply(
        {"action": "ANNOTATION_UPDATED", "annotation": newer, "project": {"id": 1}}
    )
    assert not project.apply(
        {"action": "ANNOTATION_UPDATED", "annotation": older, "project": {"id": 1}}
    )
    assert project.reading(None).annotations.to_dict() == {"1": {"1": "neg"}}
    assert not project.apply({**created, "project": {"id": 2}})
    deleted = {
        "action": "ANNOTATIONS_DELETED",
        "annotations": [{"id": first}],
        "project": {"id": 1},
    }
    assert project.apply(deleted)
    assert not project.apply(deleted)
    assert not project.apply(created)  # late
    assert project.reading(None) is None


def test_events_are_ordered_by_time_with_and_without_microseconds(studio):
    project = LabelStudioProject(LabelStudioApi(studio.url, ApiKey(KEY)), 1)
    first = studio.annotate(1, 1, "pos", updated_at="2024-05-01T12:00:00Z")
    project.load()
    studio.annotate(1, 1, "neg", number=first, updated_at="2024-05-01T12:00:00.25Z")
    assert project.apply(
        {"action": "ANNOTATION_UPDATED", "annotation": studio.tasks[1]["annotations"][0]}
    )
    assert project.reading(None).annotations.to_dict() == {"1": {"1": "neg"}}


def test_cancelled_annotations_and_deleted_tasks_do_not_count(studio):
    project = LabelStudioProject(LabelStudioApi(studio.url, ApiKey(KEY)), 1)
    first = studio.annotate(1, {"id": 1, "email": "ann@x.org"}, "pos")
    studio.annotate(2, 1, "neg")
    project.load()
    assert project.reading(None).annotations.annotators.tolist() == ["1"]  # one person, both ways
    studio.annotate(1, 1, "pos", number=first, was_cancelled=True)
    project.apply({"action": "ANNOTATION_UPDATED", "annotation": studio.tasks[1]["annotations"][0]})
    assert project.reading(None).annotations.items.tolist() == ["2"]
    project.apply({"action": "TASKS_DELETED", "tasks": [{"id": 2}], "project": {"id": 1}})
    assert project.reading(None) is None


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"action": "ANNOTATION_CREATED"},
        {"action": "ANNOTATION_CREATED", "annotation": 7},
        {"action": "ANNOTATION_CREATED", "annotation": {"id": "x", "task": []}},
        {"action": "ANNOTATION_CREATED", "annotation": [3, None]},
        {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": {}}], "project": "x"},
        {"action": "TASKS_DELETED", "tasks": [{"id": "1"}, 4]},
        {"action": "PROJECT_UPDATED", "project": {"id": 1}},
    ],
)
def test_odd_events_change_nothing(studio, event):
    labelled(studio)
    project = LabelStudioProject(LabelStudioApi(studio.url, ApiKey(KEY)), 1)
    project.load()
    assert not project.apply(event)
    assert project.n_annotations == 6


def test_the_receiver_takes_events_as_json_alone():
    with WebhookReceiver(0) as receiver:
        assert receiver.url.startswith("http://127.0.0.1:")
        assert send(receiver.url, {"action": "A"}) == 200
        assert send(receiver.url, {"action": "A"}, "application/json; charset=utf-8") == 200
        assert send(receiver.url, {"action": "B"}, "text/plain") == 415  # as a web page could
        assert send(receiver.url, b"{") == 400
        assert send(receiver.url, [1]) == 400
        assert send(receiver.url, {"action": 7}) == 400
        assert send(receiver.url, b"[" * 99_999) == 400
        assert receiver.take(0) == [{"action": "A"}, {"action": "A"}]
        assert receiver.take(0) == []
        port = int(receiver.url.rsplit(":")[-1].strip("/"))
        with pytest.raises(OptionError, match=f"port {port}: address already in use"):
            WebhookReceiver(port)


def test_too_many_events_are_refused_and_remembered(monkeypatch):
    monkeypatch.setattr("dissensus.scale.webhooks._MOST", 2)
    with WebhookReceiver(0) as receiver:
        assert [send(receiver.url, {"action": "A"}) for _ in range(3)] == [200, 200, 503]
        assert receiver.overflowed.is_set()


def until(check, seconds=60):
    """Wait until a check holds."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def test_labels_arrive_by_webhook_while_it_runs(studio, tmp_path):
    labelled(studio)
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "dissensus", "watch", "--label-studio", studio.url),
            *("--project", "1", "--listen", str(port), "--every", "30", "-o", "labels.csv"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stderr=subprocess.PIPE,
    )
    try:
        until(lambda: len(studio.predictions()[1]) == 1)
        studio.webhook = f"http://127.0.0.1:{port}/"
        for by in (1, 2):
            last = studio.annotate(3, by, "pos")
        until(lambda: [value for _, value, _ in studio.predictions()[3]] == [{"choices": ["pos"]}])
        studio.failures = [503] * 4  # it goes on after an error
        for one in list(studio.tasks[3]["annotations"]):
            studio.annotate(3, one["completed_by"], "neg", number=one["id"])
        studio.failures = []
        studio.delete(last)
        until(lambda: studio.tasks[3]["meta"] == {"dissensus": {"agreement": None, "labels": 1}})
        until(lambda: studio.predictions()[3][0][1] == {"choices": ["neg"]})
        until(lambda: labels_in(tmp_path).get("3") == "neg")
    finally:
        process.send_signal(signal.SIGINT)
        message = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 0, message
    assert f"add the webhook http://127.0.0.1:{port}/" in message
    assert KEY not in message
