"""Reads and writes the JSON bodies of Connect's REST API."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from fastapi.responses import Response

from sluiceway.config.signal_topic import Signal
from sluiceway.discovery import UNDEFINED_VERSION
from sluiceway.errors import BadRequestError
from sluiceway.herder import ConnectorInfo, ConnectorStatus, TaskInfo
from sluiceway.herder.dead_letters import DeadLetterList, ReadableBytes, ReadableRecord
from sluiceway.herder.loggers import LoggerLevel
from sluiceway.herder.offset_edits import OffsetEdit
from sluiceway.herder.offset_targets import FoundOffset
from sluiceway.herder.validation import InstalledPlugin, PluginImplementation
from sluiceway.java.numbers import whole_number
from sluiceway.kafka.dead_letter_topic import DeadLetterPosition
from sluiceway.storage.history import ChangeKind, HistoryChange
from sluiceway.storage.intervals import IntervalEntry
from sluiceway.storage.model import INITIAL_STATES, Status, TargetState, TaskId

_MOST_KEYS = 10_000
_REQUEST_FIELDS = ("name", "config", "initial_state")


class UnreadableBodyError(BadRequestError):
    """The request body does not have the form that the endpoint requires. (Connect responds with 500 and Java class names.)"""


class _NotJsonError(ValueError):
    """A number that Python's parser accepts but JSON does not allow."""


_WRONG: dict[type[Exception], str] = {
    UnicodeDecodeError: "it is not UTF-8",
    UnicodeEncodeError: "it contains an unpaired surrogate",
    _NotJsonError: "it contains a number that JSON does not allow",
}


