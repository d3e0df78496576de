"""Encodes and decodes the records of the three internal topics, byte for byte as Connect does. No I/O.

Encoding is strict. Decoding logs and ignores what it cannot read, because one bad record must not keep every connector
from starting.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluiceway.api.records import Offset, Partition
from sluiceway.config.connector import TASK_CLASS
from sluiceway.config.connector_files import to_text
from sluiceway.errors import TRACE_BYTES, DataError, shortened
from sluiceway.java.hash_map import task_config_order
from sluiceway.java.numbers import whole_number
from sluiceway.storage.connect_json import dumps, loads
from sluiceway.storage.model import RestartRequest, State, Status, TargetState, TaskId

log = logging.getLogger(__name__)

KeyValue = tuple[bytes, "bytes | None"]
"""A record to write; a value of None is a tombstone."""

_CONNECTOR, _TASK, _COMMIT, _TARGET, _RESTART = "connector-", "task-", "commit-", "target-state-", "restart-connector-"
_FENCING = "tasks-fencing-"
_RESTART_TASK = "\x1f"  # separates a connector's name from a task's number
_PLACED = "\x1fapplication"  # follows a connector's name
_STATUS_CONNECTOR, _STATUS_TASK, _STATUS_TOPIC, _TOPIC_CONNECTOR = (
    "status-connector-",
    "status-task-",
    "status-topic-",
    ":connector-",
)
HOST_PREFIX = "sluiceway-host-"
OURS = [("writer", b"sluiceway")]
"""Headers of our records in the status topic. Kafka Connect's have none."""
"""Start of the keys of the status topic that hold no status: a driver and its task hosts talk through their records."""

_LOGGER = "logger-cluster-"
# Records that only Connect's workers use.
_IGNORED = ("session-key",)
_STATE_BEFORE_3_5 = {TargetState.STOPPED: TargetState.PAUSED}  # workers before 3.5 do not have STOPPED
_PRIMITIVES = (str, bytes, bool, int, float, type(None))


# Config topic: encoding.


def encode_connector(name: str, config: Mapping[str, str] | None) -> KeyValue:
    """Encode a connector's config in the given order, adding ``name`` at the end if it is missing. None is a tombstone."""
    properties = None if config is None else {**config, "name": config.get("name", name)}
    return _CONNECTOR.encode() + name.encode(), None if properties is None else dumps({"properties": properties})


def encode_task(task: TaskId, config: Mapping[str, str]) -> KeyValue:
    """Encode a task's config, given in the order of the connector's config, in the order of Java's HashMap."""
    return f"{_TASK}{task}".encode(), dumps({"properties": task_config_order(config, TASK_CLASS)})


def encode_commit(name: str, tasks: int) -> KeyValue:
    """Encode the commit record that makes the preceding task configs effective."""
    return f"{_COMMIT}{name}".encode(), dumps({"tasks": tasks})


def encode_task_count(name: str, tasks: int) -> KeyValue:
    """Encode the record that all earlier tasks were fenced and ``tasks`` tasks may use transactional ids (KIP-618)."""
    return f"{_FENCING}{name}".encode(), dumps({"task-count": tasks})


def encode_target_state(name: str, state: TargetState | None) -> KeyValue:
    """Encode a connector's target state. None is a tombstone."""
    key = f"{_TARGET}{name}".encode()
    if state is None:
        return key, None
    return key, dumps({"state": _STATE_BEFORE_3_5.get(state, state).value, "state.v2": state.value})


def encode_restart(request: RestartRequest) -> KeyValue:
    """Encode a restart request.

    Connect has no record for the restart of a single task, so its workers must ignore ours. They read it as the restart of a
    connector whose name contains a control character. Such a connector cannot exist, so they do nothing. A key with an unknown
    prefix would make each worker log an error at each start.
    """
    task = "" if request.task is None else f"{_RESTART_TASK}{request.task}"
    return (
        f"{_RESTART}{request.connector}{task}".encode(),
        dumps({"include-tasks": request.include_tasks, "only-failed": request.only_failed}),
    )


def encode_placed(name: str, application: str | None) -> KeyValue:
    """Encode which of the numbered applications of its name runs a connector. None is a tombstone.

    Connect has no such record. Its workers ignore this one as they do the restart of a single task.
    """
    value = None if application is None else dumps({"application": application, "include-tasks": False, "only-failed": False})
    return f"{_RESTART}{name}{_PLACED}".encode(), value


def encode_logger_level(namespace: str, level: str) -> KeyValue:
    """Encode a log level for every worker of the cluster."""
    return f"{_LOGGER}{namespace}".encode(), dumps({"level": level})


# Config topic: decoding.


