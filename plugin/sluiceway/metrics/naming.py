"""Names of metrics in Prometheus. No I/O.

Kafka Connect has none: its JMX exporter makes them by rules.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

from sluiceway.metrics.beans import CONNECT, OWN

_TASK_STATUS = (CONNECT, "connector-task-metrics", "status")
_CONNECTOR_TEXTS = ("status", "connector-type", "connector-class", "connector-version")
_INVALID = re.compile(r"[^a-zA-Z0-9_:]")


class Naming(enum.Enum):
    """A naming convention for metrics.

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


def metric_names(domain: str, kind: str, attribute: str, naming: Naming = Naming.STRIMZI) -> tuple[str, ...]:
    """Return all names of an attribute of a bean: its own, and that of boards which expect it under another one besides."""
    return metric_name(domain, kind, attribute, naming), *_MORE.get((naming, domain, kind, attribute), ())


def label_name(name: str) -> str:
    return _INVALID.sub("_", name)


def labels(tags: Mapping[str, str], naming: Naming) -> dict[str, str]:
    """Return the labels for a bean's tags."""
    between = "" if naming is Naming.STRIMZI else "_"  # in client-id, Kafka's only tag of two words
    return {_INVALID.sub(between, name): value for name, value in tags.items()}


_MORE: Mapping[tuple[Naming, str, str, str], tuple[str, ...]] = {
    # The exporter's example names the status of a task like that of a connector; the label ``task`` tells them apart.
    (Naming.STRIMZI, *_TASK_STATUS): ("kafka_connect_connector_status",),
    (Naming.STRIMZI, CONNECT, "app-info", "version"): ("kafka_connect_version_info",),
    # Confluent's rules for the exporter, which without rules leaves text out.
    (Naming.JMX, CONNECT, "app-info", "version"): ("kafka_connect_app_info",),
    **{(Naming.JMX, CONNECT, "connector-metrics", text): ("kafka_connect_connector_metrics",) for text in _CONNECTOR_TEXTS},
}