class JsonResponse(Response):
    """A JSON response. None becomes an empty body."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return b"" if content is None else orjson.dumps(content)


def info_json(info: ConnectorInfo) -> dict[str, Any]:
    return {"name": info.name, "config": info.config, "tasks": [task_id_json(task) for task in info.tasks], "type": info.type}


def task_id_json(task: TaskId) -> dict[str, Any]:
    return {"connector": task.connector, "task": task.task}


def task_info_json(task: TaskInfo) -> dict[str, Any]:
    return {"id": task_id_json(task.id), "config": task.config}


def connector_status_json(status: ConnectorStatus) -> dict[str, Any]:
    return {
        "name": status.name,
        "connector": status_json(status.connector),
        "tasks": [{"id": number, **status_json(task)} for number, task in status.tasks.items()],
        "type": status.type,
    }


def status_json(status: Status) -> dict[str, Any]:
    """Return a status; leave out an absent trace, but not an absent version, as Connect does."""
    fields = {"state": status.state.value, "worker_id": status.worker_id, "version": status.version}
    return fields if status.trace is None else {**fields, "trace": status.trace}


def offsets_json(offsets: Iterable[OffsetEdit], elsewhere: str = "") -> dict[str, Any]:
    """Return the body of offsets. ``elsewhere``, which Kafka Connect has not, says where the position is if not in them."""
    found: dict[str, Any] = {"offsets": [{"partition": partition, "offset": offset} for partition, offset in offsets]}
    return {**found, "position": elsewhere} if elsewhere else found


def found_offsets_json(offsets: Iterable[FoundOffset]) -> dict[str, Any]:
    return {"offsets": [each._asdict() for each in offsets]}


def history_json(name: str, changes: Iterable[HistoryChange]) -> dict[str, Any]:
    return {"name": name, "history": [_change_json(change) for change in changes]}


def intervals_json(name: str, entries: Iterable[IntervalEntry]) -> dict[str, Any]:
    """Return the body of intervals; times in milliseconds since the epoch."""
    return {"name": name, "intervals": [_interval_json(entry) for entry in entries]}


def _interval_json(entry: IntervalEntry) -> dict[str, Any]:
    fields = {
        "start": entry.interval.start,
        "end": entry.interval.end,
        "state": entry.state.value,
        "attempt": entry.attempt,
        "records": entry.records,
        "late": entry.late,
        "at_least": entry.at_least,
        "rerun": entry.rerun > 0,
        "runs": list(entry.runs),
        "updated": entry.updated,
    }
    return fields if entry.error is None else {**fields, "error": entry.error}


def _change_json(change: HistoryChange) -> dict[str, Any]:
    """Return a change; leave out what does not concern its kind."""
    origin = change.origin
    fields: dict[str, Any] = {"version": change.version, "timestamp": change.timestamp, "change": change.what}
    fields |= {"user": origin.user, "authenticated": origin.authenticated, "address": origin.address}
    fields |= {"client": origin.client, "note": origin.note}
    if change.kind is ChangeKind.CONFIG:
        edits = [{"key": key, "before": before, "after": after} for key, (before, after) in change.edits.items()]
        fields |= {"config": change.config, "edits": edits}
    if change.state is not None:
        fields["state"] = dict(zip(("before", "after"), change.state, strict=True))
    if change.kind is ChangeKind.OFFSETS:
        offsets = [{"partition": partition, "before": before, "after": after} for partition, before, after in change.offsets]
        fields |= {"offsets": offsets, "partitions": change.partitions}
    return fields


def dead_letters_json(found: DeadLetterList) -> dict[str, Any]:
    return {"topic": found.topic, "count": found.count, "records": [_dead_letter_json(each) for each in found.records]}


def _dead_letter_json(found: ReadableRecord) -> dict[str, Any]:
    record = found.record
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "replayed": record.replayed,
        "key": _bytes_json(found.key),
        "value": _bytes_json(found.value),
        "headers": [{"key": key, "value": _bytes_json(value)} for key, value in found.headers],
    }


def _bytes_json(found: ReadableBytes | None) -> dict[str, str] | None:
    return None if found is None else {"text": found.text, "format": found.format}


def logger_json(logger: LoggerLevel) -> dict[str, Any]:
    return {"level": logger.level, "last_modified": logger.last_modified}


def plugin_json(plugin: InstalledPlugin) -> dict[str, str]:
    """Return a plugin; leave out what is not known, such as the version of a Java plugin that has none, as Connect does."""
    version = None if plugin.version == UNDEFINED_VERSION else plugin.version
    more = {"version": version, "used": plugin.used}
    return {"class": plugin.name, "type": plugin.type} | {key: value for key, value in more.items() if value is not None}


def implementation_json(plugin: PluginImplementation) -> dict[str, str | None]:
    fields = {"class": plugin.name, "language": plugin.language, "version": plugin.version, "location": plugin.location}
    return {**fields, "note": plugin.note}


def read_config(body: bytes) -> dict[str, str | None]:
    """Return the connector config, or the changes of a ``PATCH``, in a body. Raises UnreadableBodyError."""
    return _texts(_read_object(body))


def read_level(body: bytes) -> str:
    """Return the log level in a body. Raises UnreadableBodyError, or BadRequestError if it has none."""
    level = _read_object(body).get("level")
    if isinstance(level, (dict, list)):
        raise UnreadableBodyError('"level" must be a string.')
    if level is None:
        raise BadRequestError("Desired 'level' parameter was not specified in request.")
    return _text(level)


def read_version(body: bytes) -> int:
    """Return the version in a body. Raises UnreadableBodyError."""
    version = _read_object(body).get("version")
    number = whole_number(version) if isinstance(version, str) else None
    if number is None:
        raise UnreadableBodyError('"version" must be the number of a version in the connector\'s history.')
    return number


def read_offsets(body: bytes) -> list[OffsetEdit]:
    """Return the partitions and offsets of a ``PATCH .../offsets``. Raises UnreadableBodyError."""
    request = _parsed(body, numbers_as_text=False)
    if not isinstance(request, dict) or request.keys() - {"offsets"}:
        raise UnreadableBodyError('The body must be a JSON object with the single field "offsets".')
    offsets = request.get("offsets")
    if not isinstance(offsets, list | None):
        raise UnreadableBodyError('"offsets" must be a list.')
    return [_edit(each) for each in offsets or ()]


def _edit(entry: object) -> OffsetEdit:
    if not isinstance(entry, dict) or entry.keys() - {"partition", "offset"}:
        raise UnreadableBodyError('Each of "offsets" must be a JSON object with "partition" and "offset".')
    partition, offset = entry.get("partition"), entry.get("offset")
    if not isinstance(partition, dict | None) or not isinstance(offset, dict | None):
        raise UnreadableBodyError('"partition" and "offset" must be JSON objects, or null.')
    return partition, offset


def read_replay(body: bytes) -> tuple[list[DeadLetterPosition], str | None]:
    """Return the positions of dead letter queue records to replay, and the topic to send them to. Raises UnreadableBodyError."""
    request = _parsed(body, numbers_as_text=False)
    records = request.get("records") if isinstance(request, dict) else None
    if not isinstance(request, dict) or request.keys() - {"records", "topic"} or not isinstance(records, list) or not records:
        raise UnreadableBodyError(
            'The body must be a JSON object with "records", a list that is not empty, and optionally "topic".'
        )
    topic = request.get("topic")
    if not isinstance(topic, str | None):
        raise UnreadableBodyError('"topic" must be a string, or null.')
    return [_position(each) for each in records], topic or None


def _position(record: object) -> DeadLetterPosition:
    fields = [record.get(name) for name in DeadLetterPosition._fields] if isinstance(record, dict) else []
    numbers = [each for each in fields if type(each) is int and each >= 0]
    if len(numbers) != len(DeadLetterPosition._fields):
        raise UnreadableBodyError('Each of "records" must be a JSON object with the numbers "partition" and "offset".')
    return DeadLetterPosition(*numbers)


def read_signal(body: bytes) -> Signal:
    """Return the signal in a body; without an id it gets a new one. Raises UnreadableBodyError."""
    request = _parsed(body, numbers_as_text=False)
    if not isinstance(request, dict) or request.keys() - set(Signal._fields):
        raise UnreadableBodyError('The body must be a JSON object with "type", and optionally "id" and "data".')
    type_, signal_id, data = request.get("type"), request.get("id"), request.get("data")
    if not isinstance(type_, str) or not type_:
        raise UnreadableBodyError('"type" must be the type of a signal, such as "execute-snapshot".')
    if not isinstance(signal_id, str | None):
        raise UnreadableBodyError('"id" must be a string, or null.')
    if not isinstance(data, dict | None):
        raise UnreadableBodyError('"data" must be a JSON object, or null.')
    return Signal(signal_id or str(uuid.uuid4()), type_, data or {})


def read_create_request(body: bytes) -> tuple[str, dict[str, str | None], TargetState | None]:
    """Return name, config and initial state of a ``POST /connectors``. Raises as ``read_config`` does."""
    request = _read_object(body)
    unknown = [field for field in request if field not in _REQUEST_FIELDS]
    if unknown:
        raise UnreadableBodyError(f"Unknown field {unknown[0]!r}. A new connector has {', '.join(_REQUEST_FIELDS)}.")
    config = request.get("config")
    if not isinstance(config, dict):
        raise UnreadableBodyError('A new connector needs "config", a JSON object.')
    name, state = request.get("name"), request.get("initial_state")
    if isinstance(name, (dict, list)):
        raise UnreadableBodyError("The name of a connector must be a string.")
    return "" if name is None else _text(name), _texts(config), _initial_state(state)


def _initial_state(state: object) -> TargetState | None:
    if state is None:
        return None
    target = INITIAL_STATES.get(str(state).upper())
    if target is None:
        raise UnreadableBodyError(f"Unknown initial_state {state!r}. Valid values are {', '.join(INITIAL_STATES)}.")
    return target


def _read_object(body: bytes) -> dict[str, Any]:
    document = _parsed(body, numbers_as_text=True)
    if not isinstance(document, dict):
        raise UnreadableBodyError("The request body must be a JSON object.")
    return document


def _parsed(body: bytes, *, numbers_as_text: bool) -> Any:
    if not body.strip():
        raise UnreadableBodyError("The request body is missing. It must be a JSON object.")
    try:
        # In a config, numbers keep their spelling: 3.50 is the string "3.50".
        numbers: dict[str, Any] = {"parse_int": str, "parse_float": str} if numbers_as_text else {"parse_float": _finite}
        document = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant, **numbers)
        if b"\\ud" in body.lower():
            json.dumps(document, ensure_ascii=False).encode()  # raises for an unpaired surrogate
    except (ValueError, RecursionError) as error:
        raise UnreadableBodyError(f"The request body is not valid JSON: {_reason(error)}.") from error
    return document


def _reason(error: Exception) -> str:
    """Describe the error without quoting the body, which may contain a secret."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else _WRONG.get(type(error), "a number is too large")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotJsonError(text)
    return number


def _refuse_constant(name: str) -> None:
    raise _NotJsonError(name)


def _texts(pairs: Mapping[str, Any]) -> dict[str, str | None]:
    if len(pairs) > _MOST_KEYS:
        raise UnreadableBodyError(f"The config has {len(pairs)} keys. At most {_MOST_KEYS} are allowed.")
    nested = [key for key, value in pairs.items() if isinstance(value, (dict, list))]
    if nested:
        raise UnreadableBodyError(f"The value of {nested[0]!r} in the config must be a string, a number or a boolean.")
    return {key: None if value is None else _text(value) for key, value in pairs.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
