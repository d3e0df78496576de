"""Airflow's private names: its database models are used in one module, and attributes of its classes nowhere."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator, BaseSensorOperator
from airflow.triggers.base import BaseTrigger

import sluiceway
from sluiceway.provider.compat import BaseHook

_ROOT = Path(sluiceway.__file__).parent
_FILES = sorted(each for part in ("operators", "sensors", "provider") for each in (_ROOT / part).rglob("*.py"))

# The modules that may import Airflow's database models and settings.
_MODELS = ("airflow.models", "airflow.settings", "airflow.utils.session")
_MAY_USE_MODELS = {"provider/pause_sync/airflow_db.py", "provider/api/app.py"}


def _private(kind: type) -> set[str]:
    """Return the private attributes that a class of Airflow and its bases define, or set in their methods."""
    found = {name for base in kind.__mro__ for name in vars(base)}
    for base in kind.__mro__:
        if base.__module__.startswith("airflow."):
            tree = ast.parse(Path(inspect.getfile(base)).read_text(encoding="utf-8"))
            [own] = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == base.__name__]
            found |= {each.attr for each in ast.walk(own) if isinstance(each, ast.Attribute) and _is_of_self(each)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def _is_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


_AIRFLOWS = set().union(*map(_private, (SparkSubmitOperator, BaseOperator, BaseSensorOperator, BaseTrigger, BaseHook)))


def test_the_scan_knows_private_names_of_airflow() -> None:
    assert {"_conn_id", "_hook", "_spark_binary"} <= _AIRFLOWS


@pytest.mark.parametrize("file", _FILES, ids=lambda file: str(file.relative_to(_ROOT)))
def test_no_private_attribute_of_airflows_classes_is_used(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    extends_airflow = _classes_of_airflow(file)
    own = {name for kind in extends_airflow for name in _AIRFLOWS & _defined_in(tree, kind)}
    assert not own, "an attribute of the same name would replace Airflow's"
    for kind in extends_airflow:
        [node] = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == kind]
        used = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_inherited(each)}
        assert not used & _AIRFLOWS


def _is_inherited(node: ast.Attribute) -> bool:
    is_super = isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "super"
    return is_super or _is_of_self(node)


def _classes_of_airflow(file: Path) -> list[str]:
    """Return the names of a module's classes that have a base in Airflow."""
    parts = file.relative_to(_ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(("sluiceway", *parts)).removesuffix(".__init__"))
    kinds = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    return [each.__name__ for each in kinds if any(base.__module__.startswith("airflow.") for base in each.__mro__)]


def _defined_in(tree: ast.Module, kind: str) -> set[str]:
    """Return the names of a class's methods and of the attributes that they set."""
    [node] = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == kind]
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    attributes = [each for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_of_self(each)]
    set_here = {each.attr for each in attributes if isinstance(each.ctx, ast.Store)}
    return methods | set_here


@pytest.mark.parametrize("file", _FILES, ids=lambda file: str(file.relative_to(_ROOT)))
def test_nothing_private_is_imported_from_airflow_and_its_models_in_one_module_only(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        source = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for name in [f"{source}.{each}".removeprefix(".") for each in names]:
            if not name.startswith("airflow."):
                continue
            assert not any(part.startswith("_") for part in name.split(".")), name
            if name.startswith(_MODELS):
                assert str(file.relative_to(_ROOT)) in _MAY_USE_MODELS, name
