"""Which batches are tried as columns, and how those that are not are counted and logged."""

from __future__ import annotations

import logging
import pickle
from collections import Counter

import pyarrow as pa
import pytest

from sluiceway.api import Column, ColumnBatch, NotColumnar, Refusal, RowFormReason, row_form
from sluiceway.columns.refused_values import in_field, refused_values
from sluiceway.connectors.file.sink import FileStreamSinkTask
from sluiceway.connectors.file.source import FileStreamSourceTask
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema
from sluiceway.runtime.columns import FEW_RECORDS, BatchForms, has_columnar_form
from sluiceway.storage.model import TaskId


class OwnPut(FileStreamSinkTask):
    def put(self, records: object) -> None: ...


class OwnPoll(FileStreamSourceTask):
    def poll(self) -> None: ...


def test_a_task_that_overrides_only_the_row_form_has_no_columnar_form() -> None:
    assert has_columnar_form(FileStreamSinkTask, "put_columns", "put")
    assert has_columnar_form(FileStreamSourceTask, "poll_columns", "poll")
    assert not has_columnar_form(OwnPut, "put_columns", "put")
    assert not has_columnar_form(OwnPoll, "poll_columns", "poll")


def test_columns_are_tried_less_and_less_while_they_fail() -> None:
    forms = BatchForms(TaskId("orders", 0), Counts())
    tried = []
    for batch in range(20):
        if forms.next():
            tried.append(batch)
            forms.failed()
    assert tried == [0, 2, 5, 10, 19]
    forms.columnar()
    forms.failed()
    assert [forms.next() for _ in range(3)] == [False, True, True]


class Counts:
    """Counts batches by reason, those that are columns under an empty one."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def columnar_batch(self) -> None:
        self.found[""] += 1

    def row_form_batch(self, reason: str) -> None:
        self.found[reason] += 1


def batch(value: Schema, key: Schema | None = None) -> ColumnBatch:
    return ColumnBatch(topic="t", partition=0, key=Column(key, None), value=Column(value, None), count=0)


VALUE = Refusal(RowFormReason.VALUE, "null in a required field", "price")


def test_each_batch_is_counted_and_each_reason_logged_once_for_each_topic_schema_and_field(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    counts = Counts()
    forms = BatchForms(TaskId("orders", 3), counts)
    orders = batch(Schema.struct([("price", INT32_SCHEMA)], name="Order"))
    for _ in range(3):
        forms.columnar()
        forms.rows(FEW_RECORDS, "t")
        forms.rows(VALUE._replace(text="another text"), "t", orders)
    assert counts.found == {"": 3, "few-records": 3, "value": 3}
    (line,) = caplog.messages
    assert line == (
        "Connector 'orders', task 3: records of topic t are handled one by one and not as columns (reason value, field price, "
        "value Schema{Order:STRUCT}): another text. Further such batches are only counted, in row-form-batches-total"
    )
    for refusal, topic, of in (
        (VALUE, "u", orders),
        (VALUE, "t", batch(STRING_SCHEMA)),
        (VALUE, "t", batch(orders.value.schema or STRING_SCHEMA, STRING_SCHEMA)),
        (VALUE._replace(field="amount"), "t", orders),
        (Refusal(RowFormReason.ERROR), "t", orders),
    ):
        before = len(caplog.messages)
        forms.rows(refusal, topic, of)
        forms.rows(refusal, topic, of)
        assert len(caplog.messages) == before + 1


def test_batches_that_are_not_tried_count_for_the_reason_of_the_last_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    counts = Counts()
    forms = BatchForms(TaskId("orders", 0), counts)
    forms.rows(None)
    forms.failed()
    forms.rows(VALUE, "t")
    forms.rows(None)
    assert counts.found == {"task": 1, "value": 2}
    assert len(caplog.messages) == 1
    forms.columnar()
    forms.rows(None)
    assert counts.found == {"": 1, "task": 2, "value": 2}


def test_what_can_never_be_columns_is_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    counts = Counts()
    forms = BatchForms(TaskId("orders", 0), counts, Refusal(RowFormReason.TASK, "no form"))
    assert not forms.next()
    forms.rows(None)
    assert counts.found == {"task": 1}
    assert not caplog.messages


def test_errors_of_the_row_form_are_reasons_and_not_columnar_keeps_its_own() -> None:
    with pytest.raises(NotColumnar, match="KeyError: 'a'") as raised, row_form():
        dict[str, str]()["a"]
    assert raised.value.reason is RowFormReason.ERROR
    with pytest.raises(NotColumnar) as raised, row_form():
        raise NotColumnar("many", RowFormReason.PARTS)
    assert raised.value.refusal == Refusal(RowFormReason.PARTS, "many")


def test_a_refusal_keeps_its_reason_and_field_when_it_is_pickled() -> None:
    error = NotColumnar("null", RowFormReason.SCHEMA, field="b").inside("a")
    assert pickle.loads(pickle.dumps(error)).refusal == Refusal(RowFormReason.SCHEMA, "null", "a.b")  # noqa: S301 (our own)


@pytest.mark.parametrize("error", [pa.ArrowInvalid, pa.ArrowCapacityError])
def test_values_that_arrow_refuses_name_their_field(error: type[Exception]) -> None:
    def refuse(_values: object) -> None:
        raise error("too large")

    with pytest.raises(NotColumnar, match="too large") as raised:
        in_field("a", in_field, "b", refuse, [1])
    assert raised.value.refusal == Refusal(RowFormReason.VALUE, "too large", "a.b")


@pytest.mark.parametrize(
    "error",
    [TypeError, KeyError, AttributeError, ValueError, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError],
)
def test_errors_of_a_program_are_no_reason(error: type[Exception]) -> None:
    def fail(_values: object) -> None:
        raise error("wrong")

    with pytest.raises(error, match="wrong"):
        in_field("a", fail, [1])
    with pytest.raises(error, match="wrong"), refused_values("values"):
        fail([1])
