import json

import numpy as np
import pytest

from dissensus import aggregate, identify
from dissensus.quality.correlation import spam_score, trace
from dissensus.quality.scores import SCORES

from ..annotator_crowds import crowd, verdict_crowds
from ..support import run


@pytest.fixture
def table(tmp_path):
    from dissensus import write

    write(crowd().annotations, tmp_path / "answers.csv")
    return tmp_path / "answers.csv"


def test_the_command_shows_the_worst_first_and_why(table):
    done = run("identify", table, "--top", 3)
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in shown.splitlines() if "│" in line)
    assert "4 random, 6 attentive" in shown
    assert "7 more; --top 10 shows all" in shown
    assert "(random): Correlation with the others" in shown


def test_json_says_the_same_as_the_library(table):
    summary = json.loads(run("identify", table, "--json", "--no-latent").stdout)
    assert summary["verdicts"] == {"random": 4, "attentive": 6}
    assert summary["annotators"][0]["verdict"] == "random"
    assert summary["annotators"][0]["ability"] is None


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "tsv"])
def test_tables_are_written_by_their_ending(table, tmp_path, ending):
    import polars as pl

    out = tmp_path / f"scores.{ending}"
    assert run("identify", table, "-o", out, "--no-latent").returncode == 0
    reader = {"json": pl.read_json, "parquet": pl.read_parquet, "csv": pl.read_csv}
    frame = reader.get(ending, lambda path: pl.read_csv(path, separator="\t"))(out)
    assert frame["annotator"].len() == 10
    assert frame["seconds"].is_null().all()
    assert frame["verdict"].to_list().count("random") == 4


def test_items_and_single_scores_go_to_standard_output(table):
    shown = run("identify", table, "--items", "-o", "-").stdout.decode().splitlines()
    assert shown[0].startswith("item,n_labels,vote_entropy")
    assert len(shown) == 151
    assert "hard ones first" in run("identify", table, "--items").stdout.decode()
    shown = run("identify", table, "-s", "spam_score", "-o", "-").stdout.decode().splitlines()
    assert shown[0] == "annotator,spam_score"
    summary = json.loads(run("identify", table, "-s", "entropy", "--json").stdout)
    assert len(summary["values"]) == 150


def test_dropping_writes_what_is_kept(table, tmp_path):
    from dissensus import read

    out = tmp_path / "kept.csv"
    done = run("identify", table, "--drop", "verdict == spammer", "-o", out)
    assert done.returncode == 0
    assert "all of 4 annotators and 0 items" in done.stdout.decode()
    assert read(out).n_annotators == 6
    summary = json.loads(run("identify", table, "--drop", "spam_score<0.05", "--json").stdout)
    assert summary["labels_kept"] + summary["labels_dropped"] == 750


def test_a_folder_gets_the_files_that_peerannot_names(tmp_path):
    simulated = crowd("independent-confusion", n_items=50)
    from dissensus import write

    write(simulated.annotations, tmp_path / "set")
    folder = tmp_path / "set"
    options = ["-K", 3, "--n-epochs", 3, "-optim", "SGD", "--use-pleiss", "--alpha", 0.1]
    for name in ("entropy", "Spam_Score", "trace_confusion", "krippendorffalpha", "glad"):
        done = run("identify", folder, "-s", name, "--labels", folder / "answers.json", *options)
        assert done.returncode == 0, done.stderr
    kept = folder / "identification"
    votes = simulated.annotations.votes() / simulated.annotations.votes().sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(votes > 0, votes * np.log(votes), 0).sum(axis=1)
    np.testing.assert_allclose(np.load(kept / "entropies.npy"), entropy, atol=1e-12)
    fitted = aggregate(simulated.annotations, "DS[max_iter=50]").params.confusion
    np.testing.assert_allclose(np.load(kept / "spam_score.npy"), spam_score(fitted))
    np.testing.assert_allclose(np.load(kept / "traces_confusion.npy"), trace(fitted))
    assert np.load(kept / "krippendorff_alpha.npy").shape == ()
    assert np.load(kept / "glad" / "abilities.npy").shape == (10, 2)
    assert np.load(kept / "glad" / "difficulties.npy").shape == (50, 2)
    np.save(tmp_path / "matrices.npy", np.tile(np.eye(3), (10, 1, 1)))
    run("identify", folder, "-s", "spam_score", "--matrix-file", tmp_path / "matrices.npy")
    np.testing.assert_allclose(np.load(kept / "spam_score.npy"), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-s", "spamscor"], "did you mean spam_score?"),
        (["--drop", "spam_score ~ 1"], "cannot read"),
        (["--items", "-s", "entropy"], "without -s"),
        (["--matrix-file", "nothing.npy", "-s", "trace"], "nothing.npy"),
        (["-o", "scores.xyz"], "no format ends in .xyz"),
        (["--labels", "ordinal"], "--scale ordinal says how labels are measured"),
        (["--labels", "answers.json"], "is no data set folder"),
    ],
)
def test_mistakes_end_in_one_line(table, options, message):
    done = run("identify", table, *options)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert len(done.stderr.decode().splitlines()) == 1


