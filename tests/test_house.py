"""Imports point one way, and nobody reaches into another package's private modules."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dissensus"


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports from this package, by their dotted names."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        base = list(parts[: len(parts) - node.level]) if node.level else []
        target = [*base, *(node.module or "").split(".")] if node.module else base
        if target[:1] == ["dissensus"]:
            name = ".".join(target)
            found |= {name} | {f"{name}.{alias.name}" for alias in node.names}
    return found


def is_module(name: str) -> bool:
    path = SOURCE.parent / Path(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_private_modules_are_imported_by_their_own_package_alone(path):
    own = ".".join(path.relative_to(SOURCE.parent).parent.parts)
    for name in filter(is_module, imported(path)):
        parts = name.split(".")
        for depth, part in enumerate(parts):
            if part.startswith("_"):
                home = ".".join(parts[:depth])
                assert own == home or own.startswith(f"{home}."), f"{path.name} imports {name}"
