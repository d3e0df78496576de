"""Documents of targets: the formats, series, and the reading of numbers only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Info, Summary, generate_latest
from prometheus_client import Enum as StateSet
from prometheus_client import Histogram as ClientHistogram
from prometheus_client.openmetrics import exposition as openmetrics_exposition

from sluiceway.connectors.observability import exposition
from sluiceway.connectors.observability.exposition import Exposition
from sluiceway.connectors.observability.records import Exemplar, Histogram, Point
from sluiceway.connectors.observability.records import Summary as Quantiles
from sluiceway.errors import DataError


def read(text: str, *, openmetrics: bool = False, **options: Any) -> dict[str, Point]:
    return {point.series.key: point for point in Exposition(**options).points(text, openmetrics=openmetrics)}


def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    Counter("orders", "Orders.", ["shop"], registry=made).labels("a").inc(3, exemplar={"trace_id": "t1"})
    Gauge("stock_bytes", "Stock.", unit="bytes", registry=made).set(7.5)
    ClientHistogram("wait_seconds", "Wait.", buckets=(0.1, 1), registry=made).observe(0.5)
    Summary("size", "Size.", registry=made).observe(2)
    Info("build", "Build.", registry=made).info({"version": "1"})
    StateSet("light", "Light.", states=["on", "off"], registry=made).state("off")
    return made


def openmetrics_text(made: CollectorRegistry) -> str:
    generate: Callable[[CollectorRegistry], bytes] = openmetrics_exposition.generate_latest
    return generate(made).decode()


def test_openmetrics_has_types_units_start_times_and_exemplars() -> None:
    found = read(openmetrics_text(registry()), openmetrics=True)
    orders = found['orders_total{shop="a"}']
    assert (orders.value, orders.series.type, orders.series.unit) == (3, "counter", None)
    assert orders.start is not None
    assert orders.start > 1.6e12
    assert [(each.labels, each.value) for each in orders.exemplars] == [({"trace_id": "t1"}, 3.0)]
    assert (found["stock_bytes"].value, found["stock_bytes"].series.unit) == (7.5, "bytes")
    assert found["wait_seconds"].value == Histogram([0.1, 1.0], [0.0, 1.0], 1.0, 0.5)
    assert found["wait_seconds"].start is not None
    assert found["size"].value == Quantiles([], [], 1.0, 2.0)
    assert found['build_info{version="1"}'].series.type == "info"
    assert [found[f'light{{light="{state}"}}'].value for state in ("on", "off")] == [0, 1]
    assert len(found) == 7


def test_the_text_format_has_the_same_series_but_start_times_are_gauges() -> None:
    found = read(generate_latest(registry()).decode())
    assert found['orders_total{shop="a"}'].value == 3
    assert found['orders_created{shop="a"}'].series.type == "gauge"
    assert found["wait_seconds"].value == Histogram([0.1, 1.0], [0.0, 1.0], 1.0, 0.5)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("# TYPE a counter\na 1\n", "a", 1),  # the parser would call it a_total
        ("# TYPE a counter\na_total 1\n", "a_total", 1),
        ("# TYPE a_total counter\na_total 1\n", "a_total", 1),
        ("a 1\n", "a", 1),
        ("a\t1\n", "a", 1),
        ('a{b="x y",c="}"}  0x\n', None, None),
        ('a{b="x y",c="} 5"} 6\n', 'a{b="x y",c="} 5"}', 6),
        ('a{b="\\"\\\\\\n"} +Inf', 'a{b="\\"\\\\\\n"}', math.inf),
        ('# TYPE h histogram\nh_bucket{le="x"} 1\n', 'h_bucket{le="x"}', 1),
        ('# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\n', "h", Histogram([1.0], [1.0], 2.0, None)),
        ('# TYPE s summary\ns{quantile="0.5"} 1\ns_sum 2\n', "s", Quantiles([0.5], [1.0], None, 2.0)),
        ("a_1 1_0\n", None, None),
        ("a 1 99999999999999999999999\n", None, None),
        ("a 1 NaN\n", None, None),
        ("a 1 -5\n", None, None),
        (f"a 1{'0' * 400}\n", None, None),
    ],
)
def test_lines(text: str, key: str | None, value: object) -> None:
    if key is None:
        with pytest.raises(DataError, match="is not of the text format"):
            read(text)
    else:
        assert {name: point.value for name, point in read(text).items()} == {key: value}


def test_times_of_the_target_are_kept_and_such_series_do_not_become_stale() -> None:
    reader = Exposition()
    [one, two] = reader.points("a 1 1700000000123\nb 2\n", openmetrics=False)
    assert (one.timestamp, two.timestamp) == (1700000000123, None)
    assert list(reader.series) == ["b"]
    without = Exposition(with_times=False)
    assert [point.timestamp for point in without.points("a 1 1700000000123\n", openmetrics=False)] == [None]
    assert list(without.series) == ["a"]


def test_names_are_filtered_and_samples_counted_before() -> None:
    reader = Exposition(keeps=lambda name: name != "b")
    assert [point.series.name for point in reader.points("a 1\nb 2\n", openmetrics=False)] == ["a"]
    assert reader.samples == 2


# ---- numbers only

_TEXTS = [
    "a 1\n",
    'a{b="c"} 1\na{b="d"} 2\n',
    "# HELP a about\n# TYPE a counter\na_total 1\n",
    '# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_count 2\nh_sum 3\n',
    '# TYPE s summary\ns{quantile="0.5"} 1\ns_count 1\ns_sum 3\n',
]
_NUMBER = st.sampled_from(["0", "1", "2", "-1", "0.5", "NaN", "+Inf", "1e3", "1_0", "", "x", "1 5", "1 ", "inf"])
_LINES = st.sampled_from(
    [
        *(
            "a {}",
            'a{{b="c"}} {}',
            'a{{b="d"}} {}',
            "# TYPE a gauge",
            "# TYPE a counter",
            "# HELP a x",
            "# HELP a x y",
            "a_total {}",
        ),
        *(
            "# TYPE h histogram",
            'h_bucket{{le="1"}} {}',
            'h_bucket{{le="+Inf"}} {}',
            "h_count {}",
            "h_sum {}",
            "a_created {}",
            "",
        ),
        *("# TYPE s summary", 's{{quantile="0.5"}} {}', "s_count {}", "s_sum {}", "# TYPE i info", 'i_info{{v="1"}} {}', "# EOF"),
        *(
            "# TYPE g stateset",
            'g{{g="on"}} {}',
            'a_total {} # {{t="1"}} 1',
            "a{{}} {}",
            'a{{b="c",}} {}',
            "  a {}",
            "# TYPE h gaugehistogram",
        ),
        *("h_gcount {}", "h_gsum {}", "# UNIT a a"),
    ]
)
_DOCUMENT = st.lists(_LINES, max_size=7)


def _filled(lines: list[str], numbers: list[str], *, ends: bool) -> str:
    text = "".join(f"{line.format(number)}\n" for line, number in zip(lines, numbers, strict=False))
    return f"{text}# EOF\n" if ends else text


def outcome(reader: Exposition, text: str, *, openmetrics: bool) -> object:
    try:
        points = reader.points(text, openmetrics=openmetrics)
    except DataError as error:
        return str(error)
    # As texts, because NaN is not equal to itself.
    return repr(points), sorted(reader.series), reader.samples


@pytest.mark.parametrize("openmetrics", [False, True])
def test_reading_numbers_only_is_as_reading_all(openmetrics: bool) -> None:
    @given(
        _DOCUMENT, st.lists(st.lists(_NUMBER, min_size=7, max_size=7), min_size=1, max_size=4), st.lists(_DOCUMENT, max_size=1)
    )
    @example(["a {}"], [["1"] * 7, ["2"] * 7], [])
    @example(["# TYPE h histogram", 'h_bucket{{le="1"}} {}', 'h_bucket{{le="+Inf"}} {}'], [["0", "1", "1"], ["0", "2", "1"]], [])
    def check(lines: list[str], rounds: list[list[str]], others: list[list[str]]) -> None:
        kept = Exposition()
        for numbers in rounds:
            for document in (lines, *others, lines):
                text = _filled(document, numbers, ends=openmetrics)
                assert outcome(kept, text, openmetrics=openmetrics) == outcome(Exposition(), text, openmetrics=openmetrics)

    check()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# HELP a x\na 1\n", "# HELP a x y\na 1\n"),
        ("# TYPE h gauge\nh 1\n", "# TYPE h gaugehistogram\nh 1\n"),
        ("a 1\n\n", "a 1\nb 2\n"),
        ("a 1\n", "a 1 5\n"),
        ("a 1\n", "a 1\nb 2\n"),
        ("a 1\nb 2\n", "b 1\na 2\n"),
    ],
)
def test_a_change_of_more_than_numbers_is_seen(before: str, after: str) -> None:
    kept = Exposition(with_help=True)
    kept.points(before, openmetrics=False)
    assert outcome(kept, after, openmetrics=False) == outcome(Exposition(with_help=True), after, openmetrics=False)


@pytest.mark.parametrize("generate", [generate_latest, openmetrics_exposition.generate_latest])
def test_only_a_changed_document_is_parsed(generate: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bool] = []
    families = exposition._families

    def counting(text: str, *, openmetrics: bool) -> object:
        parsed.append(openmetrics)
        return families(text, openmetrics=openmetrics)

    monkeypatch.setattr(exposition, "_families", counting)
    made = CollectorRegistry()
    gauge, wait = Gauge("a", "A.", ["b"], registry=made), ClientHistogram("w", "W.", registry=made)
    reader, openmetrics = Exposition(), generate is not generate_latest
    series = None
    for number in range(5):
        gauge.labels("x").set(number)
        wait.observe(number)
        points = {point.series.key: point.value for point in reader.points(generate(made).decode(), openmetrics=openmetrics)}
        assert points['a{b="x"}'] == number
        found = points["w"]
        assert isinstance(found, Histogram)
        assert found.count == number + 1
        assert series is None or reader.series is series
        series = reader.series
    assert len(parsed) == 1
    gauge.labels("y").set(1)
    assert len(reader.points(generate(made).decode(), openmetrics=openmetrics)) == len(points) + 1
    assert len(parsed) == 2


def test_exemplars_are_read_with_their_times() -> None:
    text = '# TYPE a counter\na_total 5 # {trace_id="t"} 1.5 1700000000.25\n# EOF\n'
    [point] = Exposition().points(text, openmetrics=True)
    assert point.exemplars == [Exemplar({"trace_id": "t"}, 1.5, 1700000000250)]
