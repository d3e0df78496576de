from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.converters.json.base64_text import from_base64, to_base64


@given(st.binary())
def test_bytes_are_written_as_base64_and_read_back(data: bytes) -> None:
    assert to_base64(data) == base64.b64encode(data).decode()
    assert from_base64(to_base64(data)) == data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        (" AAE=\n", b"\0\1"),
        ("AAE=AAE=", b"\0\1\0\1"),
        ("AAF=", b"\0\1"),
        ("AB==", b"\0"),
        ("AAEC AAEC", b"\0\1\2\0\1\2"),
    ],
)
def test_whitespace_between_groups_and_leftover_bits_are_ignored(text: str, data: bytes) -> None:
    assert from_base64(text) == data


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "AA",
        "AAE",
        "AA E=",
        "A\nAE=",
        "AAE==",
        "A===",
        "AAAA=",
        "=",
        "====",
        "%%",
        "-_-_",
        "AAE%",
        "AA%E",
        "ä",
        "AAAä",
        "=AAA",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not base64"):
        from_base64(text)
