"""What another package adds, installed into a folder: found by name, run, and held to promises."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dissensus

PLUGIN = Path(__file__).parent / "plugin"
SOURCE = Path(dissensus.__file__).parents[1]
TABLE = "item,annotator,label\na,x,0\na,y,0\na,z,1\nb,x,1\nb,y,1\nb,z,1\n"
BOXES = "item,annotator,x,y,w,h\na,u,0,0,4,4\na,v,2,2,4,4\nb,u,1,1,2,2\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", folder, PLUGIN]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def python(installed, *arguments, cwd):
    path = os.pathsep.join((str(installed), str(SOURCE)))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )


def test_a_method_of_another_package_is_found_by_its_name(installed, tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    command = ("-m", "dissensus", "aggregate", "a.csv", "-s", "lenient-vote[pseudo=0.5]")
    done = python(installed, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line[:3] for line in done.stdout.splitlines()] == ["ite", "a,0", "b,1"]
    code = "import dissensus as ds; print(ds.aggregate('a.csv', 'Lenient_Vote').method)"
    assert python(installed, "-c", code, cwd=tmp_path).stdout == "lenient-vote\n"


def test_a_method_of_another_package_takes_another_kind_of_answers(installed, tmp_path):
    (tmp_path / "b.csv").write_text(BOXES)
    code = "import dissensus as ds; print(ds.aggregate('b.csv', 'mean-box').to_polars().rows())"
    done = python(installed, "-c", code, cwd=tmp_path)
    assert "('a', 1.0, 1.0, 4.0, 4.0" in done.stdout, done.stderr
    assert "'b'" not in done.stdout


def test_a_plug_in_never_hides_a_name_and_one_that_fails_is_said(installed, tmp_path):
    code = (
        "import dissensus as ds; m = ds.aggregators.create('majority'); "
        "print(type(m).__module__); print('lenient-vote' in list(ds.aggregators))"
    )
    done = python(installed, "-c", code, cwd=tmp_path)
    assert done.stdout.splitlines() == ["dissensus.aggregation.votes", "True"], done.stderr
    assert "plug-in broken (dissensus_extra.nowhere:Nothing) does not load" in done.stderr


def test_known_names_need_no_look_at_other_packages(installed, tmp_path):
    code = (
        "import sys, dissensus as ds; ds.aggregators.create('majority'); "
        "print('importlib.metadata' in sys.modules and 'dissensus_extra.methods' in sys.modules)"
    )
    assert python(installed, "-c", code, cwd=tmp_path).stdout == "False\n"


def test_a_format_of_another_package_is_written_recognised_and_read(installed, tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    command = ("-m", "dissensus", "convert", "a.csv", "b.bin", "--to", "tally")
    done = python(installed, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.bin").read_text().splitlines()[1] == "a\tx=0\ty=0\tz=1"
    for options in ((), ("--format", "tally")):
        command = ("-m", "dissensus", "aggregate", "b.bin", "-s", "majority", *options)
        done = python(installed, *command, cwd=tmp_path)
        assert [line[:3] for line in done.stdout.splitlines()] == ["ite", "a,0", "b,1"], done.stderr


def test_a_format_never_hides_a_name_and_is_looked_up_only_where_it_is_needed(installed, tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    code = (
        "import sys, dissensus as ds; from dissensus.formats.format import formats; "
        "ds.read('a.csv'); ds.read('a.csv', format='csv'); "
        "ds.write(ds.read('a.csv'), 'c.json', format='label-studio'); ds.read('c.json'); "
        "print('dissensus_extra.tally' in sys.modules); print(formats['coco'].kinds); "
        "print([name for name in formats if name in ('tally', 'lost')])"
    )
    done = python(installed, "-c", code, cwd=tmp_path)
    lines = ["False", "('boxes', 'masks')", "['tally']"]
    assert done.stdout.splitlines() == lines, done.stderr
    assert "plug-in lost (dissensus_extra.nowhere:FORMAT) does not load" in done.stderr


def test_a_measure_of_another_package_is_measured_with_an_interval(installed, tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    command = ("-m", "dissensus", "agree", "a.csv", "--measure", "mode-kappa", "--json")
    done = python(installed, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (estimate,) = json.loads(done.stdout)["estimates"]
    # a: 1 of 3 pairs agree, b: all; two of six labels are not the most common one
    assert estimate["value"] == pytest.approx(1 - (1 - 2 / 3) / (2 / 6))
    assert estimate["measure"] == "mode-kappa"
    shown = python(installed, "-m", "dissensus", "agree", "a.csv", "-m", "Mode_Kappa", cwd=tmp_path)
    assert "mode-kappa" in shown.stdout
    code = "from dissensus.metrics import find_measure as f; print(f('alpha').kind)"
    assert python(installed, "-c", code, cwd=tmp_path).stdout == "alpha\n"
    done = python(installed, "-m", "dissensus", "agree", "a.csv", "-m", "modekapa", cwd=tmp_path)
    assert "no measure 'modekapa'; did you mean mode-kappa?" in done.stderr


def test_methods_of_other_packages_are_listed(installed, tmp_path):
    done = python(installed, "-m", "dissensus", "methods", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "lenient-vote" in done.stdout


@pytest.mark.parametrize("option", ["--method lenient-vote", "--format tally"])
def test_promises_run_on_what_another_package_adds(option, installed, tmp_path):
    plugin = () if _is_plugin() else ("-p", "dissensus.conformance")
    command = ("-m", "pytest", "-q", *plugin, "-p", "no:cacheprovider", "--pyargs")
    command += ("dissensus.conformance", *option.split())
    done = python(installed, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout


def _is_plugin():
    from importlib.metadata import entry_points

    return "dissensus.conformance" in {entry.name for entry in entry_points(group="pytest11")}
