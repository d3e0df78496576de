"""Defines the record of a metric, which all connectors of application metrics read or write. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sluiceway.data import (
    BOOLEAN_SCHEMA,
    FLOAT64_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_FLOAT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
)

CUMULATIVE, DELTA = "cumulative", "delta"

LABELS_SCHEMA = Schema.map(STRING_SCHEMA, STRING_SCHEMA)

HISTOGRAM_SCHEMA = Schema.struct(
    {
        "count": OPTIONAL_FLOAT64_SCHEMA,
        "sum": OPTIONAL_FLOAT64_SCHEMA,
        "bounds": Schema.array(FLOAT64_SCHEMA),
        "counts": Schema.array(FLOAT64_SCHEMA),
        "min": OPTIONAL_FLOAT64_SCHEMA,
        "max": OPTIONAL_FLOAT64_SCHEMA,
    },
    name="sluiceway.metrics.Histogram",
    optional=True,
)

SUMMARY_SCHEMA = Schema.struct(
    {
        "count": OPTIONAL_FLOAT64_SCHEMA,
        "sum": OPTIONAL_FLOAT64_SCHEMA,
        "quantiles": Schema.array(FLOAT64_SCHEMA),
        "values": Schema.array(FLOAT64_SCHEMA),
    },
    name="sluiceway.metrics.Summary",
    optional=True,
)

EXEMPLAR_SCHEMA = Schema.struct(
    {"labels": LABELS_SCHEMA, "value": FLOAT64_SCHEMA, "timestamp": OPTIONAL_INT64_SCHEMA},
    name="sluiceway.metrics.Exemplar",
)

METRIC_SCHEMA = Schema.struct(
    {
        "name": STRING_SCHEMA,
        "type": STRING_SCHEMA,
        "unit": OPTIONAL_STRING_SCHEMA,
        "help": OPTIONAL_STRING_SCHEMA,
        "labels": LABELS_SCHEMA,
        "timestamp": INT64_SCHEMA,
        "start_timestamp": OPTIONAL_INT64_SCHEMA,
        "value": OPTIONAL_FLOAT64_SCHEMA,
        "histogram": HISTOGRAM_SCHEMA,
        "summary": SUMMARY_SCHEMA,
        "exemplars": Schema.array(EXEMPLAR_SCHEMA, optional=True),
        "stale": BOOLEAN_SCHEMA,
        "gap_since": OPTIONAL_INT64_SCHEMA,
        "temporality": OPTIONAL_STRING_SCHEMA,
        "sample_rate": OPTIONAL_FLOAT64_SCHEMA,
        "member": OPTIONAL_STRING_SCHEMA,
    },
    name="sluiceway.metrics.Metric",
    version=1,
)


@dataclass(frozen=True, slots=True)
class Series:
    """The constant part of the records of a series. ``key`` is their key."""

    name: str
    type: str
    labels: Mapping[str, str]
    key: str
    unit: str | None = None
    help: str | None = None

    @classmethod
    def of(cls, name: str, type_: str, labels: Mapping[str, str], unit: str | None = None, help_: str | None = None) -> Series:
        return cls(name, type_, labels, series_key(name, labels), unit, help_)

    def with_labels(self, labels: Mapping[str, str]) -> Series:
        return replace(self, labels=labels, key=series_key(self.name, labels))


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An example of an observation. ``timestamp`` is in milliseconds."""

    labels: Mapping[str, str]
    value: float
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Histogram:
    """Observations by size. ``counts`` are cumulative: those up to each bound. ``count`` has those above the last bound too."""

    bounds: Sequence[float]
    counts: Sequence[float]
    count: float | None = None
    sum: float | None = None
    min: float | None = None
    max: float | None = None

    def struct(self) -> Struct:
        values = [self.count, self.sum, list(self.bounds), list(self.counts), self.min, self.max]
        return Struct.of(HISTOGRAM_SCHEMA, values)


@dataclass(frozen=True, slots=True)
class Summary:
    """Quantiles, with the value of each, that the application itself has computed."""

    quantiles: Sequence[float]
    values: Sequence[float]
    count: float | None = None
    sum: float | None = None

    def struct(self) -> Struct:
        return Struct.of(SUMMARY_SCHEMA, [self.count, self.sum, list(self.quantiles), list(self.values)])


@dataclass(slots=True)
class Point:
    """A series' value at a time: a number, a histogram, or a summary. Times are in milliseconds since the epoch.

    ``timestamp`` is None unless the application itself has told the time. ``mean`` is that of a histogram's observations.
    ``member`` is what was added to a set, which then has no value.
    """

    series: Series
    value: float | Histogram | Summary | None
    timestamp: int | None = None
    start: int | None = None
    exemplars: Sequence[Exemplar] = ()
    temporality: str | None = None
    sample_rate: float | None = None
    member: str | None = None
    mean: float | None = None


def metric_struct(point: Point, timestamp: int, gap_since: int | None = None) -> Struct:
    """Return the value of a record. ``timestamp`` is used unless the point has its own."""
    series, value = point.series, point.value
    number = point.mean
    histogram = summary = None
    if isinstance(value, Histogram):
        histogram = value.struct()
    elif isinstance(value, Summary):
        summary = value.struct()
    else:
        number = value
    exemplars = [Struct.of(EXEMPLAR_SCHEMA, [dict(each.labels), each.value, each.timestamp]) for each in point.exemplars] or None
    own = point.timestamp
    return Struct.of(
        METRIC_SCHEMA,
        [
            series.name,
            series.type,
            series.unit,
            series.help,
            series.labels,
            timestamp if own is None else own,
            point.start,
            number,
            histogram,
            summary,
            exemplars,
            False,
            gap_since,
            point.temporality,
            point.sample_rate,
            point.member,
        ],
    )


def stale_struct(series: Series, timestamp: int) -> Struct:
    """Return the value of a staleness marker: the series has no value from this time on."""
    names = [series.name, series.type, series.unit, series.help, series.labels]
    return Struct.of(METRIC_SCHEMA, [*names, timestamp, None, None, None, None, None, True, None, None, None, None])


def series_key(name: str, labels: Mapping[str, str]) -> str:
    """Return a series' name and labels, sorted, in Prometheus's notation: ``up{job="shop"}``."""
    if not labels:
        return name
    pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in sorted(labels.items()))
    return f"{name}{{{pairs}}}"


def _escaped(text: str) -> str:
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return text
