"""Writes metrics as Prometheus or OpenMetrics text, under the names that boards made for Kafka Connect use.

Kafka Connect has no names for Prometheus: its JMX exporter makes them by rules. ``Naming.STRIMZI`` follows the exporter's example
for Kafka Connect, which Strimzi ships and most public boards expect; ``Naming.JMX`` follows the exporter's
default, which Confluent's boards expect.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sluiceway.metrics.beans import CONNECT, OWN, Bean
from sluiceway.metrics.catalog import description

_INVALID = re.compile(r"[^a-zA-Z0-9_:]")


class Naming(enum.Enum):
    """How metrics are named."""

    STRIMZI = "strimzi"
    JMX = "jmx"


def render(beans: Iterable[Bean], accept: str = "", naming: Naming = Naming.STRIMZI) -> tuple[bytes, str]:
    """Return the text in the format that an ``Accept`` header asks for, and its content type."""
    encode, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Beans(list(beans), naming))
    return encode(registry), content_type


class _Beans(Collector):
    """Presents beans to prometheus-client."""

    def __init__(self, beans: list[Bean], naming: Naming) -> None:
        self._beans = beans
        self._naming = naming

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for bean in self._beans:
            for attribute, value in bean.values.items():
                name = metric_name(bean, attribute, self._naming)
                labels = _labels(bean.tags, self._naming)
                if isinstance(value, str):
                    labels[_INVALID.sub("_", attribute)] = value
                    value = 1.0
                family = families.get(name)
                if family is None:
                    family = families[name] = _family(name, description(bean, attribute))
                sample = f"{name}_total" if family.type == "counter" and not name.endswith("_total") else name
                family.add_sample(sample, labels, value)
        return iter(families.values())


def _family(name: str, text: str) -> Metric:
    if name.endswith("_total"):
        return CounterMetricFamily(name.removesuffix("_total"), text)
    return GaugeMetricFamily(name, text)


def metric_name(bean: Bean, attribute: str, naming: Naming = Naming.STRIMZI) -> str:
    """Return the name of a bean's attribute in Prometheus."""
    kind = bean.type
    if bean.domain == OWN or naming is Naming.STRIMZI:
        kind = kind.removesuffix("-metrics")
    if bean.domain == CONNECT and naming is Naming.STRIMZI:
        kind = kind.removeprefix("connect-")
    is_client = bean.domain not in (CONNECT, OWN)
    domain = "kafka" if naming is Naming.STRIMZI and is_client else bean.domain
    return _INVALID.sub("_", f"{domain}_{kind}_{attribute}".lower())


def _labels(tags: Mapping[str, str], naming: Naming) -> dict[str, str]:
    between = "" if naming is Naming.STRIMZI else "_"  # in client-id, Kafka's only tag of two words
    return {_INVALID.sub(between, name): value for name, value in tags.items()}