def test_the_list_of_scores_is_printed():
    assert b"spam_score" in run("identificationinfo").stdout
    summary = json.loads(run("identificationinfo", "--json").stdout)
    assert [one["name"] for one in summary] == [one.name for one in SCORES]
    assert b"identificationinfo" in run("--help").stdout


def test_another_consensus_can_be_asked_for(table):
    summary = json.loads(run("identify", table, "--consensus", "one-coin", "--json").stdout)
    assert summary["method"] == "one-coin"
    done = run("identify", table, "--consensus", "dawid")
    assert done.returncode == 2
    assert "did you mean dawid-skene?" in done.stderr.decode()


@pytest.mark.parametrize("scale", ["ordinal", "interval"])
def test_ratings_are_judged_on_their_scale(tmp_path, scale):
    from dissensus import write

    made = verdict_crowds().rating_crowd(np.random.default_rng(0), 7, 30, 5)
    write(made.annotations, tmp_path / "ratings.csv")
    shown = run("identify", tmp_path / "ratings.csv", "--scale", scale).stdout.decode()
    assert "level" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if "│" in line)
    summary = json.loads(
        run("identify", tmp_path / "ratings.csv", "--scale", scale, "--json").stdout
    )
    found = identify(made.annotations, scale=scale)
    assert summary["verdicts"] == found.verdict_counts
    assert summary["verdicts"]["harsh"] > 0
    assert summary["scale"] == scale


def test_known_items_get_a_column(table, tmp_path):
    (tmp_path / "gold.csv").write_text("item,label\n0,1\n1,2\n")
    shown = run("identify", table, "--gold", tmp_path / "gold.csv").stdout.decode()
    assert "known" in shown


def test_scores_of_classes_are_refused_for_numbers(table):
    for options in (["--items"], ["-s", "entropy"], ["--drop", "labels < 3"]):
        done = run("identify", table, "--scale", "interval", *options)
        assert done.returncode == 2
        assert "needs classes, but the labels are numbers" in done.stderr.decode()


def test_a_chart_draws_two_scores_against_each_other(table, tmp_path):
    for options, title in [
        ((), b"Annotators by trace and spam score"),
        (("-s", "spam_score"), b"Annotators by spam score and trace"),
        (("-s", "difficulty"), b"Items by difficulty and entropy"),
        (("--items",), b"Items by confidence and entropy"),
    ]:
        done = run("identify", table, *options, "--chart", tmp_path / "two.svg")
        assert done.returncode == 0, done.stderr
        assert title in done.stderr
        assert (tmp_path / "two.svg").read_text().startswith("<svg")
        (tmp_path / "two.svg").unlink()
    for options in (("-s", "alpha"), ("--drop", "verdict == random")):
        done = run("identify", table, *options, "--chart", tmp_path / "two.svg")
        assert done.returncode == 2
        assert b"--chart draws scores of annotators or items" in done.stderr
