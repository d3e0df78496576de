from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Header, Schema, Struct
from sluiceway.errors import ConnectError, DataError
from sluiceway.runtime.transforms.chain_plan import JoinedSegment
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, TransformationError
from unit.runtime.chains import Broken, Closing, chain, run, shape, sink, values

HOIST = {"type": "HoistField$Value", "field": "f"}
EXTRACT = {"type": "ExtractField$Value", "field": "f"}
CAST = {"type": "Cast$Value", "spec": "int32"}
REPEAT = {"type": "unit.runtime.chains.Repeat"}
BROKEN = {"type": "unit.runtime.chains.Broken"}
TOMBSTONE = {"type": "RecordIsTombstone"}


def test_an_empty_chain_returns_the_same_batch_object() -> None:
    records = [sink(1)]
    assert TransformationChain[Any]()(records, lambda _record, error: pytest.fail(str(error))).records is records


@pytest.mark.parametrize("in_place", [False, True])
def test_transforms_apply_in_order(in_place: bool) -> None:
    made, failed = run(chain(HOIST, {"type": "HoistField$Value", "field": "g"}, in_place=in_place), sink(1), sink("x"))
    assert values(made.records) == [{"g": {"f": 1}}, {"g": {"f": "x"}}]
    assert (made.origins, made.failure, made.taken, failed) == (None, None, 2, [])


def test_a_chain_copies_records_unless_in_place() -> None:
    record = sink(1)
    (copied,) = run(chain(HOIST), record)[0].records
    assert (record.value, copied.value) == (1, {"f": 1})
    (same,) = run(chain(HOIST, in_place=True), record)[0].records
    assert same is record


def test_a_key_and_a_value_transform_share_a_segment() -> None:
    both = chain({"type": "HoistField$Key", "field": "k"}, HOIST)
    (record,) = run(both, sink("v", STRING_SCHEMA, key=7, key_schema=INT64_SCHEMA))[0].records
    assert isinstance(record.key, Struct)
    assert (record.key["k"], record.value["f"]) == (7, "v")
    assert (record.key_schema.field("k").schema, record.value_schema.field("f").schema) == (INT64_SCHEMA, STRING_SCHEMA)
    assert len(both._segments) == 1


def test_each_transform_applies_its_own_rule_to_a_null_from_the_one_before() -> None:
    schema = Schema.struct({"f": Schema(INT64_SCHEMA.type, optional=True)})
    made, failed = run(chain(EXTRACT, HOIST), sink(Struct(schema), schema), sink({"f": None}), sink(None), sink({"f": 1}))
    assert [record.value["f"] for record in made.records] == [None, None, None, 1]
    assert failed == []


def test_each_record_is_transformed_by_its_own_schema() -> None:
    records = [sink(1, INT64_SCHEMA), sink("2"), sink("3", STRING_SCHEMA), sink(4, INT64_SCHEMA)]
    made, _ = run(chain(CAST), *records)
    assert [(record.value, record.value_schema and record.value_schema.type.value) for record in made.records] == [
        (1, "int32"),
        (2, None),
        (3, "int32"),
        (4, "int32"),
    ]


def test_equal_schemas_are_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from sluiceway.transforms.hoist_field import HoistFieldValue

    asked: list[Schema | None] = []
    resolve = HoistFieldValue.resolve

    def counted(self: HoistFieldValue, schema: Schema | None) -> Any:
        asked.append(schema)
        return resolve(self, schema)

    monkeypatch.setattr(HoistFieldValue, "resolve", counted)
    made = chain(HOIST)
    for _ in range(2):
        run(made, *[sink(1, Schema(INT64_SCHEMA.type, name="n")) for _ in range(3)])
    assert len(asked) == 1


def test_origins_are_the_inputs_of_the_records_that_were_not_filtered() -> None:
    made, _ = run(chain({"type": "Filter", "predicate": "p"}, HOIST, p=TOMBSTONE), sink(None), sink(1), sink(None), sink(2))
    assert (values(made.records), made.origins) == ([{"f": 1}, {"f": 2}], [1, 3])


