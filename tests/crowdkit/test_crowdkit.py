"""crowd-kit's calls on our methods: shapes, names and types as there, labels as ours."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dissensus import DataError, OptionError, aggregate, crowdkit, simulate
from dissensus.crowdkit import (
    GLAD,
    KOS,
    MACE,
    MMSR,
    DawidSkene,
    GoldMajorityVote,
    MajorityVote,
    OneCoinDawidSkene,
    Wawa,
    ZeroBasedSkill,
)
from dissensus.crowdkit.aggregation import classification

from ..support import rows_of, shared

ITERATIVE = ("ZeroBasedSkill", "DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE", "KOS", "MMSR")
# (task, worker): five tasks, the first with a tie
GIVEN = {"v": "nyyyy", "w": "yynyn", "x": "-ynyn", "y": "ynyyn", "z": "nnnyn"}


def small() -> pd.DataFrame:
    """Return a table in which a task is tied, and a worker left a task out."""
    rows = [
        (f"t{task}", worker, {"n": "no", "y": "yes"}[label])
        for worker, labels in GIVEN.items()
        for task, label in enumerate(labels)
        if label != "-"
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def table(n_classes: int = 3, **options) -> tuple[pd.DataFrame, dict]:
    given = {"n_items": 80, "n_annotators": 10, "feedback": 5, **options}
    made = simulate("one-coin", n_classes=n_classes, **given)
    data = pd.DataFrame(rows_of(made.annotations), columns=["task", "worker", "label"])
    return data, made.truths


@pytest.mark.parametrize("name", classification.__all__)
def test_labels_and_posteriors_have_the_shape_of_crowd_kit(name):
    data, truth = table(2)
    model = getattr(crowdkit, name)()
    extra = (pd.Series(truth),) if name == "GoldMajorityVote" else ()
    labels = model.fit_predict(data, *extra)
    assert labels.name == "agg_label"
    assert labels.index.name == "task"
    assert set(labels.index) == set(data["task"])
    assert np.mean([labels[task] == truth[task] for task in labels.index]) > 0.85
    posteriors = model.fit_predict_proba(data, *extra)
    assert posteriors.shape == (80, 2)
    np.testing.assert_allclose(posteriors.sum(axis=1), 1)
    assert model.labels_.equals(labels)
    again = model.predict(data)
    assert (again == labels).mean() > 0.9


def test_values_keep_their_types():
    data = pd.DataFrame(
        {
            "task": [1, 1, 1, 2, 2, 2],
            "worker": ["x", "y", 3] * 2,
            "label": [True, True, False, 7, 7, 7],
        }
    )
    labels = MajorityVote().fit_predict(data)
    assert labels.to_dict() == {1: True, 2: 7}
    assert list(labels.index) == [1, 2]


def test_ties_go_to_the_first_label_in_sorted_order():
    data = pd.DataFrame({"task": ["a"] * 2, "worker": ["x", "y"], "label": ["b", "a"]})
    assert MajorityVote().fit_predict(data)["a"] == "a"


def test_skills_weigh_votes():
    data = pd.DataFrame({"task": ["a"] * 3, "worker": ["x", "y", "z"], "label": ["b", "a", "a"]})
    skills = pd.Series({"x": 5.0, "y": 1.0, "z": 1.0})
    assert MajorityVote().fit(data, skills=skills).labels_["a"] == "b"
    with pytest.raises(DataError, match="no skill for worker 'z'"):
        MajorityVote().fit(data, skills=skills[["x", "y"]])
    ignoring = MajorityVote(on_missing_skill="ignore").fit(data, skills=skills[["y"]])
    assert ignoring.labels_["a"] == "a"
    valued = MajorityVote(on_missing_skill="value", default_skill=9.0)
    assert valued.fit(data, skills=skills[["x"]]).labels_["a"] == "a"


def test_dawid_skene_has_errors_priors_and_gold():
    data, truth = table()
    model = DawidSkene(n_iter=20).fit(data)
    assert model.errors_.shape == (30, 3)
    np.testing.assert_allclose(model.errors_.groupby("worker").sum(), 1)
    assert model.priors_.sum() == pytest.approx(1)
    assert 1 < len(model.loss_history_) <= 20
    known = pd.Series({"0": "2" if truth["0"] != "2" else "1"})
    assert DawidSkene().fit_predict(data, true_labels=known)["0"] == known["0"]
    assigned = DawidSkene(n_iter=1, initial_error_strategy="assign")
    assigned.fit(data, initial_error=model.errors_)
    assert assigned.loss_history_[0] > model.loss_history_[0] + 1 / len(data)


def test_it_is_our_method_that_runs():
    data, _ = table()
    made = simulate("one-coin", n_classes=3, n_items=80, n_annotators=10, feedback=5)
    ours = aggregate(made.annotations, "dawid-skene[smoothing=1e-10,max_iter=100,tol=1e-5]")
    theirs = DawidSkene().fit_predict_proba(data)
    np.testing.assert_allclose(
        theirs.loc[made.annotations.items.tolist()].to_numpy(), ours.posterior, atol=1e-9
    )


def test_known_labels_of_other_tasks_do_no_harm():
    data, truth = table()
    model = GoldMajorityVote().fit(data, pd.Series({**truth, "nowhere": "0", "1": "unheard of"}))
    assert model.skills_.index.name == "worker"


def test_what_is_missing_is_reported():
    with pytest.raises(DataError, match="no column 'worker'; crowd-kit's tables have task"):
        MajorityVote().fit(pd.DataFrame({"task": [1], "label": [1]}))
    with pytest.raises(DataError, match="this DawidSkene is not fitted yet"):
        DawidSkene().predict(pd.DataFrame({"task": [1], "worker": [1], "label": [1]}))
    data, _ = table()
    with pytest.raises(DataError, match="label 'new' is not known from the fit"):
        DawidSkene().fit(data).predict(data.assign(label="new"))


@pytest.mark.parametrize("name", ["simulated", "labelme"])
def test_cells_that_were_once_zero_may_rise_again(name):
    """As in crowd-kit, counts have a floor; on sparse data that finds a better end than none."""
    crowd = {"n_items": 400, "n_annotators": 40, "n_classes": 8, "feedback": 3, "seed": 0}
    simulated = name == "simulated"
    annotations = simulate("one-coin", **crowd).annotations if simulated else shared(name)
    data = pd.DataFrame(rows_of(annotations), columns=["task", "worker", "label"])
    floored = DawidSkene(n_iter=400, tol=0.0).fit(data).loss_history_[-1]
    bare = aggregate(annotations, "dawid-skene[smoothing=0,max_iter=400,tol=0]").trace[-1]
    assert floored > bare + 2


@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_rows_without_a_value_are_left_out_and_counted(column):
    data = pd.DataFrame({"task": list("aabb"), "worker": list("xyxy"), "label": list("pppq")})
    plain = MajorityVote().fit(data.iloc[:3])
    data.loc[3, column] = None
    with pytest.warns(UserWarning, match="1 rows without task, worker or label are left out"):
        found = MajorityVote().fit(data)
    pd.testing.assert_series_equal(found.labels_, plain.labels_)
    assert found.probas_.columns.tolist() == ["p"]
    numbers = data.assign(label=[1.0, 1.0, 0.0, float("nan")], task=list("aabb"), worker=list("xyxy"))  # noqa: E501  # fmt: skip
    with pytest.warns(UserWarning, match="left out"):
        assert MajorityVote().fit(numbers).probas_.columns.tolist() == [0.0, 1.0]


def test_settings_are_used_or_refused():
    data = pd.DataFrame(
        [(t, w, ("no", "yes")[(t + w * w) % 2]) for t in range(8) for w in range(4)],
        columns=["task", "worker", "label"],
    )
    one, other, third = (
        MACE(alpha=alpha, beta=beta).fit(data).spamming_
        for alpha, beta in ((0.5, 0.5), (50.0, 50.0), (0.5, 50.0))
    )
    assert not np.allclose(one, other)
    assert (third[:, 1] > other[:, 1]).all()  # beta counts for those who know
    for model, message in (
        (MACE(default_noise=0.1), "leave out default_noise"),
        (GLAD(alphas_priors_mean=pd.Series([1.0, 2.0])), "alphas_priors_mean must be one number"),
        (GLAD(labels_priors=pd.Series([0.2, 0.8])), "labels_priors must be the same"),
        (GLAD(m_step_max_iter=3), "leave out m_step_max_iter"),
        (OneCoinDawidSkene(initial_error_strategy="assign"), "one coin has no initial errors"),
        (DawidSkene(initial_error_strategy="add"), "must be assign or addition"),
        (DawidSkene(n_iter=-1), "n_iter = -1, but it must be at least 0"),
    ):
        with pytest.raises(OptionError, match=message):
            model.fit(data)
    errors = DawidSkene().fit(data).errors_
    with pytest.raises(OptionError, match="needs initial_error_strategy"):
        DawidSkene().fit(data, initial_error=errors)
    with pytest.raises(OptionError, match="need each other"):
        MajorityVote(default_skill=1.0).fit(data, skills=pd.Series({0: 1.0}))
    same = pd.Series({"yes": 0.5, "no": 0.5})
    plain, given = (GLAD(labels_priors=prior).fit(data).betas_ for prior in (None, same))
    pd.testing.assert_series_equal(plain, given)


def test_settings_come_in_the_order_of_crowd_kit():
    assert GLAD(1, 1e-3, True, None, 2.0, 3.0, 25, 1e-2).betas_priors_mean == 3.0
    assert MACE(1, 2, "em", 0.3, 0.5, 0.6, 0.7, 8, 0).beta == 0.7
    assert DawidSkene(3, 1e-3, "assign").initial_error_strategy == "assign"
    assert ZeroBasedSkill(1, 0.5, 3, 0.25, 1e-4).eps == 1e-4
    assert MMSR(5, 1e-3, 2).random_state == 2
    assert MajorityVote(2.0, "value").on_missing_skill == "value"


@pytest.mark.parametrize("missing", ["task", "worker", "label"])
@pytest.mark.parametrize("name", classification.__all__)
def test_a_missing_column_is_a_key_error_too(name, missing):
    data = small()
    extra = (pd.Series({"t0": "yes"}),) if name == "GoldMajorityVote" else ()
    with pytest.raises(KeyError) as caught:
        getattr(crowdkit, name)().fit(data.drop(columns=missing), *extra)
    assert isinstance(caught.value, DataError)
    assert str(caught.value).startswith(f"no column '{missing}'; crowd-kit's tables have")


@pytest.mark.parametrize("name", classification.__all__)
def test_a_table_without_rows_has_no_labels(name):
    nothing = pd.DataFrame([], columns=["task", "worker", "label"])
    extra = (pd.Series(dtype=float),) if name == "GoldMajorityVote" else ()
    model = getattr(crowdkit, name)().fit(nothing, *extra)
    assert model.labels_.empty
    assert model.labels_.name == "agg_label"
    assert model.labels_.dtype == (object if name == "KOS" else float)
    assert model.probas_.empty
    for member in model._fitted:
        assert len(getattr(model, member)) == 0


@pytest.mark.parametrize("name", ITERATIVE)
def test_without_iterations_there_is_the_start(name):
    data, _ = table(2)
    model = getattr(crowdkit, name)(n_iter=0).fit(data)
    votes = MajorityVote().fit_predict(data)
    assert set(model.labels_.index) == set(votes.index)
    if name != "GLAD":  # whose first E-step is before the first iteration
        pd.testing.assert_series_equal(model.labels_, votes)
    for member in model._fitted:
        assert len(getattr(model, member)) or member == "loss_history_"


def test_dawid_skene_steps_as_the_formulas_say():
    """Shares of votes, an M-step, then E-steps and M-steps in turns: checked by hand."""
    data = small()
    tasks, workers = sorted(set(data["task"])), sorted(set(data["worker"]))
    yes = (data["label"] == "yes").groupby(data["task"]).mean().to_numpy()
    posterior = np.stack([1 - yes, yes], axis=1)
    for n_iter in (0, 1, 2):
        model = DawidSkene(n_iter).fit(data)
        np.testing.assert_allclose(model.probas_, posterior, atol=1e-8)
        errors = np.full((len(workers), 2, 2), 1e-10)  # (worker, given, true)
        for task, worker, label in data.itertuples(index=False):
            row = workers.index(worker), ("no", "yes").index(label)
            errors[row] += posterior[tasks.index(task)]
        errors /= errors.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.errors_, errors.reshape(-1, 2), atol=1e-8)
        prior = posterior.mean(axis=0)
        np.testing.assert_allclose(model.priors_, prior, atol=1e-8)
        assert model.priors_.index.name == "label"
        assert model.errors_.index.names == ["worker", "label"]
        assert len(model.loss_history_) == n_iter
        joint = np.tile(prior, (len(tasks), 1))
        for task, worker, label in data.itertuples(index=False):
            row = workers.index(worker), ("no", "yes").index(label)
            joint[tasks.index(task)] *= errors[row]
        posterior = joint / joint.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_iter", [0, 1, 3])
def test_known_labels_are_certain_after_any_number_of_iterations(n_iter):
    known = pd.Series({"t0": "no", "t2": "yes"})
    model = DawidSkene(n_iter).fit(small(), true_labels=known)
    assert [model.probas_.loc[task, label] for task, label in known.items()] == [1.0, 1.0]
    assert model.labels_[known.index].tolist() == known.tolist()


def test_initial_errors_replace_the_first_estimate_or_add_to_it():
    data = small()
    votes = DawidSkene(0).fit(data)
    counts = data.groupby("worker").size()
    shares = MajorityVote().fit_predict_proba(data)
    mass = {w: shares.loc[rows["task"]].sum() for w, rows in data.groupby("worker")}
    history = pd.DataFrame(0.0, index=votes.errors_.index, columns=["no", "yes"])
    history.loc[("w", "no")] = [2.0, 1.0]
    history.loc[("w", "yes")] = [0.0, 5.0]
    added = DawidSkene(0, initial_error_strategy="addition").fit(data, initial_error=history)
    for given in ("no", "yes"):
        for true in ("no", "yes"):
            before = votes.errors_.loc[("w", given), true] * mass["w"][true]
            total = mass["w"][true] + history.loc["w"][true].sum()
            expected = (before + history.loc[("w", given), true]) / total
            assert added.errors_.loc[("w", given), true] == pytest.approx(expected, abs=1e-8)
    assert counts["w"] == 5
    pd.testing.assert_frame_equal(added.errors_.drop("w"), votes.errors_.drop("w"))
    turned = votes.errors_.rename(columns={"no": "yes", "yes": "no"})[["no", "yes"]]
    assigned = DawidSkene(0, initial_error_strategy="assign").fit(data, initial_error=turned)
    np.testing.assert_allclose(assigned.errors_, turned, atol=1e-8)
    one = DawidSkene(1, initial_error_strategy="assign").fit(data, initial_error=turned)
    assert one.labels_["t3"] == "no"  # everybody says yes, and yes now means no
    assert len(one.loss_history_) == 1
    many = DawidSkene(30, initial_error_strategy="addition").fit(data, initial_error=history)
    assert np.diff(many.loss_history_).min() > -1e-12
    known = pd.Series({"t3": "yes"})
    kept = DawidSkene(1, initial_error_strategy="assign").fit(data, known, turned)
    assert kept.labels_["t3"] == "yes"


def test_initial_errors_that_cannot_be_used_are_refused():
    data = small()
    errors = DawidSkene().fit(data).errors_
    assign = DawidSkene(initial_error_strategy="assign")
    with pytest.raises(DataError, match="has no row for worker 'w' and label"):
        assign.fit(data, initial_error=errors.drop("w"))
    with pytest.raises(ValueError, match=r"error matrix in initial_error should be 1\.0"):
        assign.fit(data, initial_error=errors * 0)
    with pytest.raises(DataError, match="the index of initial_error is None"):
        assign.fit(data, initial_error=errors.reset_index(drop=True))
    counts = assign.fit(data, initial_error=errors * 40 + 1)
    assert counts.labels_["t3"] == "yes"


def test_skills_of_votes_are_shares_of_agreement():
    data = small()
    shares = [0.6, 0.8, 1.0, 0.4, 0.8]
    expected = pd.Series(shares, pd.Index(list("vwxyz"), name="worker"), name="skill")
    for model in (MajorityVote(), Wawa(), ZeroBasedSkill()):
        pd.testing.assert_series_equal(model.fit(data).skills_, expected)
    known = pd.Series({"t0": "yes", "t1": "yes"})
    gold = GoldMajorityVote().fit(data, known)
    assert gold.skills_.to_dict() == {"v": 0.5, "w": 1.0, "x": 1.0, "y": 0.5, "z": 0.0}
    assert gold.predict_proba(data).loc["t0", "yes"] == 0.75
    assert gold.predict(data) is gold.labels_
    again = pd.concat([data, data[data["worker"] == "v"]])  # the same answer twice counts once
    assert Wawa().fit(again).skills_["v"] == 0.6


def test_a_task_may_have_several_known_labels():
    rows = [
        ("t1", "x", "a"),
        ("t1", "y", "b"),
        ("t1", "z", "c"),
        ("t2", "x", "a"),
        ("t2", "y", "b"),
    ]
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    known = pd.Series(["a", "b", "b"], index=["t1", "t1", "t2"])
    model = GoldMajorityVote().fit(data, known)
    assert model.skills_.to_dict() == {"x": 0.5, "y": 1.0, "z": 0.0}
    assert model.labels_.to_dict() == {"t1": "b", "t2": "b"}


def test_workers_without_a_known_task_count_as_the_mean():
    data = small()
    new = data.replace({"worker": {"v": "new"}})
    model = GoldMajorityVote().fit(data, pd.Series({"t0": "yes"}))
    assert model.predict_proba(new).loc["t4", "yes"] > 0
    with pytest.raises(DataError, match="no answer is about a task with a known label"):
        GoldMajorityVote().fit(data, pd.Series({"elsewhere": "yes"}))


def test_skills_that_are_ignored_must_leave_an_answer_to_every_task():
    data = small()
    ignoring = MajorityVote(on_missing_skill="ignore")
    assert "v" not in ignoring.fit(data, skills=pd.Series(1.0, index=list("wxyz"))).skills_
    with pytest.raises(DataError, match="1 tasks have no worker with a skill"):
        ignoring.fit(data, skills=pd.Series({"x": 1.0}))


def test_scores_are_shares_of_skills_that_may_be_negative():
    data = small()
    model = MMSR()
    scores = model.fit_predict_score(data)
    assert scores is model.scores_
    skill = model.skills_
    assert skill["v"] < 0
    everybody = skill.sum()
    assert scores.loc["t4", "yes"] == pytest.approx(skill["v"] / everybody)
    np.testing.assert_allclose(scores.sum(axis=1), 1)
    pd.testing.assert_frame_equal(model.predict_score(data), scores)


def test_with_few_answers_the_skills_of_mmsr_depend_on_the_seed():
    first, again, other = (MMSR(random_state=seed).fit(small()).skills_ for seed in (0, 0, 1))
    pd.testing.assert_series_equal(first, again)
    assert not np.allclose(first, other)
    many, _ = table(2, n_items=300)
    one, two = (MMSR(random_state=seed).fit(many).skills_ for seed in (0, 1))
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_rows_of_mace_are_workers_as_they_appear():
    data = pd.DataFrame(
        [(t, w, "b" if w == "m" else "ab"[t % 2]) for t in range(20) for w in "zmc"],
        columns=["task", "worker", "label"],
    )  # fmt: skip
    model = MACE(n_restarts=1).fit(data)
    assert model.spamming_.shape == (3, 2)
    np.testing.assert_allclose(model.spamming_.sum(axis=1), 1)
    assert model.spamming_[:, 0].argmax() == 1
    assert model.thetas_.shape == (3, 2)
    assert model.thetas_[1, 1] > 0.7  # labels appear as a, b
    turned = MACE(n_restarts=1).fit(data.iloc[::-1])
    np.testing.assert_allclose(turned.thetas_[:, ::-1], model.thetas_[::-1], atol=1e-6)


def test_one_coin_has_skills_and_errors():
    model = OneCoinDawidSkene(5).fit(small())
    errors = model.errors_.loc["w"]
    assert errors.loc["no", "no"] == pytest.approx(model.skills_["w"])
    assert errors.loc["yes", "no"] == pytest.approx(1 - model.skills_["w"])
    assert model.priors_.name == "prior"


def test_kos_is_for_two_labels():
    with pytest.raises(ValueError, match="chooses between 2 classes"):
        KOS().fit(table(3)[0])


def test_crowd_kit_takes_our_classes_for_its_own(tmp_path):
    """Where its package is installed, also if it is imported later."""
    base = tmp_path / "crowdkit" / "aggregation" / "base"
    base.mkdir(parents=True)
    (tmp_path / "crowdkit" / "__init__.py").touch()
    (tmp_path / "crowdkit" / "aggregation" / "__init__.py").touch()
    (base / "__init__.py").write_text("class BaseClassificationAggregator: pass\n")
    code = (
        "from dissensus.crowdkit import DawidSkene, Wawa\n"
        "from crowdkit.aggregation.base import BaseClassificationAggregator as Base\n"
        "assert issubclass(DawidSkene, Base) and isinstance(Wawa(), Base)\n"
    )
    for broken in (False, True):
        if broken:
            (base / "__init__.py").write_text("raise AttributeError('float_')\n")
            code = "from dissensus.crowdkit import DawidSkene; DawidSkene()"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()


def test_incomplete_initial_errors_favour_no_label():
    rows = [(t, w, "yes" if t < 6 else "no") for t in range(10) for w in "xyz"]
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    index = pd.MultiIndex.from_tuples([("x", "yes"), ("x", "no")], names=["worker", "label"])
    errors = pd.DataFrame([[9.0, 2.0], [1.0, 8.0]], index=index, columns=["yes", "no"])
    found = DawidSkene(initial_error_strategy="addition").fit(data, initial_error=errors)
    assert found.labels_.tolist() == ["yes"] * 6 + ["no"] * 4
