"""Scripts written for peerannot run after replacing its name: models, folders and commands."""

import json
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from dissensus import Annotations, aggregate, simulate
from dissensus.errors import DissensusError, MethodError
from dissensus.peerannot import models
from dissensus.registry import from_peerannot

from ..support import run

# The set of peerannot's own tests: three tasks, four workers, two classes.
TOY = {"0": {"0": 1, "1": 0, "2": 1, "3": 1}, "1": {"0": 1, "2": 0, "3": 0}, "2": {"1": 1, "3": 1}}
LABELS = [1, 0, 1]
SHARES = [[0.25, 0.75], [2 / 3, 1 / 3], [0, 1]]
CROWD = {"n_classes": 2, "n_workers": 4}


def drawn(seed=0, n_items=40, n_annotators=8, n_classes=3):
    """Return `{task: {worker: label}}` by workers who are mostly right, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    right = rng.random((n_items, n_annotators)) < 0.75
    given = np.where(right, truth[:, None], rng.integers(n_classes, size=right.shape))
    answers = {
        str(task): {str(worker): int(label) for worker, label in enumerate(row)}
        for task, row in enumerate(given)
    }
    return answers, truth


def write_set(folder, answers, **metadata):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "answers.json").write_text(json.dumps(answers))
    (folder / "metadata.json").write_text(json.dumps({"name": "mine", **metadata}))
    return folder


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize(
    "name", ["MajorityVoting", "MV", "Wawa", "IWMV", "IterativeWawa", "TwoThird"]
)
def test_votes_have_the_constructors_and_labels_of_peerannot(name, sparse):
    model = getattr(models, name)(TOY, sparse=sparse, **CROWD)
    if hasattr(model, "run"):
        model.run()
        assert model.worker_score.tolist() == [0.5, 0.5, 1, 1]
    assert model.get_answers().tolist() == LABELS


def test_plain_votes_and_shares_need_no_run():
    for name in ("MajorityVoting", "NaiveSoft", "TwoThird"):
        assert not hasattr(getattr(models, name), "run")  # scripts ask for it
    np.testing.assert_allclose(models.NaiveSoft(TOY, n_classes=2).get_probas(), SHARES)
    assert models.NaiveSoft(TOY).get_answers().tolist() == LABELS
    assert models.MV(TOY).get_probas().tolist() == LABELS  # hard there too


@pytest.mark.parametrize("name", ["TwoThird", "Wawa", "PlantNet"])
def test_soft_labels_that_do_not_exist_are_hard_ones_with_a_warning(name):
    model = getattr(models, name)(TOY, **CROWD)
    if hasattr(model, "run"):
        model.run()
    with pytest.warns(UserWarning, match="only returns hard labels"):
        assert model.get_probas().tolist() == model.get_answers().tolist()


def test_dawid_skene_returns_what_peerannot_returns():
    model = models.DawidSkene(answers=TOY, **CROWD)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        likelihood, rounds = model.run(maxiter=10)
    assert len(likelihood) == rounds == model.c
    assert model.get_answers().tolist() == LABELS
    assert model.get_probas().shape == (3, 2)
    assert (model.pi.shape, model.rho.shape) == ((4, 2, 2), (2,))
    with pytest.warns(RuntimeWarning, match="did not converge in 1 iterations"):
        model.run(maxiter=1)


def test_both_orders_of_arguments_of_dawid_skene_work():
    now, before = models.DawidSkene(TOY, 4, 2), models.Dawid_Skene(TOY, 2, n_workers=4)
    assert (now.n_classes, now.n_workers) == (before.n_classes, before.n_workers) == (2, 4)
    assert models.agg_strategies["DS"] is models.DS is models.Dawid_Skene


@pytest.mark.parametrize("name", ["DawidSkene", "WDS", "GLAD", "DawidSkeneClust"])
def test_models_are_those_of_the_registry(name):
    answers, _ = drawn()
    model = getattr(models, name)(answers, n_classes=3, n_workers=8)
    model.run()
    specs = {
        "DawidSkene": f"dawid-skene[smoothing=0,tol={1e-6 / 320},max_iter=50]",
        "WDS": "wds[smoothing=0,tol=0,max_iter=50]",
        "GLAD": "GLAD-CG[max_iter=52]",
        "DawidSkeneClust": "dswc",
    }
    result = aggregate(Annotations.from_dict(answers), specs[name])
    np.testing.assert_allclose(model.get_probas(), result.posterior, atol=1e-12)
    assert model.get_answers().tolist() == result.label.tolist()
    assert model.result.method.partition("[")[0] == result.method.partition("[")[0]


def test_clusters_have_a_matrix_for_every_worker():
    answers, truth = drawn()
    model = models.agg_strategies["DSWC"](answers, L=3, n_classes=3, n_workers=8, n_tasks=40)
    labels, (matrices, prevalence), rounds = model.run(maxiter=20)
    assert (matrices.shape, prevalence.shape) == ((8, 3, 3), (3,))
    assert rounds > 1
    assert np.mean(labels == truth) > 0.9
    assert labels.tolist() == model.get_answers().tolist()


def test_glad_writes_abilities_and_difficulties(tmp_path):
    model = models.GLAD(TOY, dataset=tmp_path / "temp", **CROWD)
    model.run()
    assert (model.alpha.shape, model.beta.shape) == ((4,), (3,))
    assert model.get_answers().tolist() == LABELS
    folder = tmp_path / "temp" / "identification" / "glad"
    assert np.load(folder / "abilities.npy").tolist() == [list(x) for x in enumerate(model.alpha)]
    assert np.load(folder / "difficulties.npy").tolist() == [list(x) for x in enumerate(model.beta)]
    models.GLAD(TOY, **CROWD).run()  # nothing is written without a folder


def test_plantnet_leaves_items_undecided_and_lists_them(tmp_path):
    model = models.PlantNet(
        TOY, alpha=0.5, beta=0.2, AI="ignored", authors=None, dataset=tmp_path, **CROWD
    )
    model.run(maxiter=2)
    assert model.get_answers().tolist() == [1, -1, -1]
    assert (model.weights.shape, model.valid.tolist()) == ((4,), [True, False, False])
    model.save_too_hard()
    file = tmp_path / "identification" / "plantnet" / "too_hard.txt"
    assert np.loadtxt(file, dtype=int).tolist() == [[-1, 1], [-1, 2]]


def test_plantnet_reads_authors_and_a_model_that_is_a_worker(tmp_path):
    answers, _ = drawn(n_classes=6)
    (tmp_path / "authors.txt").write_text("\n".join(str(task % 8) for task in range(40)))
    plain = models.PlantNet(answers, 6, n_workers=8)
    plain.run()
    known = models.PlantNet(answers, 6, n_workers=8, authors=tmp_path / "authors.txt")
    known.run(maxiter=5, epsilon=1e-9)
    assert known.n_j.sum() > plain.n_j.sum()
    with_model = {task: given | {"AI": 0} for task, given in answers.items()}
    ignored = models.PlantNet(with_model, 6, n_workers=8)
    ignored.run()
    assert ignored.get_answers().tolist() == plain.get_answers().tolist()
    fixed = models.PlantNet(with_model, 6, AI="fixed", AIweight=100, n_workers=8)
    fixed.run()
    assert fixed.get_answers().tolist() == [0] * 40
    assert fixed.weights.shape == (8,)


def test_without_an_iteration_plantnet_is_a_plain_vote():
    answers, _ = drawn(n_classes=6)
    model = models.PlantNet(answers, 6, n_workers=8, output_unvalidated=True)
    model.run(maxiter=0)
    votes = Annotations.from_dict(answers).votes()
    assert model.get_answers().tolist() == votes.argmax(axis=1).tolist()
    assert np.ptp(model.weights) == 0


def test_scores_are_written_where_peerannot_writes_them(tmp_path):
    for name, file, expected in (
        ("Entropy", "entropies", [0.562335, 0.636514, 0]),
        ("Spam_Score", "spam_score", [0, 1 / 4, 1, 1]),
        ("Trace_confusion", "traces_confusion", [1, 1.5, 2, 2]),
    ):
        getattr(models, name)(TOY, matrix_file=None, **CROWD).run(tmp_path)
        written = np.load(tmp_path / "identification" / f"{file}.npy")
        np.testing.assert_allclose(written, expected, atol=1e-6)
    matrices = np.stack([np.eye(2), np.full((2, 2), 0.5)] * 2)
    np.save(tmp_path / "matrices.npy", matrices)
    given = models.Spam_Score(TOY, matrix_file=tmp_path / "matrices.npy", **CROWD)
    given.run(tmp_path)
    assert given.values.tolist() == [1, 0, 1, 0]


# Krippendorff's example, as peerannot ships it: labels up to 4, two tasks nobody answered.
_ROWS = ".1. ... .22 .11 .33 334 444 13. 2.2 1.1 1.1 3.3 3.3 ... 3.4"  # a task: its workers' labels
RELIABILITY = {
    str(task): {str(worker): int(label) for worker, label in enumerate(row) if label != "."}
    for task, row in enumerate(_ROWS.split())
}


def test_alpha_is_that_of_the_example_though_it_counts_too_few_classes(tmp_path):
    models.Krippendorff_Alpha(RELIABILITY, n_classes=2, n_workers=3).run(tmp_path)
    file = tmp_path / "identification" / "krippendorff_alpha.npy"
    assert np.load(file) == pytest.approx(0.691358024691358, abs=1e-14)
    assert np.load(file).shape == ()
    folder = write_set(tmp_path / "set", RELIABILITY, n_classes=4, n_workers=3)
    done = run("identify", folder, "-s", "krippendorffalpha", "-K", "4")
    assert done.returncode == 0, done.stderr
    assert b"0.6914" in done.stdout
    assert b"the metadata count 4 classes, but labels need 5" in done.stderr
    assert run("aggregate", folder, "-s", "NaiveSoft").returncode == 0
    assert np.load(folder / "labels" / "labels_mine_naivesoft.npy").shape == (15, 5)


def test_every_name_that_peerannot_had_finds_its_class():
    table = models.agg_strategies
    assert list(table) == [
        *("majority_voting", "naive_soft", "dawid_skene", "dawid_skene_clust", "glad", "wds"),
        *("plantnet", "twothird", "iwmv", "wawa"),
    ]
    former = [
        "MV",
        "NaiveSoft",
        "DS",
        "DSWC",
        "GLAD",
        "WDS",
        "PlantNet",
        "TwoThird",
        "IWMV",
        "Wawa",
    ]
    assert [table[name].__name__ for name in former] == [
        *("MajorityVoting", "NaiveSoft", "Dawid_Skene", "DawidSkeneClust", "GLAD", "WDS"),
        *("PlantNet", "TwoThird", "IWMV", "Wawa"),
    ]
    assert models.agg_deep_strategies["conal"] is models.CoNAL
    assert models.identification_strategies["krippendorffalpha"] is models.Krippendorff_Alpha
    with pytest.raises(MethodError, match="no strategy 'DSW'; did you mean"):
        table["DSW"]


def test_iwmv_is_peerannots_here_and_in_its_folders_alone(tmp_path):
    crowd = {"n_items": 40, "n_annotators": 8, "n_classes": 4, "feedback": 4}
    relation = simulate("independent-confusion", **crowd, seed=3).annotations
    answers = relation.to_dict(coded=True)
    here = aggregate(relation, "iterative-wawa").label.tolist()
    assert here != aggregate(relation, "iwmv").label.tolist()  # so that the test can fail
    model = models.IWMV(answers, n_classes=4, n_workers=8)
    model.run(10)
    assert model.get_answers().tolist() == here
    folder = write_set(tmp_path / "set", answers, n_classes=4, n_workers=8)
    assert run("aggregate", folder, "-s", "IWMV[sparse=True]").returncode == 0
    assert np.load(folder / "labels" / "labels_mine_iwmv[sparse=true].npy").tolist() == here
    assert from_peerannot("iwmv[weights='li-yu']") == "iterative-wawa[weights='li-yu']"


def test_counts_below_one_raise_the_error_that_the_script_expects():
    code = (
        "from dissensus.models import DawidSkene\n"
        "try: DawidSkene(answers={0: {0: 1}}, n_classes=-2, n_workers=4)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "MethodError n_classes = -2, but it must be at least 1"
    pydantic = pytest.importorskip("pydantic")
    with pytest.raises(pydantic.ValidationError, match="greater than or equal to 1"):
        models.DawidSkene(answers=TOY, n_classes=-2, n_workers=4)


def test_what_has_not_run_says_so():
    with pytest.raises(DissensusError, match=r"this GLAD has not run yet; call run\(\) first"):
        models.GLAD(TOY, **CROWD).get_answers()


def test_any_names_and_gaps_are_fine(tmp_path):
    answers = {"x": {"ann": "cat", "bob": "cat"}, "y": {"ann": "dog", "bob": "dog"}}
    assert models.MV(answers).get_answers().tolist() == ["cat", "dog"]
    assert models.TwoThird({"a": {"x": "no"}, "b": {}}).get_answers().tolist() == [-1, -1]
    gaps = models.NaiveSoft({"7": {"3": 1}, "100": {"3": 0}, "20": {"9": 1}}, n_classes=3)
    assert gaps.get_probas().tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]  # tasks 7, 20, 100
    (tmp_path / "hard.txt").write_text("-1 20\n")
    counted = models.NaiveSoft({0: {0: np.int64(1)}}, n_classes=np.int64(3))
    assert counted.get_probas().tolist() == [[0, 1, 0]]
    pruned = models.NaiveSoft(gaps.answers, n_classes=3, path_remove=tmp_path / "hard.txt")
    assert list(pruned.answers) == [7, 100]


def test_workers_without_answers_keep_their_rows(tmp_path):
    answers = {"0": {"1": 0, "4": 0}, "1": {"1": 1, "4": 1}, "2": {"1": 0, "4": 1}}
    model = models.Wawa(answers, n_classes=2, n_workers=6)
    model.run()
    assert model.worker_score[[0, 2, 3, 5]].tolist() == [0, 0, 0, 0]
    assert model.worker_score[[1, 4]].min() > 0
    folder = write_set(tmp_path / "set", answers, n_classes=2, n_workers=6)
    assert run("identify", folder, "-s", "spam_score").returncode == 0
    assert np.load(folder / "identification" / "spam_score.npy").shape == (6,)


def test_a_strategy_of_ones_own_has_the_answers_in_order():
    class Mine(models.CrowdModel):
        def get_answers(self):
            return [max(given.values()) for given in self.answers.values()]

    assert Mine({"10": {"0": 5}, "2": {"0": 1, "1": 4}}).get_answers() == [4, 5]


def test_the_aggregation_tutorial_runs(tmp_path):
    folder = tmp_path / "notebooks"
    simulated = run(
        *("simulate", "--n-worker=30", "--n-task=200", "--n-classes=5", "--feedback=10"),
        *("--strategy", "independent-confusion", "--seed", "0", "--folder", folder),
    )
    assert simulated.returncode == 0, simulated.stderr
    truth = np.load(folder / "ground_truth.npy")
    answers = json.loads((folder / "answers.json").read_text())
    by_command = {}
    for strategy in ("MV", "NaiveSoft", "DS", "GLAD", "DSWC[L=5]", "Wawa"):
        done = run("aggregate", folder, "-s", strategy)
        assert done.returncode == 0, done.stderr
        name = strategy.lower()
        labels = np.load(folder / "labels" / f"labels_independent-confusion_{name}.npy")
        by_command[name] = labels if labels.ndim == 1 else labels.argmax(axis=1)
    for strategy in ("MV", "GLAD", "DS", "NaiveSoft", "Wawa"):
        model = models.agg_strategies[strategy](
            answers, n_classes=5, n_workers=30, n_tasks=200, dataset=folder
        )
        if hasattr(model, "run"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                model.run(maxiter=20)
        same = np.mean(model.get_answers() == by_command[strategy.lower()])
        assert same > 0.9, strategy
    accuracy = {name: float(np.mean(labels == truth)) for name, labels in by_command.items()}
    assert max(accuracy, key=accuracy.__getitem__) == "ds"  # as the tutorial shows


def test_the_pipeline_tutorial_finds_the_spammers_and_labels_better_without_them(tmp_path):
    made = run(
        *("simulate", "--n-worker=100", "--n-task=300", "--n-classes=5", "--ratio", "0.7"),
        *("--strategy", "hammer-spammer", "--feedback=10", "--seed", "0", "--folder", tmp_path),
    )
    assert made.returncode == 0, made.stderr
    for score in ("krippendorffalpha", "spam_score"):
        options = ("--labels", tmp_path / "answers.json", "--n-classes", "5")
        assert run("identify", "-s", score, tmp_path, *options).returncode == 0
    kept = tmp_path / "identification"
    assert round(float(np.load(kept / "krippendorff_alpha.npy")), 2) == 0.08
    spammers = set(np.flatnonzero(np.load(kept / "spam_score.npy") < 0.5).tolist())
    assert spammers == set(range(30, 100))
    answers = json.loads((tmp_path / "answers.json").read_text())
    truth = np.load(tmp_path / "ground_truth.npy")
    cleaned = {
        task: {worker: label for worker, label in given.items() if int(worker) not in spammers}
        for task, given in answers.items()
    }
    before = np.mean(models.MV(answers, n_classes=5).get_answers() == truth)
    after = np.mean(models.MV(cleaned, n_classes=5).get_answers() == truth)
    assert after > 0.95 > before


def test_two_thirds_lists_what_it_leaves_open(tmp_path):
    folder = write_set(
        tmp_path / "set", {"0": {"0": 1, "1": 1}, "1": {"0": 1}, "2": {"0": 0, "1": 1}}
    )
    done = run("aggregate", folder, "-s", "TwoThird")
    assert done.returncode == 0, done.stderr
    assert np.load(folder / "labels" / "labels_mine_twothird.npy").tolist() == [1, -1, -1]
    file = folder / "identification" / "twothird" / "too_hard.txt"
    assert np.loadtxt(file, dtype=int).tolist() == [[-1, 1], [-1, 2]]
    pruned = run("aggregate", folder, "-s", "MV", "--path-remove", file)
    assert pruned.returncode == 0, pruned.stderr
    assert np.load(folder / "labels" / "labels_mine_mv.npy").tolist() == [1]


def test_identify_and_aggregate_write_the_same_kind_of_difficulty(tmp_path):
    answers, _ = drawn()
    folder = write_set(tmp_path / "set", answers, n_classes=3, n_workers=8)
    files = [folder / "identification" / "glad" / f"{x}.npy" for x in ("abilities", "difficulties")]
    for command in (("aggregate", folder, "-s", "GLAD"), ("identify", folder, "-s", "glad")):
        assert run(*command).returncode == 0
        written = [np.load(file) for file in files]
        assert [values.shape for values in written] == [(8, 2), (40, 2)]
        result = aggregate(Annotations.from_dict(answers), "glad")
        np.testing.assert_allclose(written[1][:, 1], result.params.log_easiness)
        for file in files:
            file.unlink()


def test_commands_of_the_page_are_those_of_peerannot_with_the_word_replaced(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "coming_from" / "peerannot.md"
    pairs = re.findall(r"^\| `(peerannot .*?)` \| `(dissensus .*?)` \|$", page.read_text(), re.M)
    assert len(pairs) >= 10
    for there, here in pairs:
        assert there.replace("peerannot", "dissensus") == here
        done = run(*shlex.split(here)[1:], cwd=tmp_path)
        assert done.returncode == 0, (here, done.stderr)
