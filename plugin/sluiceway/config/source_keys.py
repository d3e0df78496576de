"""Defines the keys of sources, as in Kafka Connect 4.3. The documentation is Sluiceway's own."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.config.validators import NonEmptyString, OneOf, OrNull, Range, aliases_once

TOPIC_CREATION_PREFIX = "topic.creation."
TOPIC_CREATION_GROUPS = f"{TOPIC_CREATION_PREFIX}groups"

OFFSETS_TOPIC = "offsets.storage.topic"
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
            doc="Names of groups of topics to create. The settings of a group have the prefix topic.creation.<name>.",
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
            doc="required rejects the config unless the connector declares exactly-once support for it and the worker has "
            "exactly-once support for sources enabled. requested checks nothing. Use it for a connector whose documentation "
            "promises exactly-once delivery but that does not declare it.",
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
            doc="When the producer commits a transaction: poll: after each batch that a task returns; interval: after "
            "transaction.boundary.interval.ms; connector: where the connector defines it. A connector that cannot define "
            "transaction boundaries fails to start with connector.",
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
            doc="Duration of a transaction in milliseconds with transaction.boundary=interval; ignored otherwise. Default: the "
            "worker's offset.flush.interval.ms.",
        ),
        ConfigKey(
            name=OFFSETS_TOPIC,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            validator=NonEmptyString(),
            group="offsets.topic",
            order_in_group=1,
            width=Width.LONG,
            display_name="Offsets topic",
            doc="Topic for the connector's offsets, instead of the worker's offsets topic. It is created in the cluster to which "
            "the connector's producer writes. Ignored in standalone mode.",
        ),
    ]
)
