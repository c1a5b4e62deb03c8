"""Mutants of formulas and printed counts, and whether the tests beside them notice.

Run it with `python benchmarks/run.py robustness mutants --mutants 60 --modules 20 --seed 0`.

In a copy of the tree one operator at a time is changed: plus to minus, times to divided by, less to
at most, minimum to maximum, a sum to a mean, one axis to the other, a minus sign dropped. Constants
stay, and so do annotations, imports, checks that raise, and type checking. Modules are drawn by
their number of such places. Against every mutant run the examples of its module, then the tests of
its room, those that name the module's own names first, until one fails. A mutant that nothing
notices is printed with its line: it is a test to write, or a change that changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).parents[2]
ROOMS = (
    "aggregation",
    "answers",
    "judging",
    "metrics",
    "planning",
    "quality",
    "reporting",
    "scale",
    "deep",
)
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
NAMES = {"sum": "mean", "mean": "sum", "max": "min", "min": "max", "exp": "log", "log": "exp"}
NAMES |= {"maximum": "minimum", "minimum": "maximum", "argmax": "argmin", "argmin": "argmax"}
NAMES |= {"any": "all", "all": "any"}
SIGNS = dict(zip(OPERATORS, ("+", "-", "*", "/", "<", "<=", ">", ">="), strict=True))


class Mutant(NamedTuple):
    """A change of one operator."""

    path: Path  # from the root of the tree
    place: int  # among the places of the file
    line: int
    change: str


class Changer(ast.NodeTransformer):
    """Counts the places of a module, and changes one of them."""

    def __init__(self, place: int = -1) -> None:
        self.place, self.count = place, 0
        self.found: list[tuple[int, str]] = []  # (line, change) of every place

    def _at(self, line: int, change: str) -> bool:
        self.found.append((line, change))
        self.count += 1
        return self.count - 1 == self.place

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        only_raises = all(isinstance(statement, ast.Raise) for statement in node.body)
        if "TYPE_CHECKING" in ast.unparse(node.test) or (only_raises and not node.orelse):
            return node
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        is_text = any(
            isinstance(side, ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        new = OPERATORS.get(type(node.op))
        sequence = any(isinstance(side, (ast.List, ast.Tuple)) for side in (node.left, node.right))
        if new is None or is_text or sequence:
            return node
        if self._at(node.lineno, f"{SIGNS[type(node.op)]} to {SIGNS[new]}"):
            node.op = new()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for index, operator in enumerate(node.ops):
            new = OPERATORS.get(type(operator))
            if new and self._at(node.lineno, f"{SIGNS[type(operator)]} to {SIGNS[new]}"):
                node.ops[index] = new()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        is_number = isinstance(node.operand, ast.Constant)
        if (
            isinstance(node.op, ast.USub)
            and not is_number
            and self._at(node.lineno, "minus dropped")
        ):
            return node.operand
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else ""
        if name in NAMES and self._at(node.lineno, f"{name} to {NAMES[name]}"):
            called.attr = NAMES[name]
        for keyword in node.keywords:
            axis = keyword.value
            if keyword.arg != "axis" or not isinstance(axis, ast.Constant):
                continue
            if axis.value in (0, 1) and self._at(node.lineno, f"axis {axis.value} to the other"):
                axis.value = 1 - axis.value
        return node


def places(path: Path) -> list[tuple[int, str]]:
    """Return line and change of every place in a file."""
    changer = Changer()
    changer.visit(ast.parse(path.read_text(encoding="utf-8")))
    return changer.found


def mutants(n_mutants: int, n_modules: int, rooms: tuple[str, ...], seed: int) -> list[Mutant]:
    """Draw modules by their number of places, then places in them."""
    draw = random.Random(seed)
    package = HOME / "src" / "dissensus"
    files = {
        path.relative_to(HOME): places(path)
        for room in rooms
        for path in sorted((package / room).rglob("*.py"))
        if path.name != "__init__.py"
    }
    files = {path: found for path, found in files.items() if len(found) >= 10}
    order = sorted(files, key=lambda path: draw.random() ** (1 / len(files[path])), reverse=True)
    chosen = order[:n_modules]
    drawn = []
    for number in range(n_mutants):
        path = chosen[number % len(chosen)]
        place = draw.randrange(len(files[path]))
        line, change = files[path][place]
        drawn.append(Mutant(path, place, line, change))
    return drawn


def tests_of(mutant: Mutant, tree: Path) -> list[str]:
    """Return what to run against a mutant: its examples, then tests, those that name it first."""
    package = mutant.path.parts[2:]
    room = package[0]
    source = (tree / mutant.path).read_text(encoding="utf-8")
    parsed = ast.parse(source)
    names = {node.name for node in parsed.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names = {name for name in names if not name.startswith("_") and len(name) > 4} | {
        mutant.path.stem
    }

    def mentions(path: Path) -> int:
        text = path.read_text(encoding="utf-8")
        return -sum(name in text for name in names)

    files = sorted((tree / "tests" / room).glob("test_*.py"), key=mentions)
    contract = (tree / "tests" / "contract").glob("test_*.py")
    return [str(path.relative_to(tree)) for path in (tree / mutant.path, *files, *contract)]


def run_against(mutant: Mutant, tree: Path, limit: float) -> tuple[str, float]:
    """Return what noticed a mutant, or an empty text; and the seconds."""
    target, start = tree / mutant.path, time.perf_counter()
    original = target.read_text(encoding="utf-8")
    changer = Changer(mutant.place)
    changed = ast.fix_missing_locations(changer.visit(ast.parse(original)))
    target.write_text(ast.unparse(changed), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    noticed = ""
    try:
        for test in tests_of(mutant, tree):
            left = limit - (time.perf_counter() - start)
            if left <= 0:
                break
            try:
                done = subprocess.run(
                    [*command, test], cwd=tree, env=environment, capture_output=True, timeout=left
                )
            except subprocess.TimeoutExpired:
                break
            if done.returncode not in (0, 5):  # 5: no test in it
                noticed = test
                break
    finally:
        target.write_text(original, encoding="utf-8")
    return noticed, time.perf_counter() - start


def copies() -> Iterator[Path]:
    """Yield a copy of the tree, to be changed."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        ignored = shutil.ignore_patterns(".git", ".venv*", "__pycache__", ".mypy_cache", "_build")
        shutil.copytree(HOME, tree, ignore=ignored)
        yield tree


def main() -> None:
    """Draw mutants, run tests against them, and print those that nothing noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--modules", type=int, default=20)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--limit", type=float, default=240, help="seconds for one mutant")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    drawn = mutants(options.mutants, options.modules, tuple(options.rooms.split(",")), options.seed)
    noticed = 0
    for tree in copies():
        for number, mutant in enumerate(drawn, 1):
            test, seconds = run_against(mutant, tree, options.limit)
            noticed += bool(test)
            where = f"{mutant.path.relative_to('src/dissensus')}:{mutant.line}"
            print(
                f"{number:3} {seconds:5.0f} s  {where} {mutant.change}: {test or 'NOT NOTICED'}",
                flush=True,
            )
    print(f"{noticed} of {len(drawn)} mutants noticed ({noticed / len(drawn):.0%})")


if __name__ == "__main__":
    main()
