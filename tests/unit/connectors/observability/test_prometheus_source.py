"""The Prometheus source with real HTTP servers: scrapes, targets that are down, staleness, gaps, discovery, credentials."""

from __future__ import annotations

import itertools
import json
import logging
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from sluiceway.api import SourceRecord
from sluiceway.connectors.observability import PrometheusSourceConnector
from sluiceway.connectors.observability.prometheus import PrometheusSourceTask, TargetState
from sluiceway.connectors.observability.prometheus_config import prometheus_options
from sluiceway.connectors.observability.scraper import Scrape
from sluiceway.connectors.observability.targets import Discovery, Target
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from sluiceway.testing import SourceConnectorContract
from support.certificates import Authority
from support.eventually import LIMIT, eventually
from support.metric_targets import OPENMETRICS, Answer, answering, exposing, large_registry

OWN = {"up", "scrape_duration_seconds", "scrape_samples_scraped"}
URL = "http://a:1/metrics"


class Running:
    """A task and its context, as the runtime has them."""

    def __init__(self, config: Mapping[str, str], offsets: MemoryOffsets | None = None) -> None:
        self.config = {"name": "shop", "topic": "t", "scrape.interval.ms": "500", "scrape.timeout.ms": "500", **config}
        self.context = MemorySourceContext(self.config, offsets)
        self.records: list[SourceRecord] = []
        self.task = PrometheusSourceTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def poll(self) -> list[SourceRecord]:
        found = list(self.task.poll() or ())
        self.context.offset_storage_reader.store_all(each for each in found if each.source_partition is not None)
        self.records += found
        return found

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Poll until a record's value is as wanted, and return it."""

        def polled() -> dict[str, Any] | None:
            return next((value for value in map(value_of, self.poll()) if condition(value)), None)

        return eventually(polled)

    def values(self, name: str) -> list[dict[str, Any]]:
        return [value for value in map(value_of, self.records) if value["name"] == name]


def value_of(record: SourceRecord) -> dict[str, Any]:
    record.value.validate()
    return dict(record.value)


@contextmanager
def running(config: Mapping[str, str], offsets: MemoryOffsets | None = None) -> Iterator[Running]:
    made = Running(config, offsets)
    try:
        yield made
    finally:
        made.task.stop()


def is_up(value: dict[str, Any]) -> bool:
    return bool(value["name"] == "up" and value["value"] == 1)


def is_down(value: dict[str, Any]) -> bool:
    return bool(value["name"] == "up" and value["value"] == 0)


def test_a_scrape_has_a_record_for_each_series_and_the_scrapes_own() -> None:
    made = CollectorRegistry()
    Gauge("stock", "Stock.", ["item"], registry=made).labels('a"b').set(5)
    with exposing(made) as address, running({"targets": address, "labels.env": "prod"}) as source:
        up = source.until(is_up)
    labels = {"job": "shop", "instance": address, "env": "prod"}
    found = {value["name"]: value for value in map(value_of, source.records) if value["timestamp"] == up["timestamp"]}
    stock, samples = found["stock"], found["scrape_samples_scraped"]
    assert (stock["value"], stock["labels"], stock["type"]) == (5.0, {**labels, "item": 'a"b'}, "gauge")
    assert f'stock{{env="prod",instance="{address}",item="a\\"b",job="shop"}}' in [record.key for record in source.records]
    assert (samples["value"], samples["labels"]) == (1.0, labels)
    assert found["scrape_duration_seconds"]["value"] > 0
    assert stock["gap_since"] is None
    assert source.task.metrics()["targets"] == 1


def test_a_target_that_is_down_is_up_0_and_its_series_become_stale_once(caplog: pytest.LogCaptureFixture) -> None:
    answers = [Answer("a 1\nb 2\n"), Answer("a 1\n")]
    state = {"answer": answers[0]}
    with answering(lambda _request: state["answer"]) as address, running({"targets": address}) as source:
        source.until(is_up)
        state["answer"] = answers[1]
        ended = source.until(lambda value: value["stale"] and value["name"] == "b")
        assert ended["value"] is None
        source.until(is_up)
        state["answer"] = Answer("no", 503)
        source.until(lambda value: value["stale"] and value["name"] == "a")
        source.until(is_down)
        source.until(is_down)
        assert source.task.metrics()["targets-down"] == 1
        waits = source.context.waits_for
        assert waits[-1:] == [f"No target can be scraped. http://{address}/metrics: HTTP 503"]
        state["answer"] = answers[0]
        source.until(is_up)
        assert waits[-1:] == [None]
    for name in ("a", "b"):
        marks = [value["stale"] for value in source.values(name)]
        assert True in marks
        assert (True, True) not in itertools.pairwise(marks)
    assert not [value for name in OWN for value in source.values(name) if value["stale"]]
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert told.count(f"http://{address}/metrics cannot be scraped: HTTP 503. up is 0 until it can.") == 1


