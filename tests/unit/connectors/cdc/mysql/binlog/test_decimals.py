from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.mysql.binlog.decimals import decimal_bytes, decimal_reader


@pytest.mark.parametrize(
    ("precision", "scale", "data", "expected"),
    [
        (10, 4, "80000c1388", 125000),
        (10, 4, "7ffff3ec77", -125000),
        (14, 4, "810dfb38d204d2", 12345678901234),
        (14, 4, "7ef204c72dfb2d", -12345678901234),
        (5, 0, "80002a", 42),
    ],
)
def test_decimals_are_unscaled_integers(precision: int, scale: int, data: str, expected: int) -> None:
    raw = bytes.fromhex(data)

    assert decimal_bytes(precision, scale) == len(raw)
    assert decimal_reader(precision, scale)(b"xx" + raw, 2) == expected
