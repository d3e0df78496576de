from __future__ import annotations

import json
import logging

import pytest

from sluiceway.config.validators import NonEmptyStringWithoutControlChars
from sluiceway.errors import ConfigError, DataError
from sluiceway.storage import codec
from sluiceway.storage.codec import (
    CommitRecord,
    ConnectorRecord,
    ConnectorStatusRecord,
    TargetStateRecord,
    TaskRecord,
    TaskStatusRecord,
    TopicStatusRecord,
    decode_config_record,
    decode_status_record,
    encode_restart,
)
from sluiceway.storage.model import RestartRequest, State, Status, TargetState, TaskId

RESTART_PREFIX = b"restart-connector-"
RUNNING = Status(State.RUNNING, "10.0.0.1:8083", 3, version="4.3.0")


def test_a_connectors_name_is_appended_last() -> None:
    key, value = codec.encode_connector("a", {"z": "1", "b": "2"})
    assert (key, value) == (b"connector-a", b'{"properties":{"z":"1","b":"2","name":"a"}}')


def test_a_connectors_name_stays_where_the_request_has_it() -> None:
    assert codec.encode_connector("a", {"name": "a", "b": "2"})[1] == b'{"properties":{"name":"a","b":"2"}}'


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (TargetState.STARTED, b'{"state":"STARTED","state.v2":"STARTED"}'),
        (TargetState.PAUSED, b'{"state":"PAUSED","state.v2":"PAUSED"}'),
        (TargetState.STOPPED, b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (None, None),
    ],
)
def test_target_states_are_written_for_old_and_new_workers(state: TargetState | None, value: bytes | None) -> None:
    assert codec.encode_target_state("a", state) == (b"target-state-a", value)


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (b'{"state":"PAUSED","state.v2":"STOPPED"}', TargetState.STOPPED),
        (b'{"state":"PAUSED"}', TargetState.PAUSED),
        (b'{"state":"PAUSED","state.v2":7}', TargetState.PAUSED),
        (None, None),
    ],
)
def test_the_newer_form_of_a_target_state_wins(value: bytes | None, state: TargetState | None) -> None:
    assert decode_config_record(b"target-state-a", value) == TargetStateRecord("a", state)


def test_config_records_are_read_back_as_written() -> None:
    config = {"x": "ü😀\n", "name": "a-b"}
    request = RestartRequest("a-b", only_failed=True, include_tasks=False)
    assert decode_config_record(*codec.encode_connector("a-b", config)) == ConnectorRecord("a-b", config)
    assert decode_config_record(*codec.encode_connector("a-b", None)) == ConnectorRecord("a-b", None)
    assert decode_config_record(*codec.encode_task(TaskId("a-b", 12), config)) == TaskRecord(TaskId("a-b", 12), config)
    assert decode_config_record(*codec.encode_commit("a-b", 3)) == CommitRecord("a-b", 3)
    assert decode_config_record(*codec.encode_restart(request)) == request
    assert codec.encode_task_count("a-b", 2) == (b"tasks-fencing-a-b", b'{"task-count":2}')
    assert decode_config_record(*codec.encode_task_count("a-b", 2)) == codec.TaskCountRecord("a-b", 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff\xfe", b"{}"),
        (b"connector-a", b"not json"),
        (b"connector-a", b"[]"),
        (b"connector-a", b'{"properties":[]}'),
        (b"task-a", b'{"properties":{}}'),
        (b"task-a-x", b'{"properties":{}}'),
        (b"task-a-0", None),
        (b"commit-a", None),
        (b"commit-a", b'{"tasks":"1"}'),
        (b"commit-a", b'{"tasks":true}'),
        (b"tasks-fencing-a", None),
        (b"tasks-fencing-a", b'{"task-count":"1"}'),
        (b"target-state-a", b'{"state":"RUNNING"}'),
        (b"target-state-a", b"{}"),
        (b"restart-connector-a", None),
        (b"restart-connector-a", b"[1]"),
        (b"something-new-a", b"{}"),
    ],
)
def test_unreadable_records_on_the_config_topic_are_ignored(key: bytes | None, value: bytes | None) -> None:
    assert decode_config_record(key, value) is None


