"""Defines the keys for automatic restarts of failed tasks, in a connector's config or as defaults in the worker's."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf, Range

_PREFIX = "sluiceway.task.restart."
POLICY = f"{_PREFIX}policy"
MAX_RESTARTS = f"{_PREFIX}max.restarts"
BACKOFF_INITIAL = f"{_PREFIX}backoff.initial.ms"
BACKOFF_MAX = f"{_PREFIX}backoff.max.ms"
RESET_AFTER = f"{_PREFIX}reset.after.ms"

NEVER, ON_FAILURE = "never", "on-failure"

RESTARTS = ConfigDef(
    [
        ConfigKey(
            name=POLICY,
            type=Type.STRING,
            default=NEVER,
            importance=Importance.MEDIUM,
            validator=OneOf((NEVER, ON_FAILURE)),
            doc="What to do with a failed task: never leaves it FAILED until a user restarts it, as in Kafka Connect; on-failure "
            "restarts it automatically. The worker's value applies to connectors that do not set the key.",
        ),
        ConfigKey(
            name=MAX_RESTARTS,
            type=Type.INT,
            default=10,
            validator=Range(1),
            importance=Importance.LOW,
            doc="Maximum number of automatic restarts of a task before it stays FAILED.",
        ),
        ConfigKey(
            name=BACKOFF_INITIAL,
            type=Type.LONG,
            default=1000,
            validator=Range(1),
            importance=Importance.LOW,
            doc="Back-off before the first restart, in milliseconds. It doubles with each further restart.",
        ),
        ConfigKey(
            name=BACKOFF_MAX,
            type=Type.LONG,
            default=60000,
            validator=Range(1),
            importance=Importance.LOW,
            doc="Maximum back-off before a restart, in milliseconds.",
        ),
        ConfigKey(
            name=RESET_AFTER,
            type=Type.LONG,
            default=600000,
            validator=Range(1),
            importance=Importance.LOW,
            doc="Run time in milliseconds after which the number of restarts of a task starts again at 0.",
        ),
    ]
)
