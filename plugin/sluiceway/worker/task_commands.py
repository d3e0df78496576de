"""Finds a task's commands in records of the config and status topics. No I/O.

A task's status, as its driver writes it, is also its command; see ``kafka_channel``. A release is a command that no worker of
Kafka Connect reads as a status.
"""

from __future__ import annotations

from sluiceway.kafka.kafka_based_log import LogRecord
from sluiceway.runtime.task import TaskCommand, TaskSpec
from sluiceway.storage.codec import (
    HOST_PREFIX,
    ConnectorRecord,
    ConnectorStatusRecord,
    LoggerRecord,
    TargetStateRecord,
    TaskStatusRecord,
    decode_config_record,
    decode_status_record,
    encode_connector_status,
    encode_task_status,
)
from sluiceway.storage.model import State, Status, TargetState, TaskId

COMMAND_OF = {TargetState.STARTED: TaskCommand.RUN, TargetState.PAUSED: TaskCommand.PAUSE, TargetState.STOPPED: TaskCommand.STOP}
"""The command that a connector's target state means for its tasks."""


def release_key(connector: str) -> bytes:
    """Return the key of releases. The value is the worker id of the driver whose tasks of the connector must commit and end."""
    return f"{HOST_PREFIX}release-{connector}".encode()


def command_keys(task: TaskId) -> frozenset[bytes]:
    """Return the keys of the status topic whose records may be commands to a task. No I/O."""
    statuses = encode_connector_status(task.connector, None)[0], encode_task_status(task, None)[0]
    return frozenset({*statuses, release_key(task.connector)})


def command_in(record: LogRecord, spec: TaskSpec) -> TaskCommand | None:
    """Return the command that a record of the config or status topic means for a task, or None. No I/O."""
    return _config_command(record, spec) if record.topic == spec.worker.config_topic else _status_command(record, spec)


def _config_command(record: LogRecord, spec: TaskSpec) -> TaskCommand | None:
    config = decode_config_record(record.key, record.value)
    if isinstance(config, ConnectorRecord) and config.name == spec.id.connector and config.config is None:
        return TaskCommand.STOP  # the connector was deleted
    if isinstance(config, TargetStateRecord) and config.name == spec.id.connector and config.state is not None:
        return COMMAND_OF[config.state]
    return None


def _status_command(record: LogRecord, spec: TaskSpec) -> TaskCommand | None:
    if record.key == release_key(spec.id.connector):
        return TaskCommand.STOP if record.value == spec.worker_id.encode() else None
    change = decode_status_record(record.key, record.value, record.timestamp, record.headers)
    if isinstance(change, ConnectorStatusRecord) and change.connector == spec.id.connector and change.status is not None:
        return TaskCommand.ABANDON if is_newer(change.status, spec.generation, spec.worker_id) else None
    if isinstance(change, TaskStatusRecord) and change.task == spec.id and change.status is not None:
        if change.status.generation > spec.generation and not change.status.of_connect:
            # A later driver, or its own that takes this process for lost.
            return TaskCommand.ABANDON
        return TaskCommand.STOP if _is_stop(change.status, spec) else None
    return None


def _is_stop(status: Status, spec: TaskSpec) -> bool:
    """Return True for a stop command: a status with a trace only describes the task, such as one that waits for a slot."""
    if (status.worker_id, status.generation) != (spec.worker_id, spec.generation):
        return False
    return status.state in (State.UNASSIGNED, State.RESTARTING) and status.trace is None


def is_newer(status: Status, generation: int, worker_id: str) -> bool:
    """Return True if a later driver than the one of ``generation`` and ``worker_id`` wrote the status. No I/O."""
    return status.generation > generation and status.worker_id != worker_id and not status.of_connect


def level_in(record: LogRecord, spec: TaskSpec) -> LoggerRecord | None:
    config = decode_config_record(record.key, record.value) if record.topic == spec.worker.config_topic else None
    return config if isinstance(config, LoggerRecord) else None


def next_command(current: TaskCommand, received: TaskCommand | None) -> TaskCommand:
    """Return the command after another one was received: STOP and ABANDON are final, except that ABANDON may follow STOP."""
    if received is TaskCommand.ABANDON or (received is not None and current in (TaskCommand.RUN, TaskCommand.PAUSE)):
        return received
    return current