@pytest.mark.parametrize("key", [b"session-key", b"logger-cluster-org.apache"])
def test_records_of_connects_workers_are_ignored_without_a_warning(key: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert decode_config_record(key, b'{"task-count":1}') is None
    assert not caplog.records


def test_unreadable_records_are_logged_with_their_key(caplog: pytest.LogCaptureFixture) -> None:
    decode_config_record(b"connector-a", b"secret")
    assert "connector-a" in caplog.text
    assert "secret" not in caplog.text


def test_null_properties_are_dropped_and_numbers_become_text() -> None:
    record = decode_config_record(b"connector-a", b'{"properties":{"a":null,"b":1,"c":true}}')
    assert record == ConnectorRecord("a", {"b": "1", "c": "true"})


def test_status_records_have_connects_fields_in_connects_order() -> None:
    value = b'{"state":"RUNNING","trace":null,"worker_id":"10.0.0.1:8083","generation":3,"version":"4.3.0"}'
    assert codec.encode_connector_status("a", RUNNING) == (b"status-connector-a", value)
    assert codec.encode_task_status(TaskId("a", 1), RUNNING) == (b"status-task-a-1", value)
    assert codec.encode_topic_status("a", "t", 0, 5) == (
        b"status-topic-t:connector-a",
        b'{"topic":{"name":"t","connector":"a","task":0,"discoverTimestamp":5}}',
    )


def test_status_records_are_read_back_with_the_records_timestamp() -> None:
    failed = Status(State.FAILED, "w", 1, trace="boom\n\tat x")
    record = decode_status_record(*codec.encode_connector_status("a-b", failed), 1234)
    assert record == ConnectorStatusRecord("a-b", failed)
    assert isinstance(record, ConnectorStatusRecord)
    assert record.status is not None
    assert record.status.timestamp == 1234
    assert not record.status.of_connect
    assert decode_status_record(*codec.encode_task_status(TaskId("a-b", 2), failed)) == TaskStatusRecord(TaskId("a-b", 2), failed)
    assert decode_status_record(b"status-task-a-2", None) == TaskStatusRecord(TaskId("a", 2), None)
    assert decode_status_record(b"status-topic-t:connector-a:b", b"{}") == TopicStatusRecord("a:b", "t", active=True)
    assert decode_status_record(b"status-topic-t:connector-a", None) == TopicStatusRecord("a", "t", active=False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"status-connector-a", b"{}"),
        (b"status-connector-a", b'{"state":"WELL","generation":1}'),
        (b"status-connector-a", b'{"state":"RUNNING","generation":"1"}'),
        (b"status-task-a", b'{"state":"RUNNING","generation":1}'),
        (b"status-topic-:connector-a", b"{}"),
        (b"status-topic-t:connector-", b"{}"),
        (b"status-topic-t", b"{}"),
        (b"other", b"{}"),
    ],
)
def test_unreadable_records_on_the_status_topic_are_ignored(key: bytes | None, value: bytes | None) -> None:
    assert decode_status_record(key, value) is None


def test_offset_keys_keep_the_authors_order() -> None:
    assert codec.encode_offset("s", {"b": 1, "a": "x"}, {"position": 12}) == (b'["s",{"b":1,"a":"x"}]', b'{"position":12}')
    assert codec.encode_offset("s", {"filename": None}, None) == (b'["s",{"filename":null}]', None)


def test_offset_keys_are_read_back() -> None:
    assert codec.decode_offset_key(b'["s",{"b":1,"a":"x"}]') == ("s", {"b": 1, "a": "x"})


@pytest.mark.parametrize("key", [None, b"x", b"[]", b'["s"]', b"[1,{}]", b'["s",[]]', b'["s",{},1]', b"{}"])
def test_unreadable_offset_keys_are_ignored(key: bytes | None) -> None:
    assert codec.decode_offset_key(key) is None


def test_offsets_may_only_hold_primitive_values() -> None:
    with pytest.raises(DataError, match="field a contains a list"):
        codec.encode_offset("s", {"p": 1}, {"a": [1]})
    with pytest.raises(DataError, match="field p contains a dict"):
        codec.encode_offset("s", {"p": {}}, {"a": 1})


def test_an_unreadable_offset_is_an_error() -> None:
    assert codec.decode_offset(None) is None
    with pytest.raises(DataError):
        codec.decode_offset(b"12")


@pytest.mark.parametrize("name", ["a", "a-1", "ä b", "tasks/3"])
@pytest.mark.parametrize("task", [0, 17])
def test_a_restart_request_for_one_task_is_decoded_as_written(name: str, task: int) -> None:
    request = RestartRequest(name, task=task)
    assert decode_config_record(*encode_restart(request)) == request


def test_a_connect_worker_reads_a_request_for_one_task_as_an_impossible_connector() -> None:
    key, _ = encode_restart(RestartRequest("a", task=3))
    assert key.startswith(RESTART_PREFIX)
    with pytest.raises(ConfigError, match="control"):
        NonEmptyStringWithoutControlChars()("name", key.removeprefix(RESTART_PREFIX).decode())


def test_a_restart_of_a_connector_has_connects_bytes() -> None:
    assert encode_restart(RestartRequest("a")) == (RESTART_PREFIX + b"a", b'{"include-tasks":false,"only-failed":false}')


def test_the_application_of_a_connector_is_a_record_that_connects_workers_ignore_and_no_restart() -> None:
    key, value = codec.encode_placed("a", "small-2")
    assert key.startswith(RESTART_PREFIX)
    assert b"\x1f" in key, "no connector has such a name"
    assert json.loads(value or b"") == {"application": "small-2", "include-tasks": False, "only-failed": False}
    assert decode_config_record(key, value) == codec.PlacedRecord("a", "small-2")
    assert decode_config_record(*codec.encode_placed("a", None)) == codec.PlacedRecord("a", None)
