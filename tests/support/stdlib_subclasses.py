"""Finds the classes of the package that extend classes of Python's standard library, and the private names of both."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Iterator

import sluiceway

#: Modules whose classes keep no private state in their subclasses' instances.
_PLAIN = frozenset({"abc", "builtins", "enum", "typing"})

#: Attributes that Python itself gives each subclass: caches of ABCs, and copies that ``BaseManager.register`` makes.
_MADE_BY_PYTHON = frozenset({"_abc_impl", "_registry"})


@functools.cache
def import_all() -> tuple[str, ...]:
    """Import every module of the package and return their names."""
    names = [each.name for each in pkgutil.walk_packages(sluiceway.__path__, "sluiceway.") if not each.name.endswith("__main__")]
    for name in names:
        importlib.import_module(name)
    return tuple(names)


def subclasses() -> Iterator[tuple[type, list[type]]]:
    """Yield each class of the package with the classes of the standard library that it extends."""
    for name in import_all():
        for value in list(vars(sys.modules[name]).values()):
            if isinstance(value, type) and value.__module__ == name:
                bases = [base for base in value.__mro__ if is_stdlib(base)]
                if bases:
                    yield value, bases


def is_stdlib(base: type) -> bool:
    """Return whether a class is of the standard library and may have private state of its own."""
    module = base.__module__
    return module.partition(".")[0] in sys.stdlib_module_names and module not in _PLAIN


def private_names(kind: type) -> frozenset[str]:
    """Return the private names that a class itself defines: its attributes, and those of ``self`` that its methods assign."""
    try:
        source = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError):  # a class of C, or a made one
        assigned: set[str] = set()
    else:
        assigned = {node.attr for node in ast.walk(source) if isinstance(node, ast.Attribute) and _is_stored_in_self(node)}
    names = {name for name in {*vars(kind), *assigned} if name.startswith("_") and not name.endswith("_")}
    return frozenset(names - _MADE_BY_PYTHON)


def _is_stored_in_self(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"
