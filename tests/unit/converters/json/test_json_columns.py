"""JsonConverter's columnar form returns the same data and bytes as its row form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrays import to_array
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.converters import column_runs
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import Schema, Struct, Type, decimal_schema
from sluiceway.java.numbers import to_float32
from support.column_forms import Tolerant, decoded_alike, encoded_alike, many
from support.connect_data import schemas, values

options = st.fixed_dictionaries(
    {
        "decimal.format": st.sampled_from(["BASE64", "numeric"]),
        "replace.null.with.default": st.sampled_from(["true", "false"]),
    }
)
texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\n\t\x00\x1f\x7f\u2028😀'))
given_columns = schemas().flatmap(lambda schema: st.tuples(st.just(schema), st.lists(values(schema), max_size=6)))


@pytest.fixture(autouse=True, scope="module")
def runs_of_any_length() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_runs, "SMALLEST_RUN", 1)
        patch.setattr(column_runs.RunReader, "CHUNK", 3)
        yield


def converter(config: dict[str, str] | None = None) -> JsonConverter:
    made = JsonConverter()
    made.configure(config or {})
    return made


def columnar(schema: Schema, column: list[Any]) -> bool:
    try:
        to_array(schema, column)
    except NotColumnar:
        return False
    return True


# --- reading ---


@many
@given(given_columns, options)
def test_messages_are_decoded_alike(data: tuple[Schema, list[Any]], config: dict[str, str]) -> None:
    schema, column = data
    made = converter(config)
    messages = [made.from_connect_data("t", schema, value) for value in column]
    found = decoded_alike(made, messages)
    if config["decimal.format"] == "BASE64" and columnar(schema, column):
        assert found == len(messages), "no columnar form where there should be one"


@many
@given(given_columns, st.data())
def test_tombstones_and_other_schemas_between(data: tuple[Schema, list[Any]], draw: st.DataObject) -> None:
    schema, column = data
    made = converter()
    messages = [made.from_connect_data("t", schema, value) for value in column]
    others = [None, None, b"", b"not JSON", b'{"schema":null,"payload":1}', made.from_connect_data("t", Schema(Type.INT8), 5)]
    for other in draw.draw(st.lists(st.sampled_from(others), max_size=6)):
        messages.insert(draw.draw(st.integers(0, len(messages))), other)
    decoded_alike(Tolerant(made), messages)


ODD = [
    None,
    True,
    False,
    0,
    -0.0,
    1,
    -1,
    1.0,
    1.5,
    1e300,
    1e-300,
    2**31,
    2**53 + 1,
    2**62,
    2**63,
    2**64,
    -(2**63),
    "",
    "x",
    "AQ==",
    "é",
]
ODD_VALUES: list[Any] = [*ODD, [], [1], [[1, 2]], {}, {"a": 1}]


@st.composite
def odd_payloads(draw: Any, payload: Any) -> bytes:
    """A payload with some parts replaced, missing or added, then maybe with a changed character."""
    text = json.dumps(
        _odd(draw, payload), separators=draw(st.sampled_from([(",", ":"), (" , ", " : ")])), ensure_ascii=draw(st.booleans())
    )
    data = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 3)) == 0:
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 3))
        given_bytes = draw(
            st.sampled_from(
                [
                    b"",
                    b"0",
                    b"-",
                    b".0",
                    b"e1",
                    b",",
                    b"{",
                    b"}",
                    b"[",
                    b"]",
                    b"}{",
                    b"\n",
                    b"\0",
                    b" ",
                    b"\xff",
                    b'"',
                    b"\\ud800",
                    b"NaN",
                    b"1,2",
                ]
            )
        )
        data = data[:at] + given_bytes + data[at + length :]
    return data


def _odd(draw: Any, node: Any) -> Any:
    choice = draw(st.integers(0, 12))
    if choice == 0:
        return draw(st.sampled_from(ODD_VALUES))
    if isinstance(node, dict):
        made = {name: _odd(draw, item) for name, item in node.items()}
        if made and choice == 1:
            made.pop(draw(st.sampled_from(sorted(made))))
        return {**made, "more": 1} if choice == 2 else made
    return [_odd(draw, item) for item in node] if isinstance(node, list) else node


@many
@given(given_columns, options, st.booleans(), st.data())
def test_odd_payloads_are_decoded_alike_or_left_to_the_row_form(
    data: tuple[Schema, list[Any]], config: dict[str, str], bare: bool, draw: st.DataObject
) -> None:
    schema, column = data
    made = converter(config)
    prefix, suffix = made._envelope_of(schema)
    payloads = [json.loads((made.from_connect_data("t", schema, value) or b"")[len(prefix) : -1]) for value in column]
    odd = [draw.draw(odd_payloads(payload)) for payload in payloads]
    if bare:
        content = json.dumps(json.loads(prefix + b"null}")["schema"])
        decoded_alike(Tolerant(converter({**config, "schema.content": content})), list(odd))
    decoded_alike(Tolerant(made), [prefix + payload + suffix for payload in odd])
    for payload in odd:
        decoded_alike(Tolerant(made), [prefix + payload + suffix])


FIELDS = '[{"field":"a","type":"TYPE","optional":true},{"field":"b","type":"int64","optional":true}]'
ENVELOPE = f'{{"schema":{{"type":"struct","optional":false,"name":"t","fields":{FIELDS}}},"payload":PAYLOAD}}'
CASES = {
    "int64": ["1", "1.0", "9223372036854775807", "9223372036854775808", '"1"', "true", "null"],
    "int32": ["2147483648"],
    "int8": ["200"],
    "double": ["1", "1e400", "NaN", '"NaN"', "0.1", "-0.0", "123456789012345678", "2.2250738585072011e-308"],
    "float": ["0.1"],
    "string": [
        '"x"',
        "5",
        '"\\ud800"',
        '"\\u0000"',
        '"\\ud83d\\ude00"',
        '"é"',
        '"a\\nb"',
        '"2024-01-01T00:00:00Z"',
        '{"x":1}',
        "null",
    ],
    "boolean": ["true", "1", '"true"', "null"],
}
SHAPES = [
    '{"a":"x","b":1,"zz":9}',
    '{"b":1}',
    '{"a":"x","a":"y","b":1}',
    "null",
    '{"b":1,"a":"x"}',
    ' { "a" : "x" , "b" : 1 } ',
    '{"a":"x",\n"b":1}',
    '{"a":"x","b":1,}',
    "[1]",
    "{}",
    '{"a":"x","b":1}{"a":"y","b":2}',
]
ODD_MESSAGES = [(kind, f'{{"a":{text},"b":1}}') for kind, texts in CASES.items() for text in texts]
ODD_MESSAGES += [("string", shape) for shape in SHAPES]


def message(kind: str, payload: str) -> bytes:
    return ENVELOPE.replace("TYPE", kind).replace("PAYLOAD", payload).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("several", [False, True], ids=["alone", "between others"])
def test_the_odd_payloads_of_the_study(several: bool) -> None:
    columnar_count = 0
    for kind, payload in ODD_MESSAGES:
        odd, usual = message(kind, payload), message(kind, '{"a":null,"b":7}')
        columnar_count += bool(decoded_alike(Tolerant(converter()), [usual, odd, usual] if several else [odd]))
    assert (len(ODD_MESSAGES), columnar_count) == (43, 25)


@pytest.mark.parametrize(
    "parts",
    [
        [b"[1", b"2]"],
        [b"[1", b"2]", b"3,4"],
        [b"[1", b"2]", b"[3],[4],[5]"],
        [b"1,2", b""],
        [b"", b""],
        [b"1}{", b"2"],
        [b"1],[2"],
    ],
)
def test_parts_of_payloads_make_no_value_together(parts: list[bytes]) -> None:
    for schema, usual in ((Schema.array(Schema(Type.INT64)), b"[1]"), (Schema(Type.INT64), b"1")):
        prefix, suffix = converter()._envelope_of(schema)
        messages = [prefix + part + suffix for part in [usual] * 3 + parts]  # the first three are a chunk of their own
        assert decoded_alike(Tolerant(converter()), messages) == 3


@pytest.mark.parametrize(
    "parts",
    [
        [b'""'],
        ['"é\U0001f600\x7f"'.encode()],
        [b'"'],
        [b'"a"b"', b'"'],
        [b'"a', b'b"'],
        [b'"a"', b"1"],
        [b'"\\"'],
        [b'"\\n"', b'"\\""'],
        [b'"\n"'],
        [b'"\x00"'],
        [b'"\xff"'],
        [b'"\xed\xa0\x80"'],
        [b' "a"'],
        [b"null"],
        [b'"a","b"'],
        [b'"a"}{"b"'],
    ],
)
@pytest.mark.parametrize("optional", [False, True])
def test_texts_without_a_parser(parts: list[bytes], optional: bool) -> None:
    schema = Schema(Type.STRING, optional=optional, default="none" if optional else None)
    prefix, suffix = converter()._envelope_of(schema)
    messages = [prefix + part + suffix for part in [b'"x"', b'"yy"', b'""', *parts]]  # the first three are a chunk
    assert decoded_alike(Tolerant(converter()), messages) >= 3


@many
@given(st.lists(texts, min_size=1))
def test_texts_are_decoded_alike(column: list[str]) -> None:
    messages = [converter().from_connect_data("t", Schema(Type.STRING), text) for text in column]
    assert decoded_alike(converter(), messages) == len(messages)


@pytest.mark.parametrize("replace", ["true", "false"])
def test_null_in_place_of_a_default(replace: str) -> None:
    schema = Schema.struct({"a": Schema(Type.INT64, optional=True, default=5), "b": Schema(Type.STRING, optional=True)})
    made = converter({"replace.null.with.default": replace})
    prefix, suffix = made._envelope_of(schema)
    assert decoded_alike(made, [prefix + payload + suffix for payload in (b'{"a":1,"b":"x"}', b'{"a":null}', b"{}")]) == 3


@pytest.mark.parametrize("payload", [b'""', b'"AQ="', b'"A"', b"1", b"1.5", b"null", b'"fwEjRWeJq83vASNFZ4mrze8B"'])
def test_odd_decimals(payload: bytes) -> None:
    made = converter()
    prefix, suffix = made._envelope_of(decimal_schema(2))
    usual = prefix + b'"AQ=="' + suffix
    assert decoded_alike(Tolerant(made), [usual, usual, usual, prefix + payload + suffix]) == 3


def test_no_columnar_form() -> None:
    class Own(JsonConverter):
        pass

    assert Own().column_decoder("t") is None
    assert Own().column_encoder("t", Schema(Type.INT8)) is None
    assert converter().column_encoder("t", None) is None
    assert converter().column_encoder("t", Schema(Type.INT8, default="no number")) is None
    assert converter().column_encoder("t", decimal_schema(-1)) is None


def test_short_runs_and_many_schemas_are_left_to_the_row_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_runs, "SMALLEST_RUN", 4)
    made = converter()
    one, other = (made.from_connect_data("t", Schema(type_), 1) for type_ in (Type.INT8, Type.INT16))
    decode = made.column_decoder("t")
    assert decode is not None
    runs = decode(pa.array([one] * 3 + [other] * 4 + [one] * 2 + [None] + [b"x"] * 2 + [other] * 5, pa.binary()))
    assert [(start, end, column is not None) for start, end, column, _ in runs] == [
        (0, 3, False), (3, 7, True), (7, 9, False), (9, 10, True), (10, 12, False), (12, 17, True),
    ]  # fmt: skip
    runs = decode(pa.array([one, other] * 100, pa.binary()))
    assert [(start, end, column is not None) for start, end, column, _ in runs] == [(0, 200, False)]


def test_only_the_messages_around_an_unusual_one_are_left_to_the_row_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_runs.RunReader, "CHUNK", 10)
    made = converter()
    prefix, suffix = made._envelope_of(Schema(Type.INT64))
    messages: list[bytes | None] = [prefix + b"%d" % number + suffix for number in range(55)]
    messages[23] = prefix + b"1.0" + suffix
    decode = made.column_decoder("t")
    assert decode is not None
    found = [(start, end, column is not None) for start, end, column, _ in decode(pa.array(messages, pa.binary()))]
    assert found == [(0, 20, True), (20, 30, False), (30, 55, True)]
    assert decoded_alike(made, messages) == 45


def test_a_schema_with_unusual_payloads_is_tried_again_now_and_then() -> None:
    made = converter()
    prefix, suffix = made._envelope_of(Schema(Type.INT64))
    decode = made.column_decoder("t")
    assert decode is not None
    for _ in range(5):
        assert decode(pa.array([prefix + b"1.0" + suffix]))[0].column is None
    usual = pa.array([prefix + b"1" + suffix])
    assert [decode(usual)[0].column is not None for _ in range(5)] == [False, True, True, True, True]


# --- writing ---

any_floats = st.floats() | st.floats(0.001, 1e7) | st.integers(-(10**8), 10**8).map(float) | st.sampled_from([-0.0, 1e7, 1e-3])


@many
@given(given_columns, options, st.sampled_from(["true", "false"]))
def test_values_are_encoded_alike(data: tuple[Schema, list[Any]], config: dict[str, str], enable: str) -> None:
    schema, column = data
    found = encoded_alike(converter({**config, "schemas.enable": enable}), schema, column)
    if columnar(schema, column):
        assert found == len(column), "no columnar form where there should be one"


@many
@given(st.lists(any_floats, min_size=1), st.lists(any_floats.map(to_float32), min_size=1))
def test_floats_are_printed_as_java_does(doubles: list[float], floats: list[float]) -> None:
    for kind, column in ((Type.FLOAT64, doubles), (Type.FLOAT32, floats)):
        assert encoded_alike(converter(), Schema(kind, optional=True), [None, *column]) == len(column) + 1
        items = Schema.array(Schema(kind))
        assert encoded_alike(converter(), items, [column, [], column[:1]]) == 3


@many
@given(st.lists(st.none() | texts, min_size=1))
def test_texts_are_escaped_as_jackson_does(column: list[str | None]) -> None:
    schema = Schema.struct({"text": Schema(Type.STRING, optional=True, default="none")})
    rows = [Struct.of(schema, [text]) for text in column]
    for replace in ("true", "false"):
        assert encoded_alike(converter({"replace.null.with.default": replace}), schema, rows) == len(rows)


@pytest.mark.parametrize("unscaled", [2**63 - 1, 2**63, 2**64, 2**64 + 1, 2**65, 10**37, -1, -(2**63), -(2**64), -(2**64) + 1])
def test_decimals_at_the_edges_of_64_bits(unscaled: int) -> None:
    column = [Decimal(each).scaleb(-2, Context(prec=40)) for each in (0, unscaled, 128)]
    assert encoded_alike(converter(), decimal_schema(2), column) == len(column)


def test_nothing_to_encode() -> None:
    for schema in (Schema(Type.FLOAT64), Schema.struct({}), Schema.struct({"a": Schema.array(Schema(Type.STRING))})):
        assert encoded_alike(converter(), schema, []) == 0
        encode = converter().column_encoder("t", schema)
        assert encode is not None
        assert encode(pa.array([], arrow_type(schema))).to_pylist() == []


def test_required_values_that_are_null_are_left_to_the_row_form() -> None:
    encode = converter().column_encoder("t", Schema(Type.INT64))
    assert encode is not None
    with pytest.raises(NotColumnar):
        encode(pa.array([None], pa.int64()))
    with pytest.raises(NotColumnar):
        encode(pa.array([1], pa.int32()))
