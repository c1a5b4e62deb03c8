"""Public data sets by name: from local archives, and from a server on this machine."""

import csv
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from dissensus import DataError, OptionError, install, read, read_truth
from dissensus.datasets.recipes import RECIPES, find_recipe

from ..support import run

SCENES = ["highway", "insidecity", "tallbuilding", "street"]
SCENES += ["forest", "coast", "mountain", "opencountry"]


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def tarred(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, body in members.items():
            entry = tarfile.TarInfo(name)
            body = body.encode() if isinstance(body, str) else body
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return path


def table(rows, separator=","):
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(rows)
    return out.getvalue()


def labelme(folder):
    """Write an archive with the layout of the published one: two images for each scene."""
    names = [f"{scene}_{number}.jpg" for number in (0, 1) for scene in SCENES]
    members = {
        "LabelMe/answers.txt": "\n".join(f"{row % 8} -1 {(row + 1) % 8}" for row in range(16)),
        "LabelMe/labels_train.txt": "\n".join(str(row % 8) for row in range(16)),
        "LabelMe/filenames_train.txt": "\n".join(names),
        "LabelMe/prepared/data_train_vgg16.npy": b"not read",
        "LabelMe/valid/coast/coast_v.jpg": b"valid",
        "LabelMe/test/street/street_t.jpg": b"test",
    }
    members |= {f"LabelMe/train/{name.split('_')[0]}/{name}": name for name in names}
    return tarred(folder / "deep_LabelMe.tar.gz", members)


def music(folder):
    songs = [("blues.00001.mp3", "blues"), ("rock.00007.mp3", "rock"), ("pop.00003.mp3", "pop")]
    answers = [("blues.00001.mp3", "W9", "blues"), ("blues.00001.mp3", "W2", "jazz")]
    answers += [("rock.00007.mp3", "W9", "rock"), ("pop.00003.mp3", "W2", "disco")]
    inside = "music_genre_classification"
    members = {
        f"{inside}/mturk_answers.csv": table(
            [("HITID", "WorkerID", "Input.song", "Answer.pred_label")]
            + [("h", who, song, genre) for song, who, genre in answers]
        ),
        f"{inside}/music_genre_gold.csv": table(
            [("id", "f1", "class")] + [(song, "0.1", genre) for song, genre in songs]
        ),
        f"{inside}/music_genre_test.csv": table([("id", "class"), ("jazz.00002.mp3", "jazz")]),
        "a_sentiment_polarity/mturk_answers.csv": "another,table\n1,2\n",
    }
    return tarred(folder / "mturk-datasets.tar.gz", members)


def cifar10h(folder):
    head = ["annotator_id", "trial_index", "is_attn_check", "true_category", "chosen_category"]
    head += ["true_label", "chosen_label", "cifar10_test_test_idx"]
    rows = [(0, 1, 0, "cat", "cat", 3, 3, 0), (0, 2, 1, "dog", "dog", 5, 5, -99999)]
    rows += [(1, 1, 0, "cat", "dog", 3, 5, 0), (1, 2, 0, "ship", "ship", 8, 8, 1)]
    path = folder / "cifar10h-raw.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cifar10h-raw.csv", table([head, *rows]))
        archive.writestr("__MACOSX/._cifar10h-raw.csv", b"\0\1")
    return path


def pixels(folder):
    """Write an archive with the layout of CIFAR-10's binary version: three images."""
    body = {
        "test_batch.bin": b"\3" + bytes(range(256)) * 12 + b"\x08" + b"\xff" * 3072,
        "data_batch_1.bin": b"\0" + b"\x80" * 3072,
        "readme.html": b"",
    }
    inside = {f"cifar-10-batches-bin/{name}": content for name, content in body.items()}
    return tarred(folder / "cifar-10-binary.tar.gz", inside)


