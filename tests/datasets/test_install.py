import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dissensus import (
    Annotations,
    DataError,
    OptionError,
    demo,
    install,
    read,
    read_truth,
    simulators,
)
from dissensus.datasets.data_set import ImageFolders

from ..support import relation, run


def pictures(folder, classes=("cat", "dog"), each=3, prefix="p"):
    """Make a folder of pictures for each class, and return their names."""
    names = []
    for label in classes:
        (folder / label).mkdir(parents=True)
        for number in range(each):
            name = f"{prefix}-{label}_{number}.jpg"
            (folder / label / name).write_bytes(b"not really a picture")
            names.append(name)
    return names


def below(folder):
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if not one.is_dir())


def test_the_demo_is_a_data_set_by_name(tmp_path, monkeypatch):
    (tmp_path / "here" / "demo").mkdir(parents=True)  # a folder of that name is ./demo
    monkeypatch.chdir(tmp_path / "here")
    done = install("demo", tmp_path / "demo")
    annotations, truth = demo()
    assert done.annotations == annotations
    assert read(tmp_path / "demo") == annotations
    assert read_truth(tmp_path / "demo" / "truth.csv") == truth


@pytest.mark.parametrize("name", [n for n in simulators if n != "given-matrices"])
def test_every_simulator_is_a_data_set_by_name(name, tmp_path):
    if simulators.create(name).numeric:
        with pytest.raises(OptionError, match="draws numbers"):
            install(name, tmp_path / "made")
        return
    done = install(name, tmp_path / "made")
    assert read(tmp_path / "made") == done.annotations
    assert done.annotations.n_items == 200
    assert (done.annotations.labels_per_item >= 3).all()
    assert len(read_truth(tmp_path / "made")) == 200


def test_what_is_neither_a_path_nor_a_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="hammer-spamer: no such file, and no data set of that"):
        install("hammer-spamer")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match="demo: is there already; name another folder="):
        install("demo")
    with pytest.raises(OptionError, match="it is there already"):  # the folder of that name
        install("./demo")
    assert (tmp_path / "demo" / "mine.txt").read_text() == "keep"


MATRIX = "0 1 -1\n-1 -1 -1\n2 2 0\n"


@pytest.mark.parametrize(
    ("name", "content", "layout"),
    [
        ("m.txt", MATRIX, 0),
        ("m.txt", MATRIX, None),
        ("m.csv", MATRIX.replace(" ", ","), 0),
        ("m.tsv", MATRIX.replace(" ", "\t"), 0),
        ("a.json", '{"0": {"0": 0, "1": 1}, "2": {"0": 2, "1": 2, "2": 0}}', 1),
        ("a.json", '{"0": {"0": 0, "1": 1}, "2": {"0": 2, "1": 2, "2": 0}}', None),
        ("b.json", '{"0": {"0": 0, "2": 2}, "1": {"0": 1, "2": 2}, "2": {"2": 0}}', 2),
    ],
)
def test_annotations_in_every_layout_of_peerannot_become_the_same_folder(
    name, content, layout, tmp_path
):
    (tmp_path / name).write_text(content)
    install(tmp_path / name, tmp_path / "set", answers_format=layout)
    assert json.loads((tmp_path / "set" / "answers.json").read_text()) == {
        "0": {"0": 0, "1": 1},
        "1": {},
        "2": {"0": 2, "1": 2, "2": 0},
    }
    notes = json.loads((tmp_path / "set" / "metadata.json").read_text())
    assert notes == {"name": "set", "n_classes": 3, "n_workers": 3, "n_task": 3, "nb_workers": 3}


