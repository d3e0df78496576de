"""Java's serialization of arrays; the bytes are those of a real ``ObjectOutputStream``."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.java.object_arrays import JavaValue, dump_array, load_array
from sluiceway.java.serialization import MalformedError

_NUMBERS = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c020000787000000009737200116a6176612e6c616e672e"
    "496e746567657212e2a0a4f781873802000149000576616c7565787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b02000078"
    "70000000017371007e0002000000027372000e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c75657871007e0003"
    "00000000000000057372000f6a6176612e6c616e672e53686f7274684d37133460da5202000153000576616c75657871007e000300037372000f"
    "6a6176612e6c616e672e466c6f6174daedc9a2db3cf0ec02000146000576616c75657871007e00033fc00000737200106a6176612e6c616e672e"
    "446f75626c6580b3c24a296bfb0402000144000576616c75657871007e00034004000000000000737200116a6176612e6c616e672e426f6f6c65"
    "616ecd207280d59cfaee0200015a000576616c756578700174000561c080c3a470"
)
_DECIMALS = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c020000787000000004737200146a6176612e6d6174682e"
    "426967446563696d616c54c71557f981284f0300024900057363616c654c0006696e7456616c7400164c6a6176612f6d6174682f426967496e74"
    "656765723b787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b020000787000000003737200146a6176612e6d6174682e4269"
    "67496e74656765728cfc9f1fa93bfb1d030006490008626974436f756e744900096269744c656e67746849001366697273744e6f6e7a65726f42"
    "7974654e756d49000c6c6f776573745365744269744900067369676e756d5b00096d61676e69747564657400025b427871007e0004ffffffffff"
    "fffffffffffffefffffffeffffffff757200025b42acf317f8060854e002000078700000000a1a249b1f10a06c96b00278787371007e00020000"
    "00007371007e0006fffffffffffffffffffffffefffffffe000000007571007e00090000000078787371007e0002000000007371007e0006ffff"
    "fffffffffffffffffffefffffffe000000017571007e0009000000010c78787372000e6a6176612e7574696c2e55554944bc9903f7986d852f02"
    "00024a000c6c65617374536967426974734a000b6d6f7374536967426974737870f123456789abcdef0123456789abcdef"
)
_TIMES = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c020000787000000005737200126a6176612e73716c2e54"
    "696d657374616d702618d5c80153bf650200014900056e616e6f737872000e6a6176612e7574696c2e44617465686a81014b5974190300007870"
    "77080000018bcfe5680078075bca007372000d6a6176612e73716c2e4461746514fa46683f3566970200007871007e000377080000018bd04710"
    "0078757200025b42acf317f8060854e002000078700000000201027400017874000179"
)
_MOMENT = dt.datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=dt.timezone.utc)
_KEY = uuid.UUID("01234567-89ab-cdef-f123-456789abcdef")
_BIG = Decimal("-123456789012345678901.250")

_CASES: list[tuple[str, list[JavaValue | None], list[Any]]] = [
    (
        _NUMBERS,
        [
            ("Integer", 1),
            ("Integer", 2),
            ("Long", 5),
            ("Short", 3),
            ("Float", 1.5),
            ("Double", 2.5),
            ("Boolean", True),
            ("String", "a\0\u00e4"),
            None,
        ],
        [1, 2, 5, 3, 1.5, 2.5, True, "a\0\u00e4", None],
    ),
    (
        _DECIMALS,
        [("BigDecimal", _BIG), ("BigDecimal", Decimal(0)), ("BigDecimal", Decimal(12)), ("UUID", _KEY)],
        [_BIG, Decimal(0), Decimal(12), _KEY],
    ),
    (
        _TIMES,
        [("Timestamp", _MOMENT), ("Date", dt.date(2023, 11, 15)), ("bytes", b"\1\2"), ("String", "x"), ("String", "y")],
        [_MOMENT, dt.date(2023, 11, 15), b"\1\2", "x", "y"],
    ),
]


@pytest.mark.parametrize(("text", "values", "python"), _CASES)
def test_arrays_are_read(text: str, values: list[JavaValue | None], python: list[Any]) -> None:
    assert load_array(bytes.fromhex(text)) == python
    assert load_array(dump_array(values)) == python


@pytest.mark.parametrize(("text", "values"), [(_NUMBERS, _CASES[0][1]), (_TIMES, _CASES[2][1]), ("aced000570", None)])
def test_arrays_are_written_as_java_writes_them(text: str, values: list[JavaValue | None] | None) -> None:
    assert dump_array(values).hex() == text


@pytest.mark.parametrize("data", [b"", bytes.fromhex(_NUMBERS)[:-3], bytes.fromhex("aced0005740001") + b"x"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        load_array(data)