def birds(folder):
    rows = [("candidate_id", "user_id", "annotation"), ("c7", "u1", "1"), ("c7", "u2", "0")]
    rows += [("c9", "u1", "0"), ("c9", "u3", "1")]
    users = [("user_id", "birdwatching_activity_level"), ("u1", "4"), ("u2", "1"), ("u3", "4")]
    path = folder / "bird_sound_training_data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        inside = "bird_sound_training_data"
        archive.writestr(f"{inside}/letters/annotations.tsv", table(rows, "\t"))
        archive.writestr(f"{inside}/numbers/annotations.tsv", "of another\ttable\n")
        archive.writestr(f"{inside}/users.tsv", table(users, "\t"))
    return path


def rows_of(annotations):
    columns = (annotations.item, annotations.annotator, annotations.label)
    return list(zip(*(map(str, column.tolist()) for column in columns), strict=True))


def below(folder):
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


def test_labelme_is_installed_from_a_local_archive(tmp_path):
    path = labelme(tmp_path)
    done = install("labelme", tmp_path / "set", archives=[path])
    assert done.notes == (f"{path}: given, nothing is fetched for it",)
    names = sorted(SCENES)
    annotations = read(tmp_path / "set")
    assert annotations == done.annotations
    assert (annotations.n_items, annotations.n_annotators, annotations.n_classes) == (16, 3, 8)
    given = {(i, a): names[int(label)] for i, a, label in rows_of(annotations)}
    assert given[("0", "0")] == "highway"
    assert given[("0", "2")] == "insidecity"
    assert given[("13", "0")] == "coast"
    truth = {item: names[int(label)] for item, label in read_truth(tmp_path / "set").items()}
    assert truth == {str(row): SCENES[row % 8] for row in range(16)}
    metadata = json.loads((tmp_path / "set" / "metadata.json").read_text())
    assert metadata["label_names"] == names
    assert metadata["item_names"][13] == "coast_1.jpg"
    assert (metadata["n_workers"], metadata["nb_workers"]) == (3, 2)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert metadata["sources"] == [{"url": RECIPES["labelme"].sources[0].url, "sha256": digest}]
    images = [one for one in below(tmp_path / "set") if one.endswith(".jpg")]
    assert done.n_links == len(images) == 18
    assert (tmp_path / "set/train/coast/coast_1-13.jpg").read_text() == "coast_1.jpg"
    assert (tmp_path / "set/val/coast/coast_v-16.jpg").read_bytes() == b"valid"
    assert (tmp_path / "set/test/street/street_t-17.jpg").read_bytes() == b"test"
    install("labelme", tmp_path / "bare", archives=[path], answers_only=True)
    assert below(tmp_path / "bare") == ["answers.json", "ground_truth.npy", "metadata.json"]


def test_music_is_installed_from_a_local_archive_and_its_images_if_given(tmp_path):
    path = music(tmp_path)
    done = install("music", tmp_path / "set", archives=[path])
    assert "download https://www.kaggle.com/" in done.notes[1]
    assert rows_of(read(tmp_path / "set")) == [
        *(("0", "0", "0"), ("0", "1", "5"), ("1", "0", "9"), ("2", "1", "3"))
    ]
    assert read_truth(tmp_path / "set") == {"0": "0", "1": "9", "2": "7"}
    with zipfile.ZipFile(tmp_path / "kaggle_dataset.zip", "w") as archive:
        for genre, song in (("blues", "blues00001"), ("jazz", "jazz00002"), ("pop", "pop00099")):
            archive.writestr(f"Data/images_original/{genre}/{song}.png", song)
    install("Music", tmp_path / "whole", archives=[tmp_path])
    images = [one for one in below(tmp_path / "whole") if one.endswith(".png")]
    assert images == ["test/jazz/jazz00002-3.png", "train/blues/blues00001-0.png"]