@pytest.mark.parametrize(("negate", "expected"), [("false", [None, {"f": 1}]), ("true", [{"f": None}, 1])])
def test_a_predicate_selects_the_records_of_a_transform(negate: str, expected: list[Any]) -> None:
    conditional = {**HOIST, "predicate": "p", "negate": negate}
    wrapped = [{"f": None}, 1] if negate == "false" else [None, {"f": 1}]
    assert values(run(chain(conditional, p=TOMBSTONE), sink(None), sink(1))[0].records) == wrapped != expected


def test_a_transform_may_return_several_records_for_one() -> None:
    made, _ = run(chain(REPEAT, HOIST), sink("2"), sink("0"), sink("1"))
    assert [record.value["f"] for record in made.records] == ["2.0", "2.1", "1.0"]
    assert made.origins == [0, 0, 2]


def test_a_failed_record_is_reported_with_stage_and_cause_and_skipped() -> None:
    made, failed = run(chain(HOIST, EXTRACT, CAST), sink("1"), sink("x"), sink("3"))
    assert (values(made.records), made.origins, made.taken) == ([1, 3], [0, 2], 3)
    ((record, error),) = failed
    assert (record.value, error.stage, error.alias) == ("x", 2, "t2")
    assert isinstance(error.__cause__, DataError)
    assert "was out of range" in str(error)


@pytest.mark.parametrize("in_place", [False, True])
def test_the_segment_that_fails_does_not_change_the_record(in_place: bool) -> None:
    renamed = {"type": "RegexRouter", "regex": ".*", "replacement": "n"}
    record = sink("x")
    run(chain(HOIST, EXTRACT, CAST, in_place=in_place), record)
    assert shape(record) == shape(sink("x"))
    _, failed = run(chain(HOIST, renamed, EXTRACT, CAST, in_place=in_place), sink("x"))
    assert failed[0][1].stage == 3


def test_a_failing_transform_is_called_once_for_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def apply(_self: Broken, record: Any) -> Any:
        asked.append(record.value)
        raise RuntimeError

    monkeypatch.setattr(Broken, "apply", apply)
    _, failed = run(chain({"type": "unit.runtime.chains.Broken"}), sink("a"), sink("b"))
    assert asked == ["a", "b"]
    assert [error.stage for _, error in failed] == [0, 0]


def test_an_error_raised_by_on_failure_ends_the_batch_before_the_record() -> None:
    def on_failure(_record: Any, error: TransformationError) -> None:
        raise ConnectError(f"enough: {error.stage}")

    made = chain(CAST)([sink("1"), sink("x"), sink("3")], on_failure)
    assert (values(made.records), made.taken) == ([1], 1)
    assert str(made.failure) == "enough: 0"


def test_any_exception_of_a_transform_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    broken = chain(BROKEN)
    _, failed = run(broken, sink(5))
    assert str(failed[0][1]) == "transformation t0: builtins.RuntimeError: cannot do 5"
    broken.close()
    assert "Closing transformation t0 failed" in caplog.text


def test_closing_closes_every_transform_and_predicate() -> None:
    Closing.closed = 0
    closing = {"type": "unit.runtime.chains.Closing"}
    chain({**closing, "predicate": "p"}, BROKEN, closing, p=closing).close()
    assert Closing.closed == 3


def test_the_cache_of_schemas_is_bounded() -> None:
    made = chain(HOIST, EXTRACT)
    for start in range(0, 3000, 500):
        schemas = [Schema(INT64_SCHEMA.type, name=f"s{number}") for number in range(start, start + 500)]
        assert len(run(made, *[sink(1, schema) for schema in schemas])[0].records) == 500
    segment = made._segments[0]
    assert isinstance(segment, JoinedSegment)
    assert len(segment._plans) <= 1000
    assert max(len(known) for known in segment._resolved) <= 1000


def test_copies_keep_the_headers() -> None:
    headers = (Header("h", 1, INT64_SCHEMA),)
    assert run(chain(HOIST), sink(1, headers=headers))[0].records[0].headers is headers
