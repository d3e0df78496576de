"""Reads what a target exposes: the Prometheus text format 0.0.4 and OpenMetrics 1.0, with prometheus_client's parsers. No I/O.

From one scrape to the next, a target mostly changes numbers only. ``Exposition`` keeps what the parser has made of the rest of
each line, and reads only the numbers while all else is the same, which takes a small part of the time.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, SupportsFloat

from sluiceway.connectors.observability.records import Exemplar, Histogram, Point, Series, Summary
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.samples import Sample

_NUMBERS = re.compile(r"[0-9+\-.eEnNaAiIfFtTyY]*")  # of these characters only, so that a number has no time or exemplar behind it
_MOST_TEXT = 300
_MOST_MILLIS = 2**62
_NEVER_NEGATIVE = ("_total", "_sum", "_count", "_bucket", "_gcount", "_gsum")
_WHOLE = ("_bucket", "_count", "_gcount")
_PARTS = {
    "histogram": {"_bucket": "bucket", "_count": "count", "_sum": "sum", "_created": "created"},
    "gaugehistogram": {"_bucket": "bucket", "_gcount": "count", "_gsum": "sum"},
    "summary": {"": "quantile", "_count": "count", "_sum": "sum", "_created": "created"},
}
_MEMBER_LABEL = {"bucket": "le", "quantile": "quantile"}


@dataclass(slots=True)
class _Plan:
    """Where the numbers of a series are among the samples of a document."""

    series: Series
    value: int | None = None
    created: int | None = None
    members: list[tuple[float, int]] = field(default_factory=list)
    """Bounds of buckets, or quantiles, and where the value of each is."""
    count: int | None = None
    sum: int | None = None


@dataclass(slots=True)
class _Samples:
    """The numbers of a document's samples. ``times`` are in milliseconds."""

    values: Sequence[float]
    times: Mapping[int, int] = field(default_factory=dict)
    exemplars: Mapping[int, Exemplar] = field(default_factory=dict)


@dataclass(slots=True)
class _Layout:
    """The parts of a document besides numbers."""

    openmetrics: bool
    lines: list[str]
    """Lines without their numbers, comments as they are."""
    numbered: list[int]
    """The lines that have a number."""
    rules: _Rules


@dataclass(slots=True)
class _Rules:
    """The form of numbers in OpenMetrics. The parser decides about a document that has another form."""

    not_negative: list[int] = field(default_factory=list)
    quantiles: list[int] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    fixed: dict[int, float] = field(default_factory=dict)
    rising: list[list[int]] = field(default_factory=list)
    """Buckets of histograms, by their bounds."""
    equal: list[tuple[int, int]] = field(default_factory=list)
    """The last bucket and the count of histograms."""

    def allow(self, values: Sequence[float]) -> bool:
        return (
            all(values[each] >= 0 for each in self.not_negative)
            and not any(values[each] < 0 for each in self.quantiles)
            and all(values[each].is_integer() for each in self.whole)
            and all(values[each] == value for each, value in self.fixed.items())
            and all(values[one] == values[other] for one, other in self.equal)
            and all(values[low] <= values[high] for each in self.rising for low, high in itertools.pairwise(each))
        )