def test_cifar10h_is_installed_from_local_archives(tmp_path, monkeypatch):
    archives = [cifar10h(tmp_path), pixels(tmp_path)]
    with pytest.raises(DataError, match="but the source publishes c32a1d4ab5d0"):
        install("cifar10h", tmp_path / "set", archives=archives)
    raw, images = RECIPES["cifar10h"].sources
    images = replace(images, md5=hashlib.md5(archives[1].read_bytes()).hexdigest())
    recipe = replace(RECIPES["cifar10h"], sources=(raw, images))
    monkeypatch.setitem(RECIPES, "cifar10h", recipe)
    done = install("cifar10H", tmp_path / "set", archives=archives)
    assert rows_of(done.annotations) == [
        *(("0", "0", "3"), ("0", "1", "5"), ("1", "1", "8"))
    ]  # without the attention check
    assert read_truth(tmp_path / "set") == {"0": "3", "1": "8"}
    names = ["test/plane/plane-2.png", "train/cat/cat-0.png", "train/ship/ship-1.png"]
    assert [one for one in below(tmp_path / "set") if one.endswith(".png")] == names
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    with image.open(tmp_path / "set" / "train/cat/cat-0.png") as opened:
        found = np.asarray(opened)
    expected = np.frombuffer(bytes(range(256)) * 12, np.uint8).reshape(3, 32, 32)
    assert np.array_equal(found, expected.transpose(1, 2, 0))


def test_bird_audio_takes_experts_for_the_truth_where_they_agree(tmp_path):
    install("bird_audio", tmp_path / "set", archives=[birds(tmp_path)])
    rows = rows_of(read(tmp_path / "set"))
    assert rows == [("0", "0", "1"), ("0", "1", "0"), ("1", "0", "0"), ("1", "2", "1")]
    assert read_truth(tmp_path / "set") == {"0": "1"}


