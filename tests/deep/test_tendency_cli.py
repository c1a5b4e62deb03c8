"""`dissensus tendency` and `dissensus evaluate --dic`."""

import csv
import json
from importlib.util import find_spec

import numpy as np
import pytest

from ..support import run

if find_spec("torch") is None:
    pytest.skip("networks need torch", allow_module_level=True)

PLAIN = "linear[kernel=linear,shared=1,bias=1,slope=0,own=1]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with answers, features and metadata of two groups who look at different things."""
    folder = tmp_path_factory.mktemp("tendency")
    random = np.random.default_rng(0)
    x = random.normal(size=(120, 2)).astype(np.float32)
    rows = [["item", "annotator", "label"]]
    for item, values in enumerate(x):
        for who, name in enumerate(("ann", "bob", "cy", "dee")):
            yes = 3 * values[who % 2] + random.logistic() > 0
            rows.append([f"i{item}", name, "yes" if yes else "no"])
    with (folder / "answers.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    np.savez(folder / "x.npz", x=x, items=[f"i{item}" for item in range(120)])
    (folder / "people.csv").write_text("annotator,side\nann,a\nbob,b\ncy,a\ndee,b\n")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    done = run("tendency", "fit", "answers.csv", "--inputs", "x.npz", "-s", PLAIN, "-o", "model",
               "--annotators", "people.csv", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "model"


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_help_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys; from dissensus.cli import main\ntry: main(['tendency', 'fit', '--help'])\n"
    code += "except SystemExit: pass\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_checkpoints_of_other_inputs_metadata_or_settings_are_not_resumed(folder, tmp_path):
    for name in ("answers.csv", "x.npz", "people.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    asked = ("tendency", "fit", "answers.csv", "--inputs", "x.npz", "-o", "model", "--annotators")
    asked += ("people.csv", "--checkpoints", "kept", "-s")

    def refused(spec="annotator-embedding[epochs=2]"):
        done = run(*asked, spec, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1
        return done.stderr.decode()

    for epochs in (1, 2):  # longer is allowed
        done = run(*asked, f"annotator-embedding[epochs={epochs}]", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    other = refused("annotator-embedding[epochs=2,dropout=0.1]")
    assert "kept: a training of annotator-embedding on auto, not of annotator-emb" in other
    (tmp_path / "people.csv").write_text("annotator,side\nann,a\nbob,a\ncy,b\ndee,b\n")
    assert "kept: learned from other metadata; name a new folder" in refused()
    stored = dict(np.load(tmp_path / "x.npz"))
    np.savez(tmp_path / "x.npz", x=stored["x"][::-1], items=stored["items"])
    assert "kept: learned from other inputs; name a new folder" in refused()


def test_predictions_have_a_row_for_every_item_and_annotator(folder, model):
    done = run("tendency", "predict", model, "x.npz", "-o", "predictions.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    rows = table(folder / "predictions.csv")
    assert len(rows) == 120 * 4
    assert list(rows[0]) == ["item", "annotator", "label", "confidence", "p:no", "p:yes"]
    for row in rows[:20]:
        probabilities = {"no": float(row["p:no"]), "yes": float(row["p:yes"])}
        assert sum(probabilities.values()) == pytest.approx(1)
        assert (
            probabilities[row["label"]] == max(probabilities.values()) == float(row["confidence"])
        )


def test_predictions_can_be_asked_of_some(folder, model):
    done = run("tendency", "predict", model, "x.npz", "--among", "dee, ann", cwd=folder)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 1 + 120 * 2
    assert lines[1].startswith("i0,dee,")
    done = run("tendency", "predict", model, "x.npz", "--among", "zoe", cwd=folder)
    assert done.returncode == 2
    assert b"annotator 'zoe' gave no labels" in done.stderr


def test_what_was_predicted_is_scored(folder, model):
    run("tendency", "predict", model, "x.npz", "-o", "predictions.csv", cwd=folder)
    done = run("evaluate", "predictions.csv", "--dic", "--annotations", "answers.csv",
               "--repeats", "50", "--json", cwd=folder)  # fmt: skip
    found = json.loads(done.stdout)
    assert found["summary"]["accuracy"] > 0.8
    low, high = found["intervals"]["dic"]
    assert low <= found["summary"]["dic"] * 1.5
    assert low < high
    assert found["summary"]["n_pairs_used"] == 6


def test_labels_without_probabilities_have_no_log_loss(folder, model):
    run("tendency", "predict", model, "x.npz", "-o", "predictions.csv", cwd=folder)
    rows = table(folder / "predictions.csv")
    with (folder / "bare.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "annotator", "label"])
        writer.writerows([row["item"], row["annotator"], row["label"]] for row in rows[:200])
    done = run("evaluate", "bare.csv", "--dic", "--annotations", "answers.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert "DIC rms" in shown
    assert "log loss" not in shown
    assert b"280 labels were not predicted" in done.stderr


def test_where_no_pair_can_be_compared_dic_is_a_dash_and_null(tmp_path):
    rows = "".join(f"i{item},{'ab'[item % 2]},{item % 3}\n" for item in range(30))
    (tmp_path / "answers.csv").write_text(f"item,annotator,label\n{rows}")
    arguments = ("evaluate", "answers.csv", "--dic", "--annotations", "answers.csv")
    lines = run(*arguments, cwd=tmp_path).stdout.decode().splitlines()
    cells = [[cell.strip() for cell in line.split("│")] for line in lines]
    assert [row[2:4] for row in cells if row[1:2] == ["DIC"]] == [["–", ""]]
    found = json.loads(run(*arguments, "--json", cwd=tmp_path).stdout)
    assert found["summary"]["dic"] is None
    assert found["intervals"]["dic"] == [None, None]


def test_methods_are_compared_with_label_marginals_and_the_consensus(folder):
    done = run("tendency", "evaluate", "answers.csv", "--inputs", "x.npz", "-s", PLAIN, "--json",
               cwd=folder)  # fmt: skip
    found = json.loads(done.stdout)
    assert list(found) == ["own-majority", "consensus", PLAIN]
    loss = {name: each["summary"]["log_loss"] for name, each in found.items()}
    assert loss[PLAIN] < min(loss["own-majority"], loss["consensus"])
    assert found[PLAIN]["summary"]["dic"] < found["consensus"]["summary"]["dic"]


def test_a_saved_model_is_scored_as_it_is(folder, model):
    done = run("tendency", "evaluate", "answers.csv", "--inputs", "x.npz", "--load", model,
               cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert "own-majority" in shown
    assert "means over 4 annotators with enough labels, 6 pairs of them" in shown
    assert "noise of the labels themselves" in shown


def test_queries_are_scored_on_texts_of_other_lengths(tmp_path):
    words = ["fine", "poor", "a", "long", "day", "at", "sea"]
    random = np.random.default_rng(0)
    texts, rows = ["item,text"], ["item,annotator,label"]
    for item in range(30):
        texts.append(f"{item},{' '.join(random.choice(words, 1 + item))}")
        rows += [f"{item},{who},{random.integers(2)}" for who in "abc"]
    (tmp_path / "texts.csv").write_text("\n".join(texts) + "\n")
    (tmp_path / "answers.csv").write_text("\n".join(rows) + "\n")
    tiny = "query[width=16,layers=1,heads=2,hidden=16,fc=8,fits=1,epochs=1]"
    done = run("tendency", "evaluate", "answers.csv", "--inputs", "texts.csv", "--column", "text",
               "-s", tiny, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"query" in done.stdout


def test_the_fit_prints_a_summary(folder):
    done = run("tendency", "fit", "answers.csv", "--inputs", "x.npz", "-s", "own-majority",
               "-o", "marginals", "--json", cwd=folder)  # fmt: skip
    summary = json.loads(done.stdout)
    assert summary["n_labels"] == 480
    assert summary["classes"] == ["no", "yes"]
    assert (folder / "marginals" / "model.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "answers.csv", "--inputs", "x.npz", "-s", "linaer", "-o", "m"], "did you mean"),
        (["fit", "answers.csv", "--inputs", "none.npz", "-o", "m"], "no such file"),
        (["fit", "none.csv", "--inputs", "x.npz", "-o", "m"], "none.csv"),
        (["predict", "nothing", "x.npz"], "not a saved TendencyClassifier"),
        (["predict", "model", "x.npz", "-o", "x.docx"], "x.docx"),
        (
            ["evaluate", "answers.csv", "--inputs", "x.npz", "--load", "m", "-s", "auto"],
            "leave out",
        ),
    ],
)
def test_errors_are_one_line(folder, model, arguments, message):
    done = run("tendency", *arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert len(done.stderr.decode().strip().splitlines()) == 1
    assert not (folder / "m").exists()


def test_evaluate_asks_for_something_to_compare_with(folder):
    done = run("evaluate", "answers.csv", cwd=folder)
    assert done.returncode == 2
    assert b"score against what?" in done.stderr
    done = run("evaluate", "answers.csv", "--dic", cwd=folder)
    assert b"give --annotations FILE" in done.stderr


def test_metadata_with_an_annotator_twice_are_refused(folder):
    (folder / "twice.csv").write_text("annotator,side\nann,a\nann,b\n")
    done = run("tendency", "fit", "answers.csv", "--inputs", "x.npz", "-o", "m", "--annotators",
               "twice.csv", "-s", "own-majority", cwd=folder)  # fmt: skip
    assert done.returncode == 2
    assert b"annotator 'ann' has two rows" in done.stderr


def test_a_report_has_a_section_on_predictions(folder):
    done = run("tendency", "evaluate", "answers.csv", "--inputs", "x.npz", "-s", PLAIN, "--json",
               cwd=folder)  # fmt: skip
    (folder / "scores.json").write_bytes(done.stdout)
    done = run("report", "answers.csv", "--tendency", "scores.json", "-s", "majority",
               "-o", "report.html", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Individual annotators" in page
    assert "Annotators have opinions of their own" in page
    assert "How well each annotator is predicted" in page


def test_a_report_without_predictions_has_no_such_section(folder):
    run("report", "answers.csv", "-s", "majority", "-o", "plain.html", cwd=folder)
    page = (folder / "plain.html").read_text(encoding="utf-8")
    assert "Individual annotators" not in page


def test_a_report_refuses_scores_of_something_else(folder):
    (folder / "other.json").write_text('{"a": 1}')
    done = run("report", "answers.csv", "--tendency", "other.json", cwd=folder)
    assert done.returncode == 2
    assert b"not what `dissensus tendency evaluate --json` prints" in done.stderr


def test_predictions_say_so_where_nothing_is_personal():
    from dissensus.reporting.tendency_section import Predictions, predictions_figure

    def scores(loss):
        one = {"count": 40, "accuracy": 0.7, "log_loss": loss}
        return {"summary": {"log_loss": loss, "accuracy": 0.7}, "annotators": {"<b>": one}}

    summary = Predictions(
        {"own-majority": scores(0.5), "consensus": scores(0.5), "auto": scores(0.495)}
    )
    text = " ".join(summary.sentences)
    assert "One opinion for all predicts annotators as well" in text
    assert "Label marginals alone" in text
    figure = predictions_figure(summary)
    assert figure is not None
    assert figure.numbers[1] == ("<b>", "70%", "70%", "40")
