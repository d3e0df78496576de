"""The columnar form of each transform returns what its row form returns, for random schemas, values and options.

EXAMPLES sets the number of cases for each transform. A failure names its seed.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import sluiceway.transforms
from sluiceway.api import Predicate, Transform
from sluiceway.runtime.columns import has_columnar_form
from support.column_cases import PREDICATES, TRANSFORMS
from support.columnar import compare

_EXAMPLES = int(os.environ.get("EXAMPLES", "200"))
_ROW_FORM_ONLY = {"InsertHeader", "HeaderFrom"}

pytestmark = pytest.mark.timeout(0)  # 10,000 cases of a transform take minutes on a busy machine


def classes(kind: type) -> Iterator[Any]:
    """Yield the subclasses in the package of the transforms."""
    for module in pkgutil.walk_packages(sluiceway.transforms.__path__, "sluiceway.transforms."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, type) and issubclass(each, kind) and each.__module__ == module.name:
                yield each


def test_every_columnar_form_has_random_cases() -> None:
    columnar = [each.java_class for each in classes(Transform) if has_columnar_form(each, "column_transform", "apply")]
    names = {name.rpartition(".")[2].partition("$")[0] for name in columnar if name}
    assert names == {*TRANSFORMS, "Filter"} - _ROW_FORM_ONLY
    predicates = {each.__name__ for each in classes(Predicate) if has_columnar_form(each, "column_predicate", "test")}
    assert predicates - {"Predicate"} == set(PREDICATES)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_columns_are_transformed_like_records(name: str) -> None:
    handled = compare([name], range(_EXAMPLES))
    print(name, dict(handled))
    assert bool(handled["columns"]) != (name in _ROW_FORM_ONLY)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_columns_are_filtered_like_records(predicate: str) -> None:
    handled = compare(["Filter"], range(_EXAMPLES), predicate_names=[predicate])
    print("Filter", predicate, dict(handled))
    assert handled["columns"]
