"""Which tasks a connector should have. Pure apart from the connector's own ``task_configs``; used by the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sluiceway.api import Connector
from sluiceway.config.connector import CONNECTOR, NAME, TASK_CLASS, TASKS_MAX, TASKS_MAX_ENFORCE, TOPICS, TOPICS_REGEX
from sluiceway.config.definition import ConfigDef
from sluiceway.discovery import is_sink
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_LIMIT = ConfigDef([CONNECTOR[TASKS_MAX], CONNECTOR[TASKS_MAX_ENFORCE]])


class TooManyTasksError(ConnectError):
    """A connector made more task configs than ``tasks.max`` allows (``TooManyTasksException``)."""

    java_class = "org.apache.kafka.connect.runtime.TooManyTasksException"


def desired_task_configs(connector: Connector, config: Mapping[str, str]) -> list[dict[str, str]]:
    """Ask a started connector for its tasks' configs and return them as they belong into the config topic.

    Runs on the driver, on the thread that owns the connector. Raises TooManyTasksError if the connector makes more tasks
    than ``tasks.max`` allows and ``tasks.max.enforce`` is not false; whatever the connector itself raises passes through.
    """
    limit = _LIMIT.parse(config)
    allowed = limit[TASKS_MAX]
    assert isinstance(allowed, int)  # noqa: S101 (the definition says so)
    made = connector.task_configs(allowed)
    if len(made) > allowed:
        # Its first half is what Connect says, word for word: alerts look for it.
        finding = (
            f"The connector {config.get(NAME, '')} has generated {len(made)} tasks, which is greater than {allowed}, the maximum "
            f"number of tasks it is configured to create. This is a defect of {type(connector).__name__}"
        )
        if limit[TASKS_MAX_ENFORCE]:
            raise TooManyTasksError(f"{finding}; raise {TASKS_MAX}, or set {TASKS_MAX_ENFORCE}=false to let it.")
        log.warning("[%s|worker] %s; %s=false lets it.", config.get(NAME, ""), finding, TASKS_MAX_ENFORCE)
    return with_connect_keys(type(connector), config, made)


def with_connect_keys(
    connector: type[Connector], config: Mapping[str, str], task_configs: Sequence[Mapping[str, str]]
) -> list[dict[str, str]]:
    """Return task configs with what Connect adds to each: the task's class and, for sinks, the topics to read."""
    added = {TASK_CLASS: task_class_name(connector)}
    if is_sink(connector):
        added |= {key: config[key] for key in (TOPICS, TOPICS_REGEX) if key in config}
    return [{**task_config, **added} for task_config in task_configs]


def task_class_name(connector: type[Connector]) -> str:
    """Return the task's class as a Kafka Connect worker would find it, or as Python does where there is no Java class."""
    task = connector.task_class
    return connector.java_task_class or f"{task.__module__}.{task.__qualname__}"
