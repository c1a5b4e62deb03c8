"""Hard items by the command `identify`: files as peerannot names them, sheets and pages."""
# ruff: noqa: E402

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need torch: pip install '.[deep]'")

from dissensus import Annotations
from dissensus.errors import install_command
from dissensus.reporting.hardest import HardItem, contact_sheet

from ..support import run
from .test_hard_items import gaussians

os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)

SIDE, NAMES = 16, ["bars", "cross", "disc"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder as peerannot has them: bars, crosses, discs, and noise."""
    from PIL import Image

    from dissensus.formats.tools.peerannot import write_folder

    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:SIDE, :SIDE]
    shapes = [np.sin(row) > 0, (row == 8) | (column == 8), np.hypot(row - 8, column - 8) < 5]
    rows = []
    for item in range(40):
        kind = item % 3
        noise = rng.normal(0, 30, (SIDE, SIDE, 3))
        pixels = noise + (255 * shapes[kind][:, :, None] if item >= 4 else 128)
        position = folder / "train" / NAMES[kind] / f"shape-{item}.png"
        position.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(position)
        for annotator in range(3):
            label = kind if item >= 4 else (item + annotator) % 3
            rows.append((item, annotator, label))
    item, annotator, label = (np.array(each) for each in zip(*rows, strict=True))
    annotations = Annotations.from_codes(item, annotator, label, items=40, annotators=3, classes=3)
    write_folder(folder, annotations, metadata={"name": "shapes", "label_names": NAMES})
    return folder


def identify(path, *options, ok=True):
    network = ["--model", "conv4[hidden=8]", "--img-size", SIDE, "--n-epochs", 2]
    done = run("identify", path, "--alpha", 0.1, *network, *options)
    assert (done.returncode == 0) == ok, done.stderr
    return done


def read_csv(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_waum_writes_what_peerannot_writes(pictures):
    done = identify(pictures, "-s", "WAUM", "-K", 3, "--labels", pictures / "answers.json")
    assert b"4 of 40 items are too hard" in done.stderr
    position = pictures / "identification" / "conv4" / "waum_0.1_yang"
    rows = read_csv(position / "waum.csv")
    assert list(rows[0]) == ["index", "task", "waum"]
    assert len(rows) == 40
    files = sorted((pictures / "train").rglob("*.png"), key=lambda file: (file.parent, file.name))
    assert [files[int(row["index"])].name for row in rows] == [row["task"] for row in rows]
    areas = json.loads((position / "aum_per_worker.json").read_text("utf-8"))
    weights = json.loads((position / "score_per_worker.json").read_text("utf-8"))
    for row in rows:
        area, weight = (
            np.array([each[row["index"]][who] for who in "012"]) for each in (areas, weights)
        )
        mean = (weight * area).sum() / weight.sum()
        assert float(row["waum"]) == pytest.approx(mean, abs=1e-9)
    removed = np.loadtxt(position / "too_hard_0.1.txt", dtype=int)  # as peerannot reads it
    lowest = sorted(rows, key=lambda row: float(row["waum"]))[:4]
    assert {(int(row["index"]), int(row["task"][6:-4])) for row in lowest} == set(
        map(tuple, removed.tolist())
    )
    labels = np.load(pictures / "labels" / "labels_waum_0.1.npy")
    assert labels.shape == (40, 3)
    kept = ~np.isin(np.arange(40), removed[:, 1])
    np.testing.assert_allclose(labels.sum(axis=1), kept)
    assert (position / "hardest.png").read_bytes().startswith(b"\x89PNG")
    assert not (Path.cwd() / "temp").exists()


def test_what_is_too_hard_can_be_removed(pictures, tmp_path):
    identify(pictures, "-s", "waum")
    file = pictures / "identification" / "conv4" / "waum_0.1_yang" / "too_hard_0.1.txt"
    done = run("aggregate", pictures, "-s", "MV", "--path-remove", file)
    assert b"labels of 36 items" in done.stderr
    floats = tmp_path / "as_numpy_writes.txt"
    np.savetxt(floats, np.loadtxt(file))
    again = run("aggregate", pictures, "-s", "MV", "--path-remove", floats)
    assert b"labels of 36 items" in again.stderr
    trained = run(
        *("train", pictures, "-s", "MV", "--path-remove", file, "--folder", tmp_path, "--json"),
        *("--model", "conv4[hidden=8]", "--img-size", SIDE, "--n-epochs", 1),
    )
    assert json.loads(trained.stdout)["n_items"] == 36


@pytest.mark.parametrize("name", ["aum", "AUMC"])
def test_aum_writes_what_peerannot_writes(pictures, name):
    identify(pictures, "-s", name, "--held-out", 0, "--use-pleiss")
    position = pictures / "identification" / "conv4" / name.lower()
    values = read_csv(position / "aum_values.csv")
    assert list(values[0]) == ["sample_id", "filename", "AUM_yang", "AUM_pleiss"]
    records = read_csv(position / "full_aum_records.csv")
    assert len(records) == 80  # of two epochs
    for row in values[:5]:
        mine = [each for each in records if each["index"] == row["sample_id"]]
        assert [int(each["epoch"]) for each in mine] == [0, 1]
        for margin, other in {"AUM_yang": "secondlogit", "AUM_pleiss": "other_max_logit"}.items():
            mean = np.mean([float(each["label_logit"]) - float(each[other]) for each in mine])
            assert float(row[margin]) == pytest.approx(mean, abs=1e-4)
        if name == "aum":  # the label is the folder that the image lies in
            assert int(mine[0]["label"]) == int(row["filename"][6:-4]) % 3
    lowest = sorted(values, key=lambda row: float(row["AUM_pleiss"]))[:4]
    removed = np.loadtxt(position / "too_hard_0.1.txt", dtype=int)
    assert {int(row["sample_id"]) for row in lowest} == set(removed[:, 0].tolist())


def test_labels_for_aum_can_be_given(pictures, tmp_path):
    np.save(tmp_path / "labels.npy", np.ones(40, dtype=int))
    identify(pictures, "-s", "aum", "--hard-labels", tmp_path / "labels.npy")
    records = read_csv(pictures / "identification" / "conv4" / "aum" / "full_aum_records.csv")
    assert {row["label"] for row in records} == {"1"}


def test_every_annotator_can_have_a_network(pictures, tmp_path):
    identify(pictures, "-s", "WAUM_perworker", "--folder", tmp_path)
    position = tmp_path / "identification" / "conv4" / "waum_perworker_0.1_yang"
    assert len(read_csv(position / "waum.csv")) == 40
    assert (tmp_path / "labels" / "labels_waum_perworker_0.1.npy").exists()


def test_texts_become_a_page(tmp_path):
    rows = [
        {"item": f"i{number}", "annotator": who, "label": "ab"[number % 2], "text": text}
        for number, text in enumerate(["<b>red</b>", "blue & green"] * 4)
        for who in "xyz"
    ]
    with (tmp_path / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    done = run("identify", "answers.csv", "-s", "waum", "--n-epochs", 2, "--json", cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert set(summary["values"]) == {f"i{number}" for number in range(8)}
    position = tmp_path / "identification" / "minilm" / "waum_0.01_yang"
    page = (position / "hardest.html").read_text("utf-8")
    assert "&lt;b&gt;red&lt;/b&gt;" in page
    assert "<b>red" not in page
    assert "a: 3" in page
    lines = (position / "too_hard_0.01.txt").read_text("utf-8").splitlines()
    assert [line.split("\t")[1] for line in lines] == summary["too_hard"]


def test_features_will_do_and_the_table_can_be_kept(tmp_path):
    x, annotations, *_ = gaussians(n_items=30)
    np.savez(tmp_path / "features.npz", x=x)
    with (tmp_path / "answers.csv").open("w", encoding="utf-8") as file:
        file.write("item,annotator,label\n")
        for row in zip(annotations.item, annotations.annotator, annotations.label, strict=True):
            file.write(",".join(map(str, row)) + "\n")
    done = run(
        *("identify", "answers.csv", "-s", "waum", "--inputs", "features.npz", "--n-epochs", 2),
        *("-o", "scores.csv"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = read_csv(tmp_path / "scores.csv")
    assert list(rows[0]) == ["item", "waum", "label", "n_labels", "pruned"]
    assert (tmp_path / "identification" / "identity" / "waum_0.01_yang" / "hardest.html").exists()
    resumed = run(
        *("identify", "answers.csv", "-s", "waum", "--inputs", "features.npz", "--n-epochs", 2),
        *("-o", "again.csv", "--resume"),
        cwd=tmp_path,
    )
    assert resumed.returncode == 0, resumed.stderr
    assert read_csv(tmp_path / "again.csv") == rows


def test_mistakes_end_in_one_line(pictures, tmp_path):
    (tmp_path / "answers.csv").write_text("item,annotator,label\na,x,0\na,y,1\n", "utf-8")
    for options, message in {
        (tmp_path / "answers.csv", "-s", "waum"): "--inputs",
        (pictures, "-s", "waum", "--topk", "3"): "margins with top = 3 need 4",
        (pictures, "-s", "waum", "-o", "x.xyz"): "no format ends in .xyz",
        (pictures, "-s", "wau"): "did you mean waum?",
    }.items():
        done = identify(*options, ok=False)
        assert message in done.stderr.decode(), done.stderr
        assert len(done.stderr.decode().splitlines()) == 1


def test_without_torch_it_says_so_in_one_line(pictures):
    code = "import sys; sys.modules['torch'] = None\n"
    code += "from dissensus.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "identify", str(pictures), "-s", "waum"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"dissensus: networks need torch: {install_command('deep')}"
    ]


def test_the_sheet_shows_every_item(pictures):
    from PIL import Image

    files = sorted((pictures / "train").rglob("*.png"))
    items = [
        HardItem(f"item {number}", number / 10, number < 2, (("a", 2), ("b", 1)), file)
        for number, file in enumerate(files[:7])
    ]
    sheet = Image.open(io.BytesIO(contact_sheet(items, "Seven items")))
    assert sheet.size == (6 * (168 + 14) + 14, 2 * (168 + 3 * 18 + 14) + 3 * 18)
    assert "no label" in HardItem("i", 0.0, False, (), None).summary()
    assert HardItem("i", 0.0, False, (("a", 2), ("b", 1)), None).summary(1) == "a: 2, …"
