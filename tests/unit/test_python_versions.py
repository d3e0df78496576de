"""The package on each Python version that it supports, as far as one Python can tell. `make test-matrix` runs the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from support import stdlib_subclasses
from support.stdlib_subclasses import private_names, subclasses

CHECKOUT = Path(__file__).resolve().parents[2]

# Private names of base classes in any of Python 3.10 to 3.14, where they differ between these. The running Python tells its own.
OTHER_PYTHONS = {
    "threading.Thread": {
        *("_after_fork", "_args", "_bootstrap", "_bootstrap_inner", "_context", "_daemonic", "_delete", "_handle", "_ident"),
        *("_initialized", "_invoke_excepthook", "_is_stopped", "_kwargs", "_name", "_native_id", "_os_thread_handle"),
        *("_reset_internal_locks", "_set_ident", "_set_native_id", "_set_os_name", "_set_tstate_lock", "_started", "_stderr"),
        *("_stop", "_target", "_tstate_lock", "_wait_for_tstate_lock"),
    },
    "multiprocessing.managers.BaseManager": {"_shutdown_timeout"},
}


def clashes(kind: type, bases: list[type]) -> list[str]:
    """Return the private names that a class and its package's bases share with classes of the standard library."""
    own = {name for each in kind.__mro__ if each not in bases and each is not object for name in private_names(each)}
    found = []
    for base in bases:
        full_name = f"{base.__module__}.{base.__qualname__}"
        taken = private_names(base) | OTHER_PYTHONS.get(full_name, set())
        found += [f"{kind.__module__}.{kind.__qualname__}: {full_name} uses {name}" for name in sorted(own & taken)]
    return found


def test_every_module_can_be_imported() -> None:
    assert len(stdlib_subclasses.import_all()) > 700


def test_no_class_uses_a_private_name_of_the_standard_librarys_class_that_it_extends() -> None:
    found = list(subclasses())
    assert len(found) > 10
    assert [clash for kind, bases in found for clash in clashes(kind, bases)] == []


def multiple_bases(path: Path) -> Iterator[str]:
    """Yield the named tuples and typed dictionaries with a second base: Python 3.10 refuses them, and no type checker says so."""
    text = path.read_text(encoding="utf-8")
    if "NamedTuple" not in text and "TypedDict" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and len(node.bases) > 1:
            names = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if names & {"NamedTuple", "TypedDict"}:
                yield f"{path.relative_to(CHECKOUT)}:{node.lineno} {node.name}"


def test_no_named_tuple_has_a_second_base() -> None:
    folders = ("plugin", "operators", "sensors", "dags", "tools", "tests")
    assert [each for folder in folders for path in (CHECKOUT / folder).rglob("*.py") for each in multiple_bases(path)] == []
