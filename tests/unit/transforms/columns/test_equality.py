"""The columnar form of each transform returns what its row form returns, for random schemas, values and options.

EXAMPLES sets the number of cases for each transform. A failure names its seed.
"""

from __future__ import annotations

import os

import pytest

from support.column_cases import TRANSFORMS
from support.columnar import compare

_EXAMPLES = int(os.environ.get("EXAMPLES", "200"))
_ROW_FORM_ONLY = {"InsertHeader", "HeaderFrom"}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_columns_are_transformed_like_records(name: str) -> None:
    handled = compare([name], range(_EXAMPLES))
    print(name, dict(handled))
    assert bool(handled["columns"]) != (name in _ROW_FORM_ONLY)


def test_columns_are_filtered_like_records() -> None:
    handled = compare(["Filter"], range(_EXAMPLES))
    print("Filter", dict(handled))
    assert handled["columns"]
