"""The keys that every connector has, whatever its class."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf, Range, non_empty_name

NAME = "name"
CONNECTOR_CLASS = "connector.class"
TASK_CLASS = "task.class"
TASKS_MAX = "tasks.max"
TOPICS = "topics"
TOPICS_REGEX = "topics.regex"

CONNECTOR = ConfigDef(
    [
        ConfigKey(name=NAME, type=Type.STRING, validator=non_empty_name, importance=Importance.HIGH,
                  doc="Globally unique name to use for this connector."),
        ConfigKey(name=CONNECTOR_CLASS, type=Type.STRING, importance=Importance.HIGH,
                  doc="Name or alias of the connector's class."),
        ConfigKey(name=TASKS_MAX, type=Type.INT, default=1, validator=Range(1), importance=Importance.HIGH,
                  doc="Maximum number of tasks to use for this connector."),
        ConfigKey(name="key.converter", type=Type.CLASS, default=None, importance=Importance.LOW,
                  doc="Converter for record keys; the worker's if not given."),
        ConfigKey(name="value.converter", type=Type.CLASS, default=None, importance=Importance.LOW,
                  doc="Converter for record values; the worker's if not given."),
        ConfigKey(name="header.converter", type=Type.CLASS, default=None, importance=Importance.LOW,
                  doc="Converter for header values; the worker's if not given."),
        ConfigKey(name="transforms", type=Type.LIST, default=[], importance=Importance.LOW,
                  doc="Aliases of the transformations to apply to records, in order."),
        ConfigKey(name="predicates", type=Type.LIST, default=[], importance=Importance.LOW,
                  doc="Aliases of the predicates that transformations use."),
        ConfigKey(name="config.action.reload", type=Type.STRING, default="restart", importance=Importance.LOW,
                  validator=OneOf(("none", "restart")),
                  doc="What to do when a referenced secret changes."),
        ConfigKey(name="errors.tolerance", type=Type.STRING, default="none", importance=Importance.MEDIUM,
                  validator=OneOf(("none", "all")),
                  doc="Whether a record that cannot be handled fails the task (none) or is skipped (all)."),
        ConfigKey(name="airflow.mode", type=Type.STRING, default="long-running", importance=Importance.MEDIUM,
                  validator=OneOf(("long-running", "micro-batch")),
                  doc="Run until stopped, or move what is there and end."),
    ]
)  # fmt: skip

SINK = ConfigDef(
    [
        ConfigKey(name=TOPICS, type=Type.LIST, default=[], importance=Importance.HIGH,
                  doc="List of topics to consume, separated by commas."),
        ConfigKey(name=TOPICS_REGEX, type=Type.STRING, default="", importance=Importance.HIGH,
                  doc="Regular expression giving topics to consume; matched against whole topic names."),
    ]
)  # fmt: skip


def overrides(config: Mapping[str, str], client: str) -> dict[str, str]:
    """Return a connector's client overrides: ``overrides(config, "producer")`` for ``producer.override.*``."""
    prefix = f"{client}.override."
    return {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}


def java_regex(pattern: str) -> str:
    """Return a Java regular expression as librdkafka and Python take it: matching whole names."""
    return f"^(?:{pattern})$"
