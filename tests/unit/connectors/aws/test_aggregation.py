"""Records of the Kinesis Producer Library, made with Google's encoder of Protocol Buffers."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.aws.aggregation import UserRecord, user_records
from sluiceway.errors import DataError
from support.aggregated import aggregated

MAGIC = b"\xf3\x89\x9a\xc2"


def sealed(body: bytes) -> bytes:
    return MAGIC + body + hashlib.md5(body, usedforsecurity=False).digest()


@given(st.lists(st.tuples(st.text(min_size=1, max_size=20), st.binary(max_size=300)), max_size=30))
def test_records_are_read_as_they_were_aggregated(records: list[tuple[str, bytes]]) -> None:
    assert user_records(aggregated(records)) == [UserRecord(key, None, data) for key, data in records]


def test_hash_keys_are_read() -> None:
    found = user_records(aggregated([("a", b"1"), ("b", b"2")], hash_keys=["7"]))
    assert found == [UserRecord("a", "7", b"1"), UserRecord("b", None, b"2")]


@pytest.mark.parametrize("data", [b"", b"x", MAGIC, MAGIC + b"x" * 40, aggregated([("a", b"1")])[:-1]])
def test_other_records_are_left_alone(data: bytes) -> None:
    assert user_records(data) is None


@pytest.mark.parametrize("body", [b"\x0a", b"\x0a\x05ab", b"\x80", b"\xff" * 12, b"\x1a\x02\x08\x05", b"\x0b", b"\x1a\x00"])
def test_damaged_records_are_refused(body: bytes) -> None:
    with pytest.raises(DataError, match="damaged"):
        user_records(sealed(body))


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    with suppress(DataError):
        user_records(sealed(body))
