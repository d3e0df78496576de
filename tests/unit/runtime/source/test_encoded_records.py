"""Records whose keys and values the task has encoded itself."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import ENCODED, SourceRecord, TaskConverters
from sluiceway.data import STRING_SCHEMA, Header
from support.engine import RunningTask
from support.engine_connectors import script
from unit.runtime.fake_clients import FakeProducer
from unit.runtime.source.test_worker_source_task import config, record, run_to_the_end, values, worker

_HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
_CAST = {"transforms": "to", "transforms_to_type": _HOIST, "transforms_to_field": "v"}
_HEADERS = (Header("h", "1", STRING_SCHEMA),)


def _encoded(key: bytes | None, value: bytes | None, **more: Any) -> SourceRecord:
    return SourceRecord({"p": 1}, {"position": 1}, "t", value, ENCODED, key, ENCODED, **more)


def test_encoded_keys_and_values_are_sent_unchanged_between_others() -> None:
    run_to_the_end([_encoded(b"\xffkey", b"\xfe"), record("b", 2), _encoded(None, None)])
    [(_, value, key, _), (_, other, _, _), (_, nothing, no_key, _)] = FakeProducer.made[-1].sent
    assert (key, value, other, nothing, no_key) == (b"\xffkey", b"\xfe", b"b", None, None)


def test_records_that_share_headers_all_have_them() -> None:
    other = (Header("h", "2", STRING_SCHEMA),)
    run_to_the_end([_encoded(None, b"1", headers=each) for each in (_HEADERS, _HEADERS, other, (), _HEADERS)])
    headers = [options.get("headers") for *_, options in FakeProducer.made[-1].sent]
    first = [("h", b"1")]
    assert headers == [first, first, [("h", b"2")], None, first]


def test_a_full_buffer_is_waited_for_and_no_header_lost() -> None:
    def begin(_task: Any) -> None:
        FakeProducer.made[-1].room = 1

    script("src", [_encoded(None, b"%d" % number, headers=_HEADERS) for number in range(3)], on_start=begin)
    with RunningTask(config(), worker(), bounded=True) as task:
        task.join()
    assert values() == [b"0", b"1", b"2"]
    assert all(options["headers"] == [("h", b"1")] for *_, options in FakeProducer.made[-1].sent)


@pytest.mark.parametrize(("more", "given"), [({}, True), (_CAST, False), ({"errors_tolerance": "all"}, False)])
def test_a_task_has_the_converters_only_if_nothing_else_needs_the_data(more: dict[str, str], given: bool) -> None:
    found: list[TaskConverters | None] = []
    script("src", on_start=lambda task: found.append(task.context.converters))
    with RunningTask(config(**more), worker(), bounded=True) as task:
        task.join()
    assert [each is not None for each in found] == [given]
