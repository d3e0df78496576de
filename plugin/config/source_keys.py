"""The keys that only sources have, as Kafka Connect 4.3 declares them. Its texts are part of what REST answers."""

from __future__ import annotations

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Width
from sluiceway.config.validators import NonEmptyString, OneOf, OrNull, Range, aliases_once

EXACTLY_ONCE = "Exactly Once Support"

SOURCE = ConfigDef(
    [
        ConfigKey(
            name="topic.creation.groups", type=Type.LIST, default=[], importance=Importance.LOW,
            validator=aliases_once, group="Topic Creation", order_in_group=1,
            width=Width.LONG, display_name="Topic Creation Groups",
            doc="Groups of configurations for topics created by source connectors",
        ),
        ConfigKey(
            name="exactly.once.support", type=Type.STRING, default="requested", importance=Importance.MEDIUM,
            validator=OneOf(("REQUIRED", "REQUESTED"), ignore_case=True), group=EXACTLY_ONCE, order_in_group=2,
            width=Width.SHORT, display_name="Exactly once support",
            doc="Permitted values are requested, required. If set to \"required\", forces a preflight check for the connector to "
                "ensure that it can provide exactly-once semantics with the given configuration. Some connectors may be capable"
                " of providing exactly-once semantics but not signal to Connect that they support this; in that case, "
                "documentation for the connector should be consulted carefully before creating it, and the value for this "
                "property should be set to \"requested\". Additionally, if the value is set to \"required\" but the worker that "
                "performs preflight validation does not have exactly-once support enabled for source connectors, requests to "
                "create or validate the connector will fail.",
        ),
        ConfigKey(
            name="transaction.boundary", type=Type.STRING, default="poll", importance=Importance.MEDIUM,
            validator=OneOf(("INTERVAL", "POLL", "CONNECTOR"), ignore_case=True), group=EXACTLY_ONCE, order_in_group=3,
            width=Width.SHORT, display_name="Transaction Boundary",
            doc="Permitted values are: poll, interval, connector. If set to 'poll', a new producer transaction will be started "
                "and committed for every batch of records that each task from this connector provides to Connect. If set to "
                "'connector', relies on connector-defined transaction boundaries; note that not all connectors are capable of "
                "defining their own transaction boundaries, and in that case, attempts to instantiate a connector with this "
                "value will fail. Finally, if set to 'interval', commits transactions only after a user-defined time interval "
                "has passed.",
        ),
        ConfigKey(
            name="transaction.boundary.interval.ms", type=Type.LONG, default=None, importance=Importance.LOW,
            validator=OrNull(Range(0)), group=EXACTLY_ONCE, order_in_group=4,
            width=Width.SHORT, display_name="Transaction boundary interval",
            doc="If 'transaction.boundary' is set to 'interval', determines the interval for producer transaction commits by "
                "connector tasks. If unset, defaults to the value of the worker-level 'offset.flush.interval.ms' property. It "
                "has no effect if a different transaction.boundary is specified.",
        ),
        ConfigKey(
            name="offsets.storage.topic", type=Type.STRING, default=None, importance=Importance.LOW,
            validator=NonEmptyString(), group="offsets.topic", order_in_group=1,
            width=Width.LONG, display_name="Offsets topic",
            doc="The name of a separate offsets topic to use for this connector. If empty or not specified, the worker\u2019s "
                "global offsets topic name will be used. If specified, the offsets topic will be created if it does not already "
                "exist on the Kafka cluster targeted by this connector (which may be different from the one used for the "
                "worker's global offsets topic if the bootstrap.servers property of the connector's producer has been overridden "
                "from the worker's). Only applicable in distributed mode; in standalone mode, setting this property will have no "
                "effect.",
        ),
    ]
)  # fmt: skip
