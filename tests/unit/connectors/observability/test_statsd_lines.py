"""Lines of StatsD: types, sample rates, tags of DogStatsD, and what is no line."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluiceway.connectors.observability.records import metric_struct
from sluiceway.connectors.observability.statsd_aggregate import Aggregates
from sluiceway.connectors.observability.statsd_lines import Sample, samples_of
from sluiceway.errors import DataError

TYPES = {"c": "counter", "g": "gauge", "ms": "timer", "h": "histogram", "d": "distribution"}
PLAIN = st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=":|,#@")
NAMES = st.text(PLAIN, min_size=1, max_size=10)
VALUES = st.text(PLAIN, max_size=5)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9).map(float)
TAGS = st.dictionaries(NAMES, VALUES, max_size=4)
RATES = st.none() | st.floats(0.001, 1)
TIMES = st.none() | st.integers(0, 2**33)


def sections(rate: float | None, tags: dict[str, str], time: int | None, order: Any) -> str:
    """Return the sections after the type in an order, among those that are left out."""
    found = ["c:ci-1", "e:it-false"]
    found += [] if rate is None else [f"@{rate!r}"]
    found += ["#" + ",".join(f"{name}:{value}" if value else name for name, value in tags.items())] if tags else []
    found += [] if time is None else [f"T{time}"]
    order.shuffle(found)
    return "".join(f"|{each}" for each in found)


@given(NAMES, st.sampled_from(sorted(TYPES)), st.lists(NUMBERS, min_size=1, max_size=4), RATES, TAGS, TIMES, st.randoms())
def test_a_line_of_numbers_is_read(
    name: str, kind: str, numbers: list[float], rate: float | None, tags: dict[str, str], time: int | None, order: Any
) -> None:
    line = f"{name}:{':'.join(map(repr, numbers))}|{kind}{sections(rate, tags, time, order)}"
    found = samples_of(line.encode())
    assert [sample.value for sample in found] == numbers
    for sample, number in zip(found, numbers, strict=True):
        assert (sample.series.name, sample.series.type, sample.series.labels) == (name, TYPES[kind], tags)
        assert (sample.rate, sample.timestamp) == (rate, None if time is None else time * 1000)
        assert sample.change is (kind == "g" and repr(number).startswith("-"))
        assert sample.series.unit == ("ms" if kind == "ms" else None)
        metric_struct(sample.point(), 1).validate()


@given(NAMES, st.text(st.one_of(PLAIN, st.just(":")), min_size=1).filter(lambda each: each == each.strip()), TAGS, st.randoms())
def test_a_member_of_a_set_is_any_text(name: str, member: str, tags: dict[str, str], order: Any) -> None:
    [sample] = samples_of(f"{name}:{member}|s{sections(None, tags, None, order)}".encode())
    assert (sample.member, sample.value, sample.series.type, sample.series.labels) == (member, None, "set", tags)


@given(st.binary(max_size=60) | st.text(st.sampled_from("ab1:|@#,+-.eEcgmshdT_{}\n \u00e9"), max_size=40).map(str.encode))
@example(b"a:1|c|T" + b"9" * 30)
@example(b"a:1e999|c")
@example("a:\u0661|c".encode())
@example("a:1|c|T\u00b2".encode())
def test_any_bytes_are_samples_that_are_valid_or_an_error(line: bytes) -> None:
    try:
        found = samples_of(line)
    except DataError:
        return
    assert found
    for sample in found:
        assert sample.value is None or math.isfinite(sample.value)
        metric_struct(sample.point(), 1).validate()


@pytest.mark.parametrize(
    ("text", "change"), [("5", False), ("+5", True), ("-5", True), ("-0.5e1", True), ("5.", False), (".5", False)]
)
def test_a_signed_gauge_is_a_change(text: str, change: bool) -> None:
    [sample] = samples_of(f"g:{text}|g".encode())
    assert (sample.value, sample.change) == (float(text), change)
    assert sample.point().temporality == ("delta" if change else None)


def test_a_tag_may_have_no_value_and_come_twice() -> None:
    [sample] = samples_of(b"a:1|c|#b:1:2,c,,b:3,:x\r")
    assert sample.series.labels == {"b": "1:2,3", "c": ""}
    assert sample.series.key == 'a{b="1:2,3",c=""}'
    assert samples_of(b"a:1|c")[0].point().temporality == "delta"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "it is not of the form name:value|type"),
        (b"a", "it is not of the form name:value|type"),
        (b"a:1", "it is not of the form name:value|type"),
        (b"a|c", "it is not of the form name:value|type"),
        (b":1|c", "it is not of the form name:value|type"),
        (b"a:|c", "'' is not a number"),
        (b"a:1_0|c", "'1_0' is not a number"),
        (b"a:0x1|c", "'0x1' is not a number"),
        (b"a:nan|g", "'nan' is not a number"),
        (b"a:1:|c", "'' is not a number"),
        (b"a:1e999|c", "'1e999' is too large"),
        (b"a:1|x", "its type 'x' is none of c, g, s, ms, h, d"),
        (b"a:|s", "it has no member of the set"),
        (b"a:1|c|@0", "its sample rate is not above 0 and at most 1"),
        (b"a:1|c|@1.1", "its sample rate is not above 0 and at most 1"),
        (b"a:1|c|@x", "'x' is not a number"),
        (b"a:1|c|@0.1|@0.2", "it has the section @ twice"),
        (b"a:1|c|#a|#b", "it has the section # twice"),
        (b"a:1|c|?", "its section '?' is not known"),
        (b"a:1|c|", "its section '' is not known"),
        (b"a:1|c|T1.5", "its time is no number of seconds"),
        (b"a:1|c|T9223372036854776", "its time is no number of seconds"),
        (b"\xff:1|c", "it is not UTF-8"),
        (b"_e{1,1}:a|b", "it is an event of DogStatsD, which is no metric"),
        (b"_sc|a|0", "it is a service check of DogStatsD, which is no metric"),
    ],
)
def test_a_bad_line_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(DataError) as raised:
        samples_of(line)
    assert str(raised.value).startswith(reason)


# ---- aggregates


def aggregated(*lines: str, most: int = 100) -> dict[str, dict[str, Any]]:
    aggregates = Aggregates(most)
    for line in lines:
        assert all(map(aggregates.add, samples_of(line.encode())))
    return flushed(aggregates)


def flushed(aggregates: Aggregates) -> dict[str, dict[str, Any]]:
    structs = {f"{each.series.type} {each.series.key}": metric_struct(each, 1) for each in aggregates.flush(1000, 2000)}
    for struct in structs.values():
        struct.validate()
    return {key: dict(struct) for key, struct in structs.items()}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "a{x"]),
            st.sampled_from(sorted(TYPES)),
            st.integers(-100, 100),
            st.sampled_from([None, 0.5, 0.25]),
        ),
        max_size=30,
    )
)
def test_aggregates_are_those_of_the_lines(lines: list[tuple[str, str, int, float | None]]) -> None:
    texts = [f"{name}:{number}|{kind}" + ("" if rate is None else f"|@{rate}") for name, kind, number, rate in lines]
    found = aggregated(*texts)
    assert set(found) == {f"{TYPES[kind]} {name}" for name, kind, *_ in lines}
    for identity, value in found.items():
        own = [(number, 1 / (rate or 1)) for name, kind, number, rate in lines if f"{TYPES[kind]} {name}" == identity]
        total = sum(number * weight for number, weight in own)
        assert value["timestamp"] == 2000
        if value["type"] == "gauge":
            last = 0
            for number, _ in own:
                last = last + number if number < 0 else number
            assert (value["value"], value["temporality"]) == (last, None)
            continue
        assert (value["start_timestamp"], value["temporality"]) == (1000, "delta")
        if value["type"] == "counter":
            assert value["value"] == total
        else:
            numbers, count = [number for number, _ in own], sum(weight for _, weight in own)
            assert value["value"] == pytest.approx(total / count)
            assert dict(value["histogram"]) == {
                "count": count,
                "sum": total,
                "bounds": [],
                "counts": [],
                "min": min(numbers),
                "max": max(numbers),
            }


def test_a_set_counts_its_members_in_each_interval() -> None:
    aggregates = Aggregates(100)
    for line in (b"s:a|s", b"s:b|s", b"s:a|s"):
        aggregates.add(*samples_of(line))
    assert aggregates.lines == 3
    assert flushed(aggregates)["set s"]["value"] == 2.0
    assert aggregates.lines == 0
    aggregates.add(*samples_of(b"s:a|s"))
    assert flushed(aggregates)["set s"]["value"] == 1.0
    assert flushed(aggregates) == {}


def test_a_gauge_keeps_its_value_over_intervals_and_is_returned_if_it_was_set() -> None:
    aggregates = Aggregates(2)
    aggregates.add(*samples_of(b"g:10|g"))
    aggregates.flush(0, 1)
    assert flushed(aggregates) == {}
    aggregates.add(*samples_of(b"g:-3|g"))
    assert flushed(aggregates)["gauge g"]["value"] == 7.0
    for line in (b"h:1|g", b"i:1|g"):  # the value of the gauge that was set least recently is forgotten
        aggregates.add(*samples_of(line))
    aggregates.flush(0, 1)
    aggregates.add(*samples_of(b"g:+1|g"))
    aggregates.add(*samples_of(b"i:+1|g"))
    found = flushed(aggregates)
    assert (found["gauge g"]["value"], found["gauge i"]["value"]) == (1.0, 2.0)


def test_the_limit_on_series_and_members() -> None:
    aggregates = Aggregates(2)

    def added(line: bytes) -> bool:
        [sample] = samples_of(line)
        return aggregates.add(sample)

    assert [added(line) for line in (b"a:1|c", b"b:x|s", b"c:1|c", b"a:2|c", b"b:y|s", b"b:z|s", b"b:x|s")] == [
        *(True, True, False, True, True, False, True)
    ]
    assert aggregates.lines == 5
    found = flushed(aggregates)
    assert (found["counter a"]["value"], found["set b"]["value"]) == (3.0, 2.0)
    assert [added(line) for line in (b"c:1|c", b"b:v|s", b"b:w|s")] == [True] * 3, "the next interval has room"


def test_a_sample_of_its_own_is_a_point() -> None:
    [sample] = samples_of(b"a:5|ms|@0.5|#x:y|T3")
    assert isinstance(sample, Sample)
    value = dict(metric_struct(sample.point(), 9))
    assert (value["type"], value["value"], value["sample_rate"], value["timestamp"]) == ("timer", 5.0, 0.5, 3000)
    assert (value["histogram"], value["unit"], value["labels"]) == (None, "ms", {"x": "y"})