class Exposition:
    """Reads the documents of one target, one after another.

    ``labels_of`` returns a series' labels, with those of the target, for those that the target exposes. ``keeps`` says whether
    metrics with a name are read. ``samples`` is how many samples the last document had. Not thread-safe.
    """

    def __init__(
        self,
        labels_of: Callable[[Mapping[str, str]], Mapping[str, str]] = dict,
        keeps: Callable[[str], bool] = lambda _name: True,
        *,
        with_help: bool = False,
        with_times: bool = True,
    ) -> None:
        self._labels_of = labels_of
        self._keeps = keeps
        self._with_help = with_help
        self._with_times = with_times
        self._layout: _Layout | None = None
        self._plans: list[_Plan] = []
        self.series: Mapping[str, Series] = {}
        """The series of the last document by their keys, without those whose samples have a time of their own.

        The same object as before if they are the same.
        """
        self.samples = 0

    def points(self, text: str, *, openmetrics: bool) -> list[Point]:
        """Return the values of a document. Raises DataError for one that is not of the format."""
        lines = text.split("\n")
        values = self._same_but_numbers(lines, openmetrics=openmetrics)
        try:
            if values is not None:
                return _points(self._plans, _Samples(values))
            return self._parsed(text, lines, openmetrics=openmetrics)
        except (ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError) as error:  # the parsers raise them
            self._layout = None
            what = "OpenMetrics" if openmetrics else "the text format"
            raise DataError(f"The answer is not of {what}: {str(error)[:_MOST_TEXT] or type(error).__name__}") from error

    def _same_but_numbers(self, lines: list[str], *, openmetrics: bool) -> list[float] | None:
        """Return the numbers of a document that is as the last one in all else, None if it is not."""
        layout = self._layout
        if layout is None or layout.openmetrics != openmetrics or len(lines) != len(layout.lines):
            return None
        known = layout.lines
        if not all(map(str.startswith, lines, known)):
            return None
        rests = [lines[number][len(known[number]) :] for number in layout.numbered]
        if sum(map(len, lines)) != sum(map(len, known)) + sum(map(len, rests)):
            return None  # a comment became longer
        if not _NUMBERS.fullmatch("".join(rests)):
            return None
        try:
            values = [float(each) for each in rests]
        except ValueError:
            return None
        return values if layout.rules.allow(values) else None

    def _parsed(self, text: str, lines: list[str], *, openmetrics: bool) -> list[Point]:
        self._layout = None
        samples = [(family, sample) for family in _families(text, openmetrics=openmetrics) for sample in family.samples]
        numbered = [number for number, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")]
        aligned = len(numbered) == len(samples)
        raw = [lines[number] for number in numbered] if aligned else [""] * len(samples)
        rules = _Rules()
        self._plans = self._planned(samples, raw, rules)
        self.samples = len(samples)
        times = {number: _millis(sample.timestamp) for number, (_f, sample) in enumerate(samples) if sample.timestamp is not None}
        timed = times if self._with_times else {}
        series = {plan.series.key: plan.series for plan in self._plans if not timed or timed.keys().isdisjoint(_numbers(plan))}
        if series != self.series:
            self.series = series
        if aligned and not times:
            self._layout = _layout(lines, numbered, [sample for _family, sample in samples], rules, openmetrics=openmetrics)
        return _points(
            self._plans,
            _Samples(
                [math.nan if (value := _value(sample)) is None else float(value) for _family, sample in samples],
                timed,
                {number: _exemplar(sample) for number, (_f, sample) in enumerate(samples) if sample.exemplar},
            ),
        )

    def _planned(self, samples: Sequence[tuple[Metric, Sample]], raw: Sequence[str], rules: _Rules) -> list[_Plan]:
        found: dict[str, _Plan] = {}
        created: dict[str, int] = {}
        for number, ((family, sample), line) in enumerate(zip(samples, raw, strict=True)):
            _add_rules(rules, family, sample, number)
            part, bound = _part(family, sample)
            if family.type == "counter" and sample.name == f"{family.name}_created":
                created[self._series(f"{family.name}_total", family, sample.labels).key] = number
            elif _value(sample) is None:
                continue  # a native histogram
            elif part is not None:
                self._add_part(found, family, sample, number, part, bound)
            elif self._keeps(name := _name(family, sample, line)):
                series = self._series(name, family, sample.labels)
                found.setdefault(series.key, _Plan(series, number))
        for key, number in created.items():
            if key in found:
                found[key].created = number
        for plan in found.values():
            plan.members.sort()
            _add_rules_of_buckets(rules, plan)
        return list(found.values())

    def _add_part(
        self, found: dict[str, _Plan], family: Metric, sample: Sample, number: int, part: str, bound: float | None
    ) -> None:
        """Add a sample of a histogram or summary to the plan of the whole."""
        if not self._keeps(family.name):
            return
        labels = {key: value for key, value in sample.labels.items() if key != _MEMBER_LABEL.get(part)}
        series = self._series(family.name, family, labels)
        plan = found.setdefault(series.key, _Plan(series))
        if bound is None:
            setattr(plan, part, number)
        else:
            plan.members.append((bound, number))

    def _series(self, name: str, family: Metric, labels: Mapping[str, str]) -> Series:
        about = family.documentation if self._with_help and family.documentation else None
        return Series.of(name, family.type, self._labels_of(labels), family.unit or None, about)


def _families(text: str, *, openmetrics: bool) -> Iterable[Metric]:
    if openmetrics:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse

        return parse(text)  # type: ignore[no-any-return,no-untyped-call] # the module has no types
    from prometheus_client.parser import text_string_to_metric_families

    return text_string_to_metric_families(text)


def _value(sample: Sample) -> float | None:
    """Return a sample's number; None for a native histogram, which the parser's types do not say."""
    return sample.value


def _name(family: Metric, sample: Sample, line: str) -> str:
    """Return the name that the target exposes: the parser adds ``_total`` to counters of the text format that lack it."""
    if family.type == "counter" and line and not line.lstrip().startswith((sample.name, "{")):
        return sample.name.removesuffix("_total")
    return sample.name


def _part(family: Metric, sample: Sample) -> tuple[str | None, float | None]:
    """Return what a sample is of a histogram or summary, and its bound or quantile. No part: a series of its own."""
    part = _PARTS.get(family.type, {}).get(sample.name[len(family.name) :])
    label = _MEMBER_LABEL.get(part or "")
    if label is None:
        return part, None
    try:
        bound = float(sample.labels[label])
    except (KeyError, ValueError):
        return None, None
    return (None, None) if math.isnan(bound) else (part, bound)


def _add_rules(rules: _Rules, family: Metric, sample: Sample, number: int) -> None:
    suffix = sample.name[len(family.name) :]
    if suffix in _NEVER_NEGATIVE:
        rules.not_negative.append(number)
    if suffix in _WHOLE:
        rules.whole.append(number)
    if family.type == "summary" and not suffix:
        rules.quantiles.append(number)
    if family.type in ("info", "stateset"):
        rules.fixed[number] = sample.value


def _add_rules_of_buckets(rules: _Rules, plan: _Plan) -> None:
    if plan.members and plan.series.type != "summary":
        rules.rising.append([number for _bound, number in plan.members])
        if plan.count is not None:
            rules.equal.append((plan.members[-1][1], plan.count))


def _layout(
    lines: list[str], numbered: list[int], samples: Sequence[Sample], rules: _Rules, *, openmetrics: bool
) -> _Layout | None:
    """Return what a document has besides numbers, None if a line has more than a number at its end."""
    kept = list(lines)
    for number, sample in zip(numbered, samples, strict=True):
        head, space, rest = lines[number].rpartition(" ")
        if not (head and rest and _NUMBERS.fullmatch(rest)) or _value(sample) is None or sample.exemplar:
            return None
        if float(rest) != sample.value and not math.isnan(sample.value):
            return None
        kept[number] = head + space
    if not openmetrics:
        rules = _Rules()  # the text format has none
    return _Layout(openmetrics, kept, numbered, rules)


def _numbers(plan: _Plan) -> Iterable[int]:
    own = (plan.value, plan.count, plan.sum)
    return [*(each for each in own if each is not None), *(number for _bound, number in plan.members)]


def _points(plans: Sequence[_Plan], samples: _Samples) -> list[Point]:
    values = samples.values
    points = []
    for plan in plans:
        start = None if plan.created is None else _millis(values[plan.created])
        if plan.value is not None:
            point = Point(plan.series, values[plan.value], start=start)
        else:
            point = Point(plan.series, _distribution(plan, values), start=start)
        if samples.times:
            point.timestamp = max((samples.times[each] for each in _numbers(plan) if each in samples.times), default=None)
        if samples.exemplars:
            point.exemplars = [samples.exemplars[each] for each in _numbers(plan) if each in samples.exemplars]
        points.append(point)
    return points


def _distribution(plan: _Plan, values: Sequence[float]) -> Histogram | Summary:
    count = None if plan.count is None else values[plan.count]
    total = None if plan.sum is None else values[plan.sum]
    if plan.series.type == "summary":
        quantiles = [quantile for quantile, _number in plan.members]
        return Summary(quantiles, [values[number] for _quantile, number in plan.members], count, total)
    finite = [(bound, number) for bound, number in plan.members if bound != math.inf]
    if count is None and len(finite) < len(plan.members):
        count = values[plan.members[-1][1]]
    return Histogram([bound for bound, _number in finite], [values[number] for _bound, number in finite], count, total)


def _exemplar(sample: Sample) -> Exemplar:
    exemplar = sample.exemplar
    assert exemplar is not None  # noqa: S101 (checked by the caller)
    return Exemplar(exemplar.labels, float(exemplar.value), None if exemplar.timestamp is None else _millis(exemplar.timestamp))


def _millis(seconds: SupportsFloat) -> int:
    """Return a time in milliseconds. Raises ValueError or OverflowError for one that Kafka cannot have."""
    millis = round(float(seconds) * 1000)
    if not 0 <= millis < _MOST_MILLIS:
        raise ValueError(f"the time {millis / 1000} s is before 1970 or too late")
    return millis
