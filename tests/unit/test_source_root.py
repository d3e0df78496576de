"""The plain checkout: with ``plugin`` as the only source root, every import of ``sluiceway`` is a file."""

from __future__ import annotations

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCE_ROOT = CHECKOUT / "plugin"


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield each imported module of ``sluiceway``, with the name that is taken from it, if any."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.partition(".")[0] == "sluiceway")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "sluiceway":
            yield from ((node.module, alias.name) for alias in node.names)


def file_of(module: str) -> Path | None:
    """Return the file of a module below the source root, or None."""
    base = SOURCE_ROOT.joinpath(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names that a module defines or imports, in conditional blocks as well."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)


def resolves(module: str, name: str | None) -> bool:
    path = file_of(module)
    return path is not None and (name is None or file_of(f"{module}.{name}") is not None or name in names_in(path))


def test_every_import_of_the_package_resolves_on_a_plain_checkout() -> None:
    """mypy finds such an import in the plugin, its tests and its tools; here are the other files of the checkout."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    files = [file for file in listed.split() if not file.startswith(("plugin/", "tests/", "tools/"))]
    found = [(file, *each) for file in files for each in imports(CHECKOUT / file)]
    lost = [row for row in found if not resolves(*row[1:])]
    print(f"{len(found)} imports of sluiceway in {len(files)} files, {len(lost)} unresolved")
    assert {file.partition("/")[0] for file, *_ in found} == {"dags", "docker", "operators", "sensors", "setup.py"}
    assert lost == []


@pytest.mark.parametrize("folder", ["operators", "sensors", "dags"])
def test_top_level_folders_are_linked_into_the_package(folder: str) -> None:
    link = SOURCE_ROOT / "sluiceway" / folder
    assert link.is_symlink()
    assert link.resolve() == CHECKOUT / folder
