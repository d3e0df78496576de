"""Writes metrics as Prometheus or OpenMetrics text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sluiceway.metrics.beans import Bean
from sluiceway.metrics.catalog import description
from sluiceway.metrics.naming import Naming, label_name, labels, metric_names


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
        return iter(families(self._beans, self._naming))


def families(beans: Iterable[Bean], naming: Naming = Naming.STRIMZI) -> list[Metric]:
    """Return the beans' metrics with their names and labels in Prometheus."""
    found: dict[str, Metric] = {}
    for bean in beans:
        tags = labels(bean.tags, naming)
        for attribute, value in bean.values.items():
            for name in metric_names(bean.domain, bean.type, attribute, naming):
                family = found.get(name)
                if family is None:
                    family = found[name] = _family(name, description(bean, attribute))
                if isinstance(value, str):  # as the exporter's rules do it
                    family.add_sample(name, {**tags, label_name(attribute): value}, 1.0)
                else:
                    family.add_sample(name, tags, value)
    return list(found.values())


def _family(name: str, text: str) -> Metric:
    if name.endswith("_total"):
        return CounterMetricFamily(name.removesuffix("_total"), text)
    return GaugeMetricFamily(name, text)