def test_any_table_becomes_a_folder_that_keeps_its_names(tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\nx y,ann,cat\nx y,bob,dog\nz,ann,cat\n")
    done = install(tmp_path / "a.csv", tmp_path / "set")
    expected = relation([("x y", "ann", "cat"), ("x y", "bob", "dog"), ("z", "ann", "cat")])
    assert done.annotations == expected
    assert read(tmp_path / "set") == expected


def test_ids_with_large_gaps_are_names(tmp_path):
    (tmp_path / "a.json").write_text('{"1000000001": {"3": 0}, "1000000002": {"5": 1}}')
    annotations = install(tmp_path / "a.json", tmp_path / "set").annotations
    assert annotations.items.tolist() == ["1000000001", "1000000002"]
    assert annotations.annotators.tolist() == ["0", "1", "2", "3", "4", "5"]
    assert read(tmp_path / "set") == annotations


def test_metadata_and_label_names_decide_what_they_say(tmp_path):
    (tmp_path / "m.txt").write_text(MATRIX)
    (tmp_path / "meta.json").write_text('{"name": "mine", "url": "x", "n_workers": 9}')
    (tmp_path / "names.txt").write_text("cat\ndog\nfox\nowl\n")
    options = {"metadata": tmp_path / "meta.json", "label_names": tmp_path / "names.txt"}
    install(tmp_path / "m.txt", tmp_path / "set", **options)
    notes = json.loads((tmp_path / "set" / "metadata.json").read_text())
    assert (notes["name"], notes["url"], notes["n_workers"]) == ("mine", "x", 9)
    assert (notes["n_classes"], notes["label_names"]) == (4, ["cat", "dog", "fox", "owl"])
    assert read(tmp_path / "set").n_classes == 4
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    with pytest.raises(DataError, match=r"names.txt: 2 classes, but labels have 3"):
        install(tmp_path / "m.txt", tmp_path / "other", **options)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n1\n", "no matrix of class numbers"),
        ("0 x\n", "no matrix of class numbers"),
        ("0 1.5\n", "not all of them are whole numbers"),
        ("", "no matrix of class numbers"),
        ('{"a": 1}', "no matrix of class numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_a_bad_matrix_is_refused(content, message, tmp_path):
    (tmp_path / "m.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        install(tmp_path / "m.txt", tmp_path / "set", answers_format=0)
    assert not (tmp_path / "set").exists()


def test_pictures_are_linked_as_peerannot_has_them(tmp_path):
    names = pictures(tmp_path / "raw", each=50)
    (tmp_path / "files.txt").write_text("\n".join(names))
    tested = pictures(tmp_path / "test", each=2, prefix="t")
    (tmp_path / "m.txt").write_text("\n".join(["0 1 1"] * len(names)))
    done = install(
        tmp_path / "m.txt",
        tmp_path / "set",
        pictures=ImageFolders(tmp_path / "files.txt", tmp_path / "raw", test=tmp_path / "test"),
    )
    assert done.n_links == 104
    links = [one for one in below(tmp_path / "set") if one.endswith(".jpg")]
    assert len(links) == 104
    for one in links:
        link = tmp_path / "set" / one
        stem, _, item = link.stem.rpartition("-")
        assert link.readlink().is_absolute()
        assert link.readlink().name == f"{stem}.jpg"
        assert link.readlink().parent.name == link.parent.name
        if not one.startswith("test"):
            assert names[int(item)] == f"{stem}.jpg"
    validate = [one for one in links if one.startswith("val/")]
    assert 10 <= len(validate) <= 30  # a fifth of 100
    truth = json.loads((tmp_path / "set" / "test_groundTruth.json").read_text())
    assert truth == {"100": {"0": 0}, "101": {"0": 0}, "102": {"0": 1}, "103": {"0": 1}}
    assert len(tested) == 4
    again = install(
        tmp_path / "m.txt",
        tmp_path / "set",
        pictures=ImageFolders(tmp_path / "files.txt", tmp_path / "raw", test=tmp_path / "test"),
    )
    assert again.n_links == 104
    assert [one for one in below(tmp_path / "set") if one.endswith(".jpg")] == links


def test_pictures_to_validate_may_be_given(tmp_path):
    (tmp_path / "files.txt").write_text("\n".join(pictures(tmp_path / "raw")))
    pictures(tmp_path / "val", each=1, prefix="v")
    (tmp_path / "m.txt").write_text("\n".join(["0 1"] * 6))
    install(
        tmp_path / "m.txt",
        tmp_path / "set",
        pictures=ImageFolders(tmp_path / "files.txt", tmp_path / "raw", val=tmp_path / "val"),
    )
    assert [one for one in below(tmp_path / "set") if one.startswith("val")] == [
        "val/cat/v-cat_0-6.jpg",
        "val/dog/v-dog_0-7.jpg",
    ]
    assert len([one for one in below(tmp_path / "set") if one.startswith("train")]) == 6


def test_a_picture_that_is_not_in_the_list_is_reported_before_anything_is_written(tmp_path):
    names = pictures(tmp_path / "raw")
    (tmp_path / "files.txt").write_text("\n".join(names[1:]))
    (tmp_path / "m.txt").write_text(MATRIX)
    with pytest.raises(DataError, match=r"no 'p-cat_0.jpg', which is in"):
        install(
            tmp_path / "m.txt",
            tmp_path / "set",
            pictures=ImageFolders(tmp_path / "files.txt", tmp_path / "raw"),
        )
    assert not (tmp_path / "set").exists()


def data_set(folder):
    install("hammer-spammer", folder)
    pictures(folder / "train")
    return folder


@pytest.mark.parametrize("packing", ["zip", "tar", "tar.gz", "inside.zip"])
def test_archives_of_a_data_set_are_unpacked(packing, tmp_path):
    source = data_set(tmp_path / "source")
    path = tmp_path / f"packed.{packing}"
    prefix = "top/" if packing == "inside.zip" else ""
    if packing.endswith("zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in below(source):
                archive.write(source / one, prefix + one)
    else:
        with tarfile.open(path, "w:gz" if packing.endswith("gz") else "w") as archive:
            archive.add(source, "source")
    done = install(path, tmp_path / "set")
    assert read(tmp_path / "set") == done.annotations == read(source)
    assert below(tmp_path / "set") == below(source)
    assert read_truth(tmp_path / "set") == read_truth(source)
    with pytest.raises(DataError, match="is there already"):
        install(path, tmp_path / "set")


def test_an_archive_with_a_table_is_enough(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data/answers.csv", "item,annotator,label\na,x,0\nb,y,1\n")
        archive.writestr("data/README.md", "what it is")
    done = install(tmp_path / "a.zip", tmp_path / "set")
    assert done.annotations == relation([("a", "x", "0"), ("b", "y", "1")])
    assert below(tmp_path / "set") == ["README.md", "answers.csv", "answers.json", "metadata.json"]


def zipped(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members:
            archive.writestr(name, body)


def tarred(path, name, kind=tarfile.REGTYPE, target=""):
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, target
        body = b"{}" if kind == tarfile.REGTYPE else b""
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))


def hostile(case, path):
    match case:
        case "parent":
            zipped(path, ("../answers.json", "{}"))
        case "absolute":
            zipped(path, ("/tmp/answers.json", "{}"))
        case "windows":
            zipped(path, ("..\\answers.json", "{}"))
        case "drive":
            zipped(path, ("C:\\answers.json", "{}"))
        case "bomb":
            zipped(path, ("answers.json", b"0" * 2**27))
        case "link":
            info = zipfile.ZipInfo("train")
            info.external_attr = 0o120777 << 16
            zipped(path, (info, "/etc"))
        case "tar parent":
            tarred(path, "../answers.json")
        case "tar absolute":
            tarred(path, "/tmp/answers.json")
        case "tar link":
            tarred(path, "train", tarfile.SYMTYPE, "/etc")
        case "tar hard link":
            tarred(path, "train", tarfile.LNKTYPE, "/etc/passwd")
        case "tar device":
            tarred(path, "train", tarfile.CHRTYPE)
        case "cut off":
            zipped(path, ("answers.json", os.urandom(5000)))
            raw = bytearray(path.read_bytes())
            raw[60:200] = b"\0" * 140
            path.write_bytes(bytes(raw))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("parent", "leads outside"),
        ("absolute", "leads outside"),
        ("windows", "leads outside"),
        ("drive", "leads outside"),
        ("bomb", "unpack it yourself if you trust it"),
        ("link", "is a link or a device"),
        ("tar parent", "leads outside"),
        ("tar absolute", "leads outside"),
        ("tar link", "is a link or a device"),
        ("tar hard link", "is a link or a device"),
        ("tar device", "is a link or a device"),
        ("cut off", "damaged archive"),
    ],
)
def test_hostile_archives_leave_nothing_behind(case, message, tmp_path):
    path = tmp_path / "inner" / "evil.zip"
    path.parent.mkdir()
    hostile(case, path)
    with pytest.raises(DataError, match=message):
        install(path, tmp_path / "inner" / "set")
    assert below(tmp_path) == ["inner/evil.zip"]


def test_a_folder_is_taken_over_with_its_pictures_and_truth(tmp_path):
    source = data_set(tmp_path / "source")
    done = install(source, tmp_path / "set")
    assert read(tmp_path / "set") == read(source)
    assert read_truth(tmp_path / "set") == read_truth(source)
    assert done.n_links == 6
    assert (tmp_path / "set" / "train").is_symlink()
    with pytest.raises(OptionError, match="it is there already"):
        install(source, source)


SCRIPT = """
import json
from pathlib import Path
Path("ran.txt").write_text("ran")

class Birds:
    def setfolders(self):
        Path("answers.json").write_text(json.dumps({"0": {"0": 1, "1": 0}}))

class Other:
    def setfolders(self):
        raise RuntimeError("the second class is not asked")
"""


def test_a_script_does_not_run_unless_it_is_trusted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("birds.py").write_text(SCRIPT)
    with pytest.raises(OptionError, match="read it, then trust_code=True"):
        install("birds.py")
    done = run("install", "birds.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert below(tmp_path) == ["birds.py"]
    assert install("birds.py", "set", trust_code=True).annotations == Annotations.from_dict(
        {"0": {"0": 1, "1": 0}}
    )
    assert below(tmp_path) == ["birds.py", "set/answers.json", "set/ran.txt"]
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("x = 1\n", "no class with setfolders"),
        ("class A:\n    def setfolders(self):\n        1 / 0\n", "its code failed .ZeroDivision"),
        ("this is no Python\n", "its code failed .SyntaxError"),
    ],
)
def test_a_script_that_fails_is_reported_in_a_line(script, message, tmp_path):
    (tmp_path / "a.py").write_text(script)
    with pytest.raises(DataError, match=message):
        install(tmp_path / "a.py", tmp_path / "set", trust_code=True)


def test_peerannot_s_command_line_works_without_running_its_script(tmp_path):
    """Its customDataset.py only did what `install` does by itself."""
    (tmp_path / "customDataset.py").write_text("raise RuntimeError('must not run')")
    (tmp_path / "answers.txt").write_text("\n".join(["0 1 1"] * 6))
    (tmp_path / "files.txt").write_text("\n".join(pictures(tmp_path / "raw")))
    done = run(
        *("install", "customDataset.py", "--answers-format", "0", "--answers", "answers.txt"),
        *("--files-path", "files.txt", "--train-path", "raw"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert b"18 labels by 3 annotators on 6 items written to . and 6 images" in done.stderr
    assert len(read(tmp_path)) == 18
    assert np.array_equal(read(tmp_path).labels_per_item, [3] * 6)
    done = run("install", "answers.txt", "--train-path", "raw", cwd=tmp_path)
    assert b"images need both --files-path and --train-path" in done.stderr
    done = run("install", "answers.txt", "--no-task", "--folder", "set", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {
        "labels": 18,
        "annotators": 3,
        "items": 6,
        "classes": 2,
        "links": 0,
        "folder": "set",
    }


def test_absent_folders_of_validation_and_test_leave_them_empty(tmp_path):
    """As peerannot's own tests name folders that are not there."""
    (tmp_path / "files.txt").write_text("\n".join(pictures(tmp_path / "raw")))
    (tmp_path / "answers.txt").write_text("\n".join(["0 1 1"] * 6))
    (tmp_path / "set").mkdir()
    given = ("--files-path", "../files.txt", "--train-path", "../raw")
    absent = ("--val-path", "../val", "--test-path", "../test")
    done = run("install", "../answers.txt", *given, *absent, cwd=tmp_path / "set")
    assert done.returncode == 0, done.stderr
    assert b"val: no such folder; val/ stays empty" in done.stderr
    assert sorted(file.name for file in (tmp_path / "set").iterdir()) == [
        *("answers.json", "metadata.json", "test", "test_groundTruth.json", "train", "val")
    ]
    assert not list((tmp_path / "set" / "val").iterdir())
    assert len(list((tmp_path / "set" / "train").glob("*/*"))) == 6
    assert json.loads((tmp_path / "set" / "test_groundTruth.json").read_text()) == {}
    done = run(
        "install", "answers.txt", "--files-path", "files.txt", "--train-path", "no", cwd=tmp_path
    )
    assert done.returncode == 2
    assert b"no: no such folder" in done.stderr


def test_a_folder_for_validation_is_there_even_if_no_image_is_drawn_for_it(tmp_path):
    (tmp_path / "files.txt").write_text("\n".join(pictures(tmp_path / "raw", each=1)))
    (tmp_path / "m.txt").write_text("0 1\n1 1\n")
    images = ImageFolders(tmp_path / "files.txt", tmp_path / "raw")
    install(tmp_path / "m.txt", tmp_path / "set", pictures=images)
    assert (tmp_path / "set" / "val").is_dir()
    assert not (tmp_path / "set" / "test").exists()


def test_without_tasks_answers_are_all_that_is_written(tmp_path):
    (tmp_path / "a.json").write_text('{"0": {"0": 1, "1": 1}, "1": {"0": 0, "2": 1}}')
    options = ("--answers-format", "2", "--answers", "a.json", "--no-task", "--folder")
    assert run("install", "customDataset.py", *options, "set", cwd=tmp_path).returncode == 0
    assert [file.name for file in (tmp_path / "set").iterdir()] == ["answers.json"]
    assert json.loads((tmp_path / "set" / "answers.json").read_text()) == {
        "0": {"0": 1, "1": 0},
        "1": {"0": 1},
        "2": {"1": 1},
    }
    (tmp_path / "t.csv").write_text("task,worker,label\nx,ann,cat\nx,bob,dog\n")
    install(tmp_path / "t.csv", tmp_path / "named", answers_only=True)
    assert read(tmp_path / "named") == relation([("x", "ann", "cat"), ("x", "bob", "dog")])
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    options = ("--no-task", "--label-names", "names.txt", "--folder", "more")
    assert run("install", "a.json", *options, cwd=tmp_path).returncode == 0
    assert (tmp_path / "more" / "metadata.json").exists()
