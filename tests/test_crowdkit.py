"""crowd-kit's calls on our methods: shapes, names and types as there, labels as ours."""

import numpy as np
import pandas as pd
import pytest

from dissensus import DataError, OptionError, aggregate, crowdkit, simulate
from dissensus.crowdkit import GLAD, MACE, DawidSkene, GoldMajorityVote, MajorityVote
from tests.support import rows_of, shared


def table(n_classes: int = 3, **options) -> tuple[pd.DataFrame, dict]:
    given = {"n_items": 80, "n_annotators": 10, "feedback": 5, **options}
    made = simulate("one-coin", n_classes=n_classes, **given)
    data = pd.DataFrame(rows_of(made.annotations), columns=["task", "worker", "label"])
    return data, made.truths


@pytest.mark.parametrize("name", crowdkit.__all__)
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
    backwards = DawidSkene(n_iter=1).fit(data, initial_error=model.errors_)
    assert backwards.loss_history_[0] > model.loss_history_[0] + 1


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


def test_cells_that_were_once_zero_may_rise_again():
    """As in crowd-kit, counts have a floor; on sparse data that finds a better end than none."""
    annotations = shared("labelme")
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
    one, other = (MACE(alpha=value, beta=value).fit(data).spamming_ for value in (0.5, 50.0))
    assert not np.allclose(one, other)
    with pytest.raises(OptionError, match="must be the same"):
        MACE(alpha=1.0, beta=2.0).fit(data)
    errors = DawidSkene().fit(data).errors_
    with pytest.raises(OptionError, match="'addition' is not supported"):
        DawidSkene(initial_error_strategy="addition").fit(data, initial_error=errors)
    with pytest.raises(OptionError, match="needs the initial_error"):
        DawidSkene(initial_error_strategy="assign").fit(data)
    with pytest.raises(OptionError, match="alphas_priors_mean must be one number"):
        GLAD(alphas_priors_mean=pd.Series([1.0])).fit(data)


def test_incomplete_initial_errors_favour_no_label():
    rows = [(t, w, "yes" if t < 6 else "no") for t in range(10) for w in "xyz"]
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    index = pd.MultiIndex.from_tuples([("x", "yes"), ("x", "no")], names=["worker", "label"])
    errors = pd.DataFrame([[9.0, 2.0], [1.0, 8.0]], index=index, columns=["yes", "no"])
    found = DawidSkene(initial_error_strategy="assign").fit(data, initial_error=errors)
    assert found.labels_.tolist() == ["yes"] * 6 + ["no"] * 4
