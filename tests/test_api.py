"""What is public is declared, sorted, documented, and nothing else."""

import importlib.util
import pkgutil
import subprocess
import sys
import types

import pytest

import dissensus
import dissensus.aggregation

# These stand on torch, which may be missing.
_ON_TORCH = tuple(
    f"dissensus.{name}" for name in ("nn", "learning", "tendency", "recovery", "meta")
)
DEEP = () if importlib.util.find_spec("torch") else _ON_TORCH
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(dissensus.__path__, "dissensus.", lambda _name: None)
    if not name.endswith("__main__") and not (DEEP and name.startswith(DEEP))
]


@pytest.mark.parametrize("name", ["dissensus", *MODULES])
def test_what_is_declared_is_there(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        getattr(module, public)


@pytest.mark.parametrize("name", MODULES)
def test_public_things_defined_in_a_module_are_declared_or_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is"
    for attribute, value in vars(module).items():
        mine = isinstance(value, (type, types.FunctionType)) and value.__module__ == name
        if mine and not attribute.startswith(("_", "test_")):  # a promise is its name
            assert value.__doc__, f"{name}.{attribute} does not say what it is"


def test_what_the_package_offers_is_what_it_declares():
    assert dir(dissensus) == sorted(dissensus.__all__)
    assert set(dissensus._HOMES) | {"__version__"} == set(dissensus.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dissensus.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_else():
    code = "import sys, dissensus; print([m for m in sys.modules if m.startswith('dissensus.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("registry", [dissensus.aggregators, dissensus.estimators])
def test_methods_can_be_cloned_as_scikit_learn_does(registry):
    clone = pytest.importorskip("sklearn.base").clone
    for name in registry:
        method = registry.create(name)
        assert clone(method) == method
        assert clone(method).get_params() == method.get_params()
    changed = dissensus.aggregators.create("dawid-skene[smoothing=0.1]")
    assert clone(changed) == changed
    with_table = dissensus.aggregation.Weighted(skills={"x": 2.0})
    assert clone(with_table) == with_table


def test_errors_are_what_python_expects():
    for error in (dissensus.DataError, dissensus.MethodError, dissensus.OptionError):
        assert issubclass(error, dissensus.DissensusError)
        assert issubclass(error, ValueError)
    assert issubclass(dissensus.OutputError, OSError)
    for error in (dissensus.DataError, dissensus.OutputError):
        assert str(error("item 'a\nb' has\r\ntwo labels")) == "item 'a b' has two labels"
