"""The keys that say whether a failed task is started anew by itself: in a connector's config, or for all in the worker's."""

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
            doc="What becomes of a failed task: never leaves it FAILED until somebody restarts it, as in Kafka Connect; "
            "on-failure starts it anew by itself. The worker's value holds for connectors that have none.",
        ),
        ConfigKey(
            name=MAX_RESTARTS,
            type=Type.INT,
            default=10,
            validator=Range(1),
            importance=Importance.LOW,
            doc="How often a task is started anew with on-failure before it stays FAILED.",
        ),
        ConfigKey(
            name=BACKOFF_INITIAL,
            type=Type.LONG,
            default=1000,
            validator=Range(1),
            importance=Importance.LOW,
            doc="Milliseconds before the first restart; each later one waits twice as long.",
        ),
        ConfigKey(
            name=BACKOFF_MAX,
            type=Type.LONG,
            default=60000,
            validator=Range(1),
            importance=Importance.LOW,
            doc="The longest wait before a restart, in milliseconds.",
        ),
        ConfigKey(
            name=RESET_AFTER,
            type=Type.LONG,
            default=600000,
            validator=Range(1),
            importance=Importance.LOW,
            doc="A task that ran for so many milliseconds may be started anew as often as one that never failed.",
        ),
    ]
)