def test_an_archive_in_this_folder_is_read_instead_of_fetching(tmp_path):
    music(Path())
    done = run("install", "music", "--no-task", cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    assert b"mturk-datasets.tar.gz: found in this folder, nothing is fetched" in done.stderr
    assert b"4 labels by 2 annotators on 3 items written to music" in done.stderr


@pytest.mark.parametrize("case", ["../x", "/x", "link", "cut"])
def test_a_hostile_archive_of_a_known_set_leaves_nothing_behind(case, tmp_path):
    path = tmp_path / "deep_LabelMe.tar.gz"
    if case == "cut":
        labelme(tmp_path)
        path.write_bytes(path.read_bytes()[:-200])
    else:
        with tarfile.open(path, "w:gz") as archive:
            entry = tarfile.TarInfo("LabelMe/answers.txt" if case == "link" else case)
            if case == "link":
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
    with pytest.raises(DataError, match=r"leads outside|is a link|damaged archive"):
        install("labelme", tmp_path / "set", archives=[path])
    assert not (tmp_path / "set").exists()


def test_another_archive_is_refused_with_what_is_missing(tmp_path):
    tarred(tmp_path / "any.tar.gz", {"readme.txt": "nothing"})
    with pytest.raises(DataError, match=r"answers.txt is not in the archive"):
        install("labelme", tmp_path / "set", archives=[tmp_path / "any.tar.gz"])
    with pytest.raises(OptionError, match=r"not a file of cifar10h, which has cifar10h-raw.zip"):
        install("cifar10h", tmp_path / "set", archives=[labelme(tmp_path), music(tmp_path)])
    with pytest.raises(OptionError, match="archives=… is for labelme, music"):
        install("demo", tmp_path / "set", archives=[tmp_path / "any.tar.gz"])
    assert not (tmp_path / "set").exists()


@contextmanager
def served(files, *, cut=0, ranges=True):
    """Serve bytes on this machine; the first answer ends after `cut` bytes."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            asked.append(self.headers.get("Range"))
            body = files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            tag = f'"{hashlib.md5(body).hexdigest()}"'
            start = 0
            if ranges and self.headers.get("Range") and self.headers.get("If-Range") == tag:
                start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            self.send_response(206 if start else 200)
            self.send_header("ETag", tag)
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            self.wfile.write(body[start : cut or None] if len(asked) == 1 else body[start:])
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def served_music(tmp_path, monkeypatch):
    """Return a context that serves the archive of `music` in place of its publisher."""

    @contextmanager
    def serve(**how):
        most = how.pop("most", 2**20)
        body = how.pop("body", None) or music(tmp_path).read_bytes()
        md5 = how.pop("md5", None)
        with served({"/mturk-datasets.tar.gz": body}, **how) as (address, asked):
            url = f"{address}/mturk-datasets.tar.gz"
            source = replace(RECIPES["music"].sources[0], url=url, most=most, md5=md5)
            recipe = replace(RECIPES["music"], sources=(source,))
            monkeypatch.setitem(RECIPES, "music", recipe)
            yield url, asked

    return serve


def test_a_set_is_fetched_once_and_its_checksum_is_recorded(served_music, tmp_path):
    with served_music() as (url, asked):
        done = install("music", tmp_path / "one")
        assert "no checksum is published, SHA-256" in done.notes[0]
        again = install("music", tmp_path / "two")
        assert "fetched before" in again.notes[0]
        assert asked == [None]
        cached = tmp_path / "cache/dissensus/datasets/music/mturk-datasets.tar.gz"
        recorded = json.loads((cached.parents[1] / "checksums.json").read_text())
        assert recorded == {url: hashlib.sha256(cached.read_bytes()).hexdigest()}
        cached.write_bytes(b"changed")
        with pytest.raises(DataError, match="changed since it was first fetched"):
            install("music", tmp_path / "three")
        assert not (tmp_path / "three").exists()
        assert install("music", tmp_path / "three").annotations == done.annotations


def test_a_fetch_that_broke_off_is_resumed(served_music, tmp_path):
    with served_music(cut=100) as (_, asked):
        with pytest.raises(DataError, match=r"after 100 of \d+ bytes; run it again to resume"):
            install("music", tmp_path / "set")
        assert not (tmp_path / "set").exists()
        install("music", tmp_path / "set")
        assert asked == [None, "bytes=100-"]
    assert len(read(tmp_path / "set")) == 4


def test_a_server_without_ranges_starts_again(served_music, tmp_path):
    with served_music(cut=100, ranges=False):
        with pytest.raises(DataError, match="run it again to resume"):
            install("music", tmp_path / "set")
        install("music", tmp_path / "set")
    assert len(read(tmp_path / "set")) == 4


def test_what_is_fetched_has_the_published_checksum_and_size_or_is_refused(served_music, tmp_path):
    with served_music(md5="0" * 32), pytest.raises(DataError, match="not the file that its source"):
        install("music", tmp_path / "set")
    with served_music(most=50), pytest.raises(DataError, match="more than the 50"):
        install("music", tmp_path / "set")
    body = music(tmp_path).read_bytes()
    with served_music(body=body, md5=hashlib.md5(body).hexdigest()):
        assert "as published (MD5)" in install("music", tmp_path / "set").notes[0]


def test_without_a_network_the_message_names_the_archive_to_get(served_music, tmp_path):
    with served_music() as (url, _):
        pass  # nobody listens any more
    with pytest.raises(
        DataError, match=r"cannot be fetched .*then archives=\['mturk-datasets.tar.gz'\]"
    ):
        install("music", tmp_path / "set")
    with served({}) as (address, _):
        source = replace(RECIPES["music"].sources[0], url=f"{address}/mturk-datasets.tar.gz")
        RECIPES["music"] = replace(RECIPES["music"], sources=(source,))  # restored by the fixture
        with pytest.raises(DataError, match="the server answers 404"):
            install("music", tmp_path / "set")
    assert url.startswith("http://127.0.0.1")


def test_recipes_are_found_by_peerannot_s_names():
    names = ["labelme", "cifar10H", "music", "bird_audio", "krippendorff-data", "toy-data"]
    assert [find_recipe(name) for name in names] == [
        *("labelme", "cifar10h", "music", "bird-audio", "krippendorff-data", "toy-data")
    ]
    assert find_recipe("hammer-spammer") is None