@pytest.mark.parametrize(
    ("answer", "config", "message"),
    [
        (Answer("a one\n"), {}, "is not of the text format"),
        (Answer("a 1\n", type=OPENMETRICS), {}, "is not of OpenMetrics: Missing # EOF"),
        (Answer(b"\xff 1\n"), {}, "utf-8"),
        (Answer("a 1\n" * 100), {"scrape.body.size.limit": "300"}, r"more than 300 bytes \(scrape.body.size.limit\)"),
        (Answer("", 302), {}, "HTTP 302"),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_target_that_is_down(
    answer: Answer, config: dict[str, str], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> bool:
        source.poll()
        return any(re.search(message, each.getMessage()) for each in caplog.records if each.levelno == logging.WARNING)

    with answering(lambda _request: answer) as address, running({"targets": address, **config}) as source:
        source.until(is_down)
        eventually(told)
    assert not [record for record in source.records if value_of(record)["name"] not in OWN]


def test_a_target_that_does_not_answer_in_time_delays_no_other() -> None:
    def slow(_request: BaseHTTPRequestHandler) -> Answer:
        time.sleep(1.5)  # longer than the timeout
        return Answer("a 1\n")

    with (
        answering(slow) as one,
        answering(lambda _request: Answer("b 1\n")) as other,
        running({"targets": f"{one},{other}"}) as source,
    ):
        down = source.until(is_down)
        source.until(is_up)
    assert down["labels"]["instance"] in (one, other)
    assert one not in [each["labels"]["instance"] for each in source.values("up") if each["value"]]


def test_nobody_listens() -> None:
    with answering(lambda _request: Answer("")) as address:
        pass
    with running({"targets": address}) as source:
        source.until(is_down)
    assert source.values("scrape_samples_scraped")[0]["value"] == 0


@pytest.mark.parametrize("config", [{"targets": "127.0.0.1:1", "connection.bearer.token": "hüsh"}, {"targets": "a..b:1"}])
def test_what_http_cannot_send_is_a_target_that_is_down(config: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with running(config) as source:
        source.until(is_down)
        source.until(is_down)
    assert "hüsh" not in caplog.text


@pytest.mark.parametrize(
    ("config", "header"),
    [
        ({"connection.username": "me", "connection.password": "hush"}, "Basic bWU6aHVzaA=="),
        ({"connection.bearer.token": "hush"}, "Bearer hush"),
        ({}, None),
    ],
)
def test_credentials_and_formats_are_sent(config: dict[str, str], header: str | None) -> None:
    seen: list[Mapping[str, str]] = []

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        seen.append(dict(request.headers))
        return Answer("")

    with answering(answer) as address, running({"targets": address, **config}) as source:
        source.until(is_up)
    assert seen[0].get("authorization", seen[0].get("Authorization")) == header
    lower = {key.lower(): value for key, value in seen[0].items()}
    assert lower["accept"].startswith("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4")
    assert "hush" not in repr(prometheus_options(source.config))


def test_https_needs_a_trusted_certificate(tmp_path: Path) -> None:
    authority = Authority("tests")
    certificate, key = authority.issue("127.0.0.1")
    pem, trust = tmp_path / "server.pem", tmp_path / "trust.pem"
    pem.write_text(key + certificate)
    trust.write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with answering(lambda _request: Answer("a 1\n"), tls=context) as address:
        patient = {"targets": address, "scheme": "https", "scrape.interval.ms": "500", "scrape.timeout.ms": "500"}
        with running(patient) as source:
            source.until(is_down)
        with running({**patient, "ssl.truststore.location": str(trust)}) as source:
            source.until(is_up)


def test_files_and_a_url_of_targets_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "targets.json"
    file.write_text("[]")
    groups: list[Any] = []
    paths: list[tuple[str, str | None]] = []

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        paths.append((request.path, request.headers.get("Authorization")))
        return Answer(json.dumps(groups) if request.path == "/sd" else "a 1\n")

    with answering(answer) as address:
        config = {
            "file.sd.files": str(file),
            "http.sd.url": f"http://{address}/sd",
            "http.sd.bearer.token": "of-sd",
            "connection.bearer.token": "of-targets",
            "sd.refresh.interval.ms": "100",
        }
        with running(config) as source:
            file.write_text(json.dumps([{"targets": [address], "labels": {"from": "file", "__metrics_path__": "/file"}}]))
            source.until(lambda value: is_up(value) and value["labels"].get("from") == "file")
            groups.append({"targets": [address], "labels": {"from": "url"}})
            source.until(lambda value: is_up(value) and value["labels"].get("from") == "url")
            file.write_text("[]")
            source.until(lambda value: value["name"] == "up" and value["stale"] and value["labels"]["from"] == "file")
            groups[0] = {"targets": [address], "labels": {"from": "other"}}
            source.until(lambda value: is_up(value) and value["labels"].get("from") == "other")
            groups[0] = {"targets": 5}
            eventually(lambda: bool(source.poll()) and "cannot be read" in str(source.context.waits_for[-1:]))
            source.until(lambda value: is_up(value) and value["labels"]["from"] == "other")
    stale = [(each["name"], each["labels"]["from"]) for each in map(value_of, source.records) if each["stale"]]
    for kind in ("file", "url"):
        assert {name for name, of in stale if of == kind} == {"a", *OWN}
    assert {token for path, token in paths if path == "/sd"} == {"Bearer of-sd"}
    assert {token for path, token in paths if path != "/sd"} == {"Bearer of-targets"}


def test_a_slow_consumer_costs_scrapes_which_are_a_gap() -> None:
    with answering(lambda _request: Answer("a 1\n")) as address, running({"targets": address}) as source:
        first = source.until(is_up)
        eventually(lambda: source.task.metrics()["scrapes-skipped"] > 2)
        assert len(source.task._events) == 1
        source.until(lambda value: value["name"] == "a")
        marked = source.until(lambda value: value["name"] == "a" and value["gap_since"] is not None)
    assert marked["gap_since"] >= first["timestamp"]


def test_tasks_share_the_targets() -> None:
    connector = PrometheusSourceConnector()
    addresses = [f"host-{number}:1" for number in range(50)]
    connector.start({"name": "shop", "topic": "t", "targets": ",".join(addresses)})
    configs = connector.task_configs(3)
    assert len(configs) == 3
    assert len(connector.task_configs(60)) == 50
    shares = [set(Discovery(prometheus_options(config)).targets()) for config in configs]
    assert all(shares)
    assert sum(map(len, shares)) == len(set.union(*shares)) == 50


# ---- gaps and staleness, without a server


def state(last: int | None = None, **config: str) -> TargetState:
    options = prometheus_options(
        {"name": "shop", "topic": "t", "targets": "a:1", "scrape.interval.ms": "1000", "scrape.timeout.ms": "10", **config}
    )
    return TargetState(TARGET, options, last)


TARGET = Target(URL, {"job": "shop"})
PHASE = TARGET.phase(1000)


def at(number: int, late: int = 0) -> int:
    """Return when a scrape is due, in milliseconds."""
    return number * 1000 + PHASE + late


def scrape(number: int, body: str = "a 1\n", late: int = 0, error: str | None = None) -> Scrape:
    return Scrape(TARGET, at(number, late), 0.1, body.encode(), error=error)


def gaps(records: list[SourceRecord]) -> dict[str, int | None]:
    return {value["name"]: value["gap_since"] for value in map(value_of, records) if not value["stale"]}


def test_only_a_scrape_that_is_missing_is_a_gap() -> None:
    made = state(last=at(1_000_000, 900))
    assert set(gaps(made.scraped(scrape(1_000_001))).values()) == {None}
    assert set(gaps(made.scraped(scrape(1_000_002, late=999))).values()) == {None}
    assert set(gaps(made.scraped(scrape(1_000_004))).values()) == {at(1_000_002, 999)}
    assert set(gaps(made.scraped(scrape(1_000_005))).values()) == {None}
    assert set(gaps(state().scraped(scrape(1_000_001))).values()) == {None}


def test_a_gap_of_series_lasts_until_the_target_answers() -> None:
    made = state(last=at(1_000_000))
    assert gaps(made.scraped(scrape(1_000_009, error="down"))) == dict.fromkeys(OWN, at(1_000_000))
    assert gaps(made.scraped(scrape(1_000_010, body="bad"))) == dict.fromkeys(OWN)
    assert gaps(made.scraped(scrape(1_000_011))) == {"a": at(1_000_000), **dict.fromkeys(OWN)}
    assert gaps(made.scraped(scrape(1_000_012))) == {"a": None, **dict.fromkeys(OWN)}


def test_only_the_last_record_of_a_scrape_has_its_offset() -> None:
    made = state()
    first, second = made.scraped(scrape(1_000_000)), made.scraped(scrape(1_000_001))
    assert [record.source_offset for record in first] == [None, None, None, {"timestamp": at(1_000_000)}]
    assert [record.source_offset for record in second] == [{"timestamp": at(1_000_000)}] * 3 + [{"timestamp": at(1_000_001)}]
    assert [record.source_partition for record in second] == [{"target": URL}] * 4
    assert [record.timestamp for record in second] == [at(1_000_001)] * 4


def test_a_target_that_is_gone_has_one_marker_for_each_series() -> None:
    made = state()
    made.scraped(scrape(1_000_000, body="a 1\nb 1\n"))
    ended = [value_of(record) for record in made.gone(at(1_000_001))]
    assert sorted(each["name"] for each in ended if each["stale"]) == sorted({"a", "b", *OWN})
    assert state().gone(at(1)) == []


# ---- keys


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({}, "targets", "nothing to scrape"),
        ({"targets": "a:1", "scrape.interval.ms": "1000"}, "scrape.timeout.ms", "must be at most scrape.interval.ms"),
        ({"targets": "me:hush@a:1"}, "targets", "must not have a login"),
        ({"targets": "a b"}, "targets", "must be a host with a port"),
        ({"targets": "a", "http.sd.url": "x"}, "http.sd.url", "must be a host with a port"),
        ({"targets": "a", "connection.username": "me"}, "connection.password", "set both, or neither"),
        ({"targets": "a", "http.sd.password": "hush"}, "http.sd.username", "set both, or neither"),
        (
            {"targets": "a", "connection.username": "m", "connection.password": "hush", "connection.bearer.token": "hush"},
            "connection.bearer.token",
            "cannot be combined",
        ),
        ({"targets": "a", "metric.names.include": "("}, "metric.names.include", "is not a regular expression"),
        ({"targets": "a", "labels.a-b": "x"}, "job", "labels.a-b is no name of a label"),
        ({"targets": "a", "labels.__a": "x"}, "job", "labels.__a is no name of a label"),
    ],
)
def test_bad_configs_are_refused(config: dict[str, str], key: str, message: str) -> None:
    given = {"name": "shop", "topic": "t", **config}
    found = PrometheusSourceConnector.validate(given)
    assert {name for name, each in found.items() if each.errors} == {key}
    assert message in found[key].errors[0]
    assert "hush" not in found[key].errors[0]
    with pytest.raises(ConfigError):
        PrometheusSourceConnector().start(given)


def test_names_are_included_and_excluded() -> None:
    options = prometheus_options({"topic": "t", "targets": "a", "metric.names.include": "a.*", "metric.names.exclude": "ab|x"})
    assert [name for name in ("a", "ab", "abc", "x", "ba") if options.keeps(name)] == ["a", "abc"]


@pytest.mark.parametrize("offset", [{}, {"timestamp": "x"}, {"timestamp": -1}, {"timestamp": True}])
def test_offsets_that_are_no_times_are_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="must have the key 'timestamp'"):
        PrometheusSourceConnector().alter_offsets({}, [({"target": URL}, offset)])


def test_a_large_target_is_read_whole() -> None:
    """A slice of ``make bench-observability``, without a limit on time."""
    with (
        exposing(large_registry(5000)) as address,
        running({"targets": address, **{"scrape.interval.ms": "1000", "scrape.timeout.ms": "1000"}}) as source,
    ):
        source.until(is_up)
        source.until(is_up)
    # On a busy machine, the target may not answer each scrape.
    assert {each["value"] for each in source.values("scrape_samples_scraped")} - {0} == {5000}
    assert len(source.values("http_requests_in_progress")) % 5000 == 0


class TestContract(SourceConnectorContract):
    connector_class = PrometheusSourceConnector
    record_count = 4
    records_within = poll_within = LIMIT
    resumable = False

    @pytest.fixture
    def config(self) -> Iterator[dict[str, str]]:
        with answering(lambda _request: Answer("a 1\n")) as address:
            yield {"targets": address, "topic": "t", "scrape.interval.ms": "200", "scrape.timeout.ms": "200"}
