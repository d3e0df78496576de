"""Maven's version ranges, as ``*.plugin.version`` keys use them."""

from __future__ import annotations

import re

import pytest

from sluiceway.java.version_range import VersionRange


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("4.3.0", ["4.3.0", "4.3"], ["4.3.1", "4.2"]),
        ("[4,5)", ["4.0", "4.99"], ["5", "3.9"]),
        ("(4,5]", ["4.1", "5.0.0"], ["4", "5.1"]),
        ("(,1.0],[1.2,)", ["0.9", "1.0", "1.2", "10"], ["1.1"]),
        ("1.0,2.0", ["1.5"], ["2.1"]),
        ("[1.0-rc1,1.0)", ["1.0-rc1", "1.0-rc2"], ["1.0-beta", "1.0"]),
        ("[1.9,2)", ["1.10"], ["1.8"]),
    ],
)
def test_a_range_holds_the_versions_between_its_ends(text: str, inside: list[str], outside: list[str]) -> None:
    wanted = VersionRange.parse(text)
    assert wanted is not None
    assert [version for version in inside if version not in wanted] == []
    assert [version for version in outside if version in wanted] == []


@pytest.mark.parametrize(("text", "shown"), [("9.9", "[9.9,9.9]"), ("", "[,]"), ("(,1.0],[1.2,)", "(,1.0],[1.2,)")])
def test_a_range_is_shown_with_both_ends(text: str, shown: str) -> None:
    assert str(VersionRange.parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "Unbounded range: ["),
        ("[1,2", "Unbounded range: [1,2"),
        ("a,,b", "Range defies version ordering: [a,,b]"),
        ("[b,a1]", "Range defies version ordering: [b,a1]"),
        ("[2,1]", "Range defies version ordering: [2,1]"),
        ("(1)", "Single version must be surrounded by []: (1)"),
        ("[1,3],[2,4]", "Ranges overlap: [1,3],[2,4]"),
        ("[1,2]3", "Only fully-qualified sets allowed in multiple set scenario: [1,2]3"),
    ],
)
def test_malformed_ranges_are_refused_with_mavens_message(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        VersionRange.parse(text)


def test_the_latest_is_any_version() -> None:
    assert VersionRange.parse(None) is None
    assert VersionRange.parse(" Latest ") is None
