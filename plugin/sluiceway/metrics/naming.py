"""Names of metrics in Prometheus. No I/O.

Kafka Connect has none: its JMX exporter makes them by rules.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

from sluiceway.metrics.beans import CONNECT, OWN

_INVALID = re.compile(r"[^a-zA-Z0-9_:]")


class Naming(enum.Enum):
    """How metrics are named.

    ``STRIMZI`` follows the JMX exporter's example for Kafka Connect, which Strimzi ships and most public boards expect. ``JMX``
    follows the exporter without rules, which Confluent's boards expect.
    """

    STRIMZI = "strimzi"
    JMX = "jmx"

    @classmethod
    def named(cls, name: str) -> Naming | None:
        """Return the naming that a request asks for, None if there is no such one."""
        return next((each for each in cls if each.value == name), None)


def metric_name(domain: str, kind: str, attribute: str, naming: Naming = Naming.STRIMZI) -> str:
    """Return the name of an attribute of a bean with this domain and type."""
    if domain == OWN or naming is Naming.STRIMZI:
        kind = kind.removesuffix("-metrics")
    if naming is Naming.STRIMZI:
        if domain == CONNECT:
            kind = kind.removeprefix("connect-")
        elif domain != OWN:  # a client's type names its domain again
            domain = "kafka"
    return label_name(f"{domain}_{kind}_{attribute}".lower())


def label_name(name: str) -> str:
    return _INVALID.sub("_", name)


def labels(tags: Mapping[str, str], naming: Naming) -> dict[str, str]:
    """Return the labels for a bean's tags."""
    between = "" if naming is Naming.STRIMZI else "_"  # in client-id, Kafka's only tag of two words
    return {_INVALID.sub(between, name): value for name, value in tags.items()}