@dataclass(frozen=True, slots=True)
class ConnectorRecord:
    name: str
    config: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class TaskRecord:
    task: TaskId
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CommitRecord:
    name: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TaskCountRecord:
    name: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TargetStateRecord:
    name: str
    state: TargetState | None


@dataclass(frozen=True, slots=True)
class LoggerRecord:
    namespace: str
    level: str


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    name: str
    application: str | None


ConfigRecord = (
    ConnectorRecord
    | TaskRecord
    | CommitRecord
    | TaskCountRecord
    | TargetStateRecord
    | LoggerRecord
    | PlacedRecord
    | RestartRequest
)


def decode_config_record(key: bytes | None, value: bytes | None) -> ConfigRecord | None:
    """Decode a record of the config topic. Return None for records that are ignored or cannot be read."""
    text = _key_text(key)
    if text is None or text.startswith(_IGNORED):
        return None
    try:
        return _decode_config(text, value)
    except DataError as error:
        log.warning("Ignoring the record %s of the config topic: %s", text, error)
        return None


def _decode_config(key: str, value: bytes | None) -> ConfigRecord | None:
    if key.startswith(_CONNECTOR):
        return ConnectorRecord(key[len(_CONNECTOR) :], None if value is None else _properties(value))
    if key.startswith(_TARGET):
        return TargetStateRecord(key[len(_TARGET) :], None if value is None else _target_state(value))
    if key.startswith(_FENCING):
        return TaskCountRecord(key[len(_FENCING) :], _whole_number(_object(value), "task-count"))
    if key.startswith(_LOGGER):
        level = _object(value).get("level")
        return LoggerRecord(key[len(_LOGGER) :], level) if isinstance(level, str) else None
    if key.startswith(_TASK):
        return TaskRecord(_task_id(key[len(_TASK) :]), _properties(value))
    if key.startswith(_COMMIT):
        return CommitRecord(key[len(_COMMIT) :], _whole_number(_object(value), "tasks"))
    if key.startswith(_RESTART) and key.endswith(_PLACED):
        application = None if value is None else _object(value).get("application")
        return PlacedRecord(key[len(_RESTART) : -len(_PLACED)], application if isinstance(application, str) else None)
    if key.startswith(_RESTART):
        return _restart(key[len(_RESTART) :], _object(value))
    log.debug("Ignoring a record with an unknown key on the config topic: %s", key)
    return None


def _restart(name: str, fields: Mapping[str, object]) -> RestartRequest:
    connector, separator, task = name.rpartition(_RESTART_TASK)
    if separator and (number := whole_number(task)) is not None:
        return RestartRequest(connector, task=number)
    return RestartRequest(name, fields.get("only-failed") is True, fields.get("include-tasks") is True)


def _target_state(value: bytes) -> TargetState:
    fields = _object(value)
    state = fields.get("state.v2")
    if not isinstance(state, str):
        state = fields.get("state")
    try:
        return TargetState(state)
    except ValueError:
        raise DataError(f"{state!r} is not a target state") from None


def _properties(value: bytes | None) -> dict[str, str]:
    properties = _object(value).get("properties")
    if not isinstance(properties, dict):
        raise DataError("its value has no properties")
    return {key: to_text(each) for key, each in properties.items() if each is not None}


# Status topic.


@dataclass(frozen=True, slots=True)
class ConnectorStatusRecord:
    connector: str
    status: Status | None


@dataclass(frozen=True, slots=True)
class TaskStatusRecord:
    task: TaskId
    status: Status | None


@dataclass(frozen=True, slots=True)
class TopicStatusRecord:
    """A connector's use of a topic. ``active`` is False for a tombstone."""

    connector: str
    topic: str
    active: bool


StatusRecord = ConnectorStatusRecord | TaskStatusRecord | TopicStatusRecord


def encode_connector_status(connector: str, status: Status | None) -> KeyValue:
    """Encode a connector's status. None is a tombstone."""
    return f"{_STATUS_CONNECTOR}{connector}".encode(), None if status is None else _status(status)


def encode_task_status(task: TaskId, status: Status | None) -> KeyValue:
    """Encode a task's status. None is a tombstone."""
    return f"{_STATUS_TASK}{task}".encode(), None if status is None else _status(status)


def encode_topic_status(connector: str, topic: str, task: int, discovered: int) -> KeyValue:
    """Encode that a connector uses a topic. ``discovered`` is in milliseconds since the epoch."""
    fields = {"name": topic, "connector": connector, "task": task, "discoverTimestamp": discovered}
    return topic_status_key(connector, topic), dumps({"topic": fields})


def topic_status_key(connector: str, topic: str) -> bytes:
    """Return the key of the record that a connector uses a topic."""
    return f"{_STATUS_TOPIC}{topic}{_TOPIC_CONNECTOR}{connector}".encode()


