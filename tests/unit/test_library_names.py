"""The private names of libraries that the product uses: each is listed here, and is there in the installed version."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import sluiceway

_ROOT = Path(sluiceway.__file__).parent


def _source(kind: type) -> str:
    return "".join(inspect.getsource(base) for base in kind.__mro__ if base is not object)


def _pymysql() -> str:
    from pymysql import connections, cursors

    return _source(connections.Connection) + _source(cursors.SSCursor)


def _iceberg_transaction() -> str:
    from pyiceberg.table import Transaction

    return _source(Transaction)


def _iceberg_schema() -> str:
    from pyiceberg.schema import Schema

    return _source(Schema)


def _iceberg_arrow() -> str:
    from pyiceberg.io import pyarrow

    return inspect.getsource(pyarrow)


def _spark_context() -> str:
    from pyspark import SparkContext

    return _source(SparkContext)


def _spark_session() -> str:
    from pyspark.sql import SparkSession

    return _source(SparkSession)


def _import_system() -> str:
    import importlib

    return " ".join(vars(importlib))


def _kafka_errors() -> str:
    from confluent_kafka import KafkaError

    return " ".join(vars(KafkaError))


def _dlt_resource() -> str:
    from dlt.extract import DltResource

    return inspect.getsource(DltResource)


def _dlt_iterator() -> str:
    from dlt.extract import pipe_iterator

    return inspect.getsource(pipe_iterator)


USED: dict[str, tuple[str, Callable[[], str]]] = {
    "_updates": ("connectors/iceberg/", _iceberg_transaction),
    "_rebuild_snapshot_updates": ("connectors/iceberg/", _iceberg_transaction),
    "_lazy_id_to_name": ("connectors/iceberg/", _iceberg_schema),
    "_name_to_id": ("connectors/iceberg/", _iceberg_schema),
    "_record_batches_from_scan_tasks_and_deletes": ("connectors/iceberg/", _iceberg_arrow),
    "_determine_partitions": ("connectors/iceberg/", _iceberg_arrow),
    "_get_field_from_arrow_table": ("connectors/iceberg/", _iceberg_arrow),
    "_pyarrow_to_schema_without_ids": ("connectors/iceberg/", _iceberg_arrow),
    "_read_all_delete_files": ("connectors/iceberg/", _iceberg_arrow),
    "_execute_command": ("connectors/cdc/mysql/", _pymysql),
    "_read_packet": ("connectors/cdc/mysql/", _pymysql),
    "_rfile": ("connectors/cdc/mysql/", _pymysql),
    "_sock": ("connectors/cdc/mysql/", _pymysql),
    "_force_close": ("connectors/", _pymysql),
    "_result": ("connectors/jdbc/dialects/mysql/", _pymysql),
    "_ensure_initialized": ("spark/", _spark_context),
    "_gateway": ("spark/", _spark_context),
    "_jsc": ("spark/", _spark_context),
    "_jvm": ("", _spark_context),
    "_jsparkSession": ("spark/", _spark_session),
    "_bootstrap": ("package_imports.py", _import_system),
    "_futures_pool": ("connectors/dlt/internals.py", _dlt_iterator),
    "_pipe": ("connectors/dlt/internals.py", _dlt_resource),
    "_NOENT": ("kafka/", _kafka_errors),
}
"""By name: the folder that uses it, and where it must be. ``_jvm`` is also used by connectors that read with Spark."""

_PUBLIC = {"_asdict", "_make", "_exit", "_value2member_map_"}  # documented, or of Python's own enums
_TYPES_ONLY = {"_ActionsContainer", "_typeshed"}


@cache
def _trees() -> dict[str, ast.Module]:
    return {str(each.relative_to(_ROOT)): ast.parse(each.read_text(encoding="utf-8")) for each in _ROOT.rglob("*.py")}


def _own(tree: ast.Module) -> set[str]:
    """Return the names that a module defines or sets, also by their text."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def _used_by(tree: ast.Module) -> set[str]:
    """Return the private names that a module reads from objects, or imports from other libraries."""
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_private(node.attr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("sluiceway"):
            names = [*node.module.split("."), *(each.name for each in node.names)]
            found |= {each for each in names if _is_private(each)}
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_no_other_private_names_of_libraries_are_used() -> None:
    own = set().union(*(_own(tree) for tree in _trees().values())) - {"_rebuild_snapshot_updates"}
    used: dict[str, set[str]] = defaultdict(set)
    for path, tree in _trees().items():
        for name in _used_by(tree) - own:
            used[name].add(path)
    unknown = {name: paths for name, paths in used.items() if name not in USED.keys() | _PUBLIC | _TYPES_ONLY}
    assert not unknown, "list the name here with where it comes from, or use a public one"
    elsewhere = {name: paths for name in USED for paths in [{each for each in used[name] if not each.startswith(USED[name][0])}]}
    assert not any(elsewhere.values()), elsewhere


@pytest.mark.parametrize("name", USED)
def test_the_installed_version_has_the_name(name: str) -> None:
    where = USED[name][1]
    assert name in where(), f"{where.__name__[1:]} of Python {sys.version_info.major}.{sys.version_info.minor}"
