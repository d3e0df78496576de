"""The tests that the table of the twelve checks names exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.plugin_checks import CHECKS

_ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("test", [test for check in CHECKS for test in check.tests])
def test_a_named_test_exists(test: str) -> None:
    path, _, name = test.partition("::")
    assert f"def {name}(" in (_ROOT / path).read_text()