def _status(status: Status) -> bytes:
    return dumps(
        {
            "state": status.state.value,
            "trace": status.trace and shortened(status.trace, TRACE_BYTES),
            "worker_id": status.worker_id,
            "generation": status.generation,
            "version": status.version,
        }
    )


def decode_status_record(
    key: bytes | None, value: bytes | None, timestamp: int = 0, headers: Sequence[object] = OURS
) -> StatusRecord | None:
    """Decode a record of the status topic, or return None if it cannot be read.

    ``timestamp`` and ``headers`` are the Kafka record's.
    """
    of_connect = not headers
    text = _key_text(key)
    if text is None or text.startswith(HOST_PREFIX):
        return None
    try:
        if text.startswith(_STATUS_CONNECTOR):
            return ConnectorStatusRecord(text[len(_STATUS_CONNECTOR) :], _decode_status(value, timestamp, of_connect))
        if text.startswith(_STATUS_TASK):
            return TaskStatusRecord(_task_id(text[len(_STATUS_TASK) :]), _decode_status(value, timestamp, of_connect))
        if text.startswith(_STATUS_TOPIC):
            topic, separator, connector = text[len(_STATUS_TOPIC) :].partition(_TOPIC_CONNECTOR)
            if topic and separator and connector:
                return TopicStatusRecord(connector, topic, active=value is not None)
        raise DataError("its key has an unknown prefix")
    except DataError as error:
        log.warning("Ignoring the record %s of the status topic: %s", text, error)
        return None


def _decode_status(value: bytes | None, timestamp: int, of_connect: bool) -> Status | None:
    if value is None:
        return None
    fields = _object(value)
    trace, version = fields.get("trace"), fields.get("version")
    try:
        state = State(fields.get("state"))
    except ValueError:
        raise DataError(f"{fields.get('state')!r} is not a state") from None
    return Status(
        state=state,
        worker_id=str(fields.get("worker_id", "")),
        generation=_whole_number(fields, "generation"),
        trace=trace if isinstance(trace, str) else None,
        version=version if isinstance(version, str) else None,
        timestamp=timestamp,
        of_connect=of_connect,
    )


# Offsets topic. Standalone mode's offsets file has the same keys and values.


def encode_offset(connector: str, partition: Partition, offset: Offset | None) -> KeyValue:
    """Encode a source offset. None is a tombstone. Raises DataError for values that are not primitive, as Connect does."""
    return encode_offset_key(connector, partition), None if offset is None else dumps(_primitive(offset))


def encode_offset_key(connector: str, partition: Partition) -> bytes:
    """Encode a connector's source partition. Raises DataError for values that are not primitive."""
    return dumps([connector, _primitive(partition)])


def decode_offset_key(key: bytes | None) -> tuple[str, Partition] | None:
    """Decode connector and partition, or return None if the key cannot be read."""
    try:
        parsed = loads(key) if key is not None else None
    except DataError:
        parsed = None
    if isinstance(parsed, list) and len(parsed) == 2 and isinstance(parsed[0], str) and isinstance(parsed[1], dict):
        return parsed[0], parsed[1]
    log.warning("Ignoring an offset whose key is not [connector, partition]: %.200r", key)
    return None


def decode_offset(value: bytes | None) -> Offset | None:
    """Decode an offset, or return None for a tombstone.

    Raises DataError for a value that cannot be read: as "no offset" it would start the source from the beginning.
    """
    return None if value is None else _object(value)


def _primitive(fields: Mapping[str, object]) -> Mapping[str, object]:
    for name, value in fields.items():
        if not isinstance(value, _PRIMITIVES):
            raise DataError(
                f"Source partitions and offsets may only contain primitive types as values, but field {name} contains a "
                f"{type(value).__name__}."
            )
    return fields


# All topics.


def _key_text(key: bytes | None) -> str | None:
    try:
        return key.decode() if key is not None else None
    except UnicodeDecodeError:
        log.warning("Ignoring a record whose key is not UTF-8: %.200r", key)
        return None


def _object(value: bytes | None) -> dict[str, object]:
    parsed = loads(value) if value is not None else None
    if not isinstance(parsed, dict):
        raise DataError(f"its value is not a JSON object but {type(parsed).__name__}")
    return parsed


def _whole_number(fields: Mapping[str, object], name: str) -> int:
    number = fields.get(name)
    if not isinstance(number, int) or isinstance(number, bool):
        raise DataError(f"{name} is {number!r}, not a whole number")
    return number


def _task_id(text: str) -> TaskId:
    connector, separator, digits = text.rpartition("-")
    number = whole_number(digits)
    if not separator or number is None:
        raise DataError("its key does not end in a task number")
    return TaskId(connector, number)
