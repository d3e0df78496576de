"""Secrets in configs are hidden, references to secrets are not."""

from __future__ import annotations

import pytest

from sluiceway.config.masking import masked, shown

REFERENCE = "${file:/f:password}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("hunter2", "[hidden]"),
        (REFERENCE, REFERENCE),
        (REFERENCE * 2, REFERENCE * 2),
        (f"{REFERENCE}hunter2", "[hidden]"),
        (f"hunter2{REFERENCE}", "[hidden]"),
        (f"{REFERENCE}\n", "[hidden]"),
    ],
)
def test_a_secret_is_shown_if_it_is_references_only(value: str, expected: str) -> None:
    assert shown("db.password", value) == expected
    assert masked({"other": value}, passwords=["other"]) == {"other": expected}
