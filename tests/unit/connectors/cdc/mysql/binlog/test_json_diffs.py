"""Partial updates of JSON documents have the effect of MySQL's functions."""

from __future__ import annotations

import struct

import pytest

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.mysql.binlog.json_diffs import updated_json
from sluiceway.errors import ConnectError

REPLACE, INSERT, REMOVE = range(3)
SEVEN = b"\x05" + struct.pack("<h", 7)


def _diff(operation: int, path: str, value: bytes = b"") -> bytes:
    name = path.encode()
    return bytes([operation, len(name)]) + name + (bytes([len(value)]) + value if value else b"")


@pytest.mark.parametrize(
    ("before", "operation", "path", "after"),
    [
        ('{"a":1}', REPLACE, "$.a", '{"a":7}'),
        ('{"a":1}', REPLACE, "$", "7"),
        ('{"a":{"b":[1,[2]]}}', REPLACE, "$.a.b[1][0]", '{"a":{"b":[1,[7]]}}'),
        ('{"a.b":{"q\\"":1}}', REPLACE, '$."a.b"."q\\""', '{"a.b":{"q\\"":7}}'),
        ('{"b":1,"aa":2}', INSERT, "$.c", '{"b":1,"c":7,"aa":2}'),
        ('{"b":1,"aa":2}', INSERT, "$.a", '{"a":7,"b":1,"aa":2}'),
        ('{"ż":1}', INSERT, "$.zz", '{"zz":7,"ż":1}'),
        ('{"a":1}', INSERT, "$.a", '{"a":1}'),
        ("[1,2]", INSERT, "$[0]", "[7,1,2]"),
        ("[1,2]", INSERT, "$[9]", "[1,2,7]"),
        ("[1,2,3]", REMOVE, "$[1]", "[1,3]"),
        (
            '{"a":1,"b":[true,null,1e+300,-0.0,12345678901234567890123]}',
            REMOVE,
            "$.a",
            '{"b":[true,null,1e+300,-0.0,12345678901234567890123]}',
        ),
    ],
)
def test_a_diff(before: str, operation: int, path: str, after: str) -> None:
    assert updated_json(before, _diff(operation, path, b"" if operation == REMOVE else SEVEN)) == after


def test_several_diffs_are_applied_in_order() -> None:
    diffs = _diff(INSERT, "$.b", SEVEN) + _diff(REMOVE, "$.a") + _diff(INSERT, "$.a", b"\x0c\x02hi")

    assert updated_json('{"a":1}', diffs) == '{"a":"hi","b":7}'


def test_a_document_that_is_not_known_stays_unknown() -> None:
    assert updated_json(UNAVAILABLE, _diff(REMOVE, "$.a")) is UNAVAILABLE


@pytest.mark.parametrize(
    ("before", "operation", "path"),
    [("[1]", REMOVE, "$[1]"), ('{"a":1}', REPLACE, "$.b"), ("1", REPLACE, "$.a"), ("[]", INSERT, "$.a"), ("{}", REMOVE, "$.*")],
)
def test_a_diff_that_does_not_fit_is_an_error(before: str, operation: int, path: str) -> None:
    with pytest.raises(ConnectError, match="partial"):
        updated_json(before, _diff(operation, path, SEVEN))
