"""The keys that only sources have, as Kafka Connect 4.3 declares them. The texts are our own."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.config.validators import NonEmptyString, OneOf, OrNull, Range, aliases_once

TOPIC_CREATION_PREFIX = "topic.creation."
TOPIC_CREATION_GROUPS = f"{TOPIC_CREATION_PREFIX}groups"

EXACTLY_ONCE = "Exactly Once Support"

SOURCE = ConfigDef(
    [
        ConfigKey(
            name=TOPIC_CREATION_GROUPS,
            type=Type.LIST,
            default=[],
            importance=Importance.LOW,
            validator=aliases_once,
            group="Topic Creation",
            order_in_group=1,
            width=Width.LONG,
            display_name="Topic Creation Groups",
            doc="Names of your choice for groups of topics to create; settings of each stand after topic.creation. and its name.",
        ),
        ConfigKey(
            name="exactly.once.support",
            type=Type.STRING,
            default="requested",
            importance=Importance.MEDIUM,
            validator=OneOf(("REQUIRED", "REQUESTED"), ignore_case=True),
            group=EXACTLY_ONCE,
            order_in_group=2,
            width=Width.SHORT,
            display_name="Exactly once support",
            doc="With required, the connector is refused unless it says that it delivers exactly once with this config and "
            "the worker has exactly-once support for sources turned on. A connector may be able to without saying so: "
            "after a look at its manual, set requested, which checks nothing.",
        ),
        ConfigKey(
            name="transaction.boundary",
            type=Type.STRING,
            default="poll",
            importance=Importance.MEDIUM,
            validator=OneOf(("INTERVAL", "POLL", "CONNECTOR"), ignore_case=True),
            group=EXACTLY_ONCE,
            order_in_group=3,
            width=Width.SHORT,
            display_name="Transaction Boundary",
            doc="When a producer's transaction ends: poll is after each batch that a task returns, interval after some time "
            "(see transaction.boundary.interval.ms), connector where the connector says so; it fails to start if it "
            "cannot.",
        ),
        ConfigKey(
            name="transaction.boundary.interval.ms",
            type=Type.LONG,
            default=None,
            importance=Importance.LOW,
            validator=OrNull(Range(0)),
            group=EXACTLY_ONCE,
            order_in_group=4,
            width=Width.SHORT,
            display_name="Transaction boundary interval",
            doc="How many milliseconds a transaction lasts with transaction.boundary=interval; ignored with any other. The "
            "worker's offset.flush.interval.ms if not given.",
        ),
        ConfigKey(
            name="offsets.storage.topic",
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            validator=NonEmptyString(),
            group="offsets.topic",
            order_in_group=1,
            width=Width.LONG,
            display_name="Offsets topic",
            doc="Topic that keeps this connector's offsets instead of the worker's own topic for that; it is created where "
            "the connector's producer writes, which may be another cluster than the worker's. Ignored in standalone "
            "mode.",
        ),
    ]
)
