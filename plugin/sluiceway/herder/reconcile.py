"""Generates a connector's task configs as Connect does. Runs on the driver.

Calls the connector's ``task_configs``; no other I/O.
"""

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
    """A connector has generated more task configs than ``tasks.max`` allows (``TooManyTasksException``)."""

    java_class = "org.apache.kafka.connect.runtime.TooManyTasksException"


def desired_task_configs(connector: Connector, config: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the task configs of a started connector as the config topic stores them.

    Runs on the thread that owns the connector. Raises TooManyTasksError if the connector generates more than ``tasks.max``
    task configs and ``tasks.max.enforce`` is not false. Exceptions of the connector are not caught.
    """
    limit = _LIMIT.parse(config)
    allowed = limit[TASKS_MAX]
    assert isinstance(allowed, int)  # noqa: S101 (the definition says so)
    task_configs = connector.task_configs(allowed)
    if len(task_configs) > allowed:
        # Starts with Connect's text, so that existing alerts match it.
        message = (
            f"The connector {config.get(NAME, '')} has generated {len(task_configs)} tasks, which is greater than {allowed}, the "
            f"maximum number of tasks it is configured to create. This is a defect of {type(connector).__name__}"
        )
        if limit[TASKS_MAX_ENFORCE]:
            raise TooManyTasksError(f"{message}. Raise {TASKS_MAX}, or set {TASKS_MAX_ENFORCE}=false to allow it.")
        log.warning("[%s|worker] %s. %s=false allows it.", config.get(NAME, ""), message, TASKS_MAX_ENFORCE)
    return with_connect_keys(connector, config, task_configs)


def with_connect_keys(
    connector: Connector, config: Mapping[str, str], task_configs: Sequence[Mapping[str, str]]
) -> list[dict[str, str]]:
    """Add the keys that Connect adds to each task config: the task's class and, for sinks, the topics."""
    added = {TASK_CLASS: task_class_name(connector)}
    if is_sink(type(connector)):
        added |= {key: config[key] for key in (TOPICS, TOPICS_REGEX) if key in config}
    return [{**task_config, **added} for task_config in task_configs]


def task_class_name(connector: Connector) -> str:
    """Return the name of the connector's Java task class, which may depend on its config, or else of the Python class."""
    task = connector.task_class
    return connector.java_task_class or f"{task.__module__}.{task.__qualname__}"
