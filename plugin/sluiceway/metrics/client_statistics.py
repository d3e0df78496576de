"""Turns librdkafka's statistics into the metrics of Kafka's Java clients, as far as both measure the same. No I/O.

librdkafka describes its statistics in STATISTICS.md. It calls the client's ``stats_cb`` with them as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sluiceway.api import TopicPartition
from sluiceway.metrics.beans import Bean, Value

INTERVAL = {"statistics.interval.ms": "5000"}
"""The default interval. librdkafka and we need some 0.1 ms for the statistics of a client with a few topic partitions."""

_FETCHES = "consumer-fetch-manager-metrics"
_MICROSECONDS = 1000.0  # in a millisecond

_Window = Mapping[str, Any]
Ends = Mapping[TopicPartition, int]


class ClientStatistics:
    """Receives the statistics of one producer or consumer. They are only parsed when somebody asks for them.

    Args:
        kind: ``producer`` or ``consumer``.
        client_id: the client's id.
    """

    def __init__(self, kind: str, client_id: str) -> None:
        self._kind = kind
        self._client_id = client_id
        self._text: str | None = None
        self._parsed: tuple[str, list[Bean]] | None = None
        self._last: tuple[float, Mapping[str, Value]] | None = None
        self._ends: Ends = {}
        self._fetches: list[Bean] = []

    def __call__(self, text: str) -> None:
        """Take the newest statistics. Called by librdkafka on the task's thread."""
        self._text = text

    def take_ends(self, ends: Ends) -> None:
        """Take end offsets of a consumer's topic partitions, which may be newer than those of its fetches."""
        self._ends = ends

    def take_fetch_metrics(self, metrics: Sequence[tuple[Mapping[str, str], Mapping[str, float]]]) -> None:
        """Take tags and values of the fetch metrics of a Java consumer, if that reads the partitions of this one."""
        self._fetches = [Bean("kafka.consumer", _FETCHES, tags, values) for tags, values in metrics]

    def beans(self) -> list[Bean]:
        """Return the client's metrics; none before the first statistics."""
        text = self._text
        if text is None:
            return []
        fetches, beans = self._fetches, self._own_beans(text)
        return [*(bean for bean in beans if bean.type != _FETCHES), *fetches] if fetches else beans

    def _own_beans(self, text: str) -> list[Bean]:
        if self._parsed is None or self._parsed[0] is not text:
            statistics = json.loads(text)
            beans = consumer_beans(statistics, self._ends) if self._kind == "consumer" else producer_beans(statistics)
            self._parsed = text, self._with_rates(beans, float(statistics.get("ts", time.monotonic() * 1e6)) / 1e6)
        return self._parsed[1]

    def _with_rates(self, beans: Sequence[Bean], at: float) -> list[Bean]:
        """Add a rate for each total of the client as a whole, since the last statistics; ``at`` is their time in seconds."""
        totals = {
            f"{bean.type}/{name}": value for bean in beans for name, value in bean.values.items() if name.endswith("-total")
        }
        before, self._last = self._last, (at, totals)
        found: list[Bean] = []
        for bean in beans:
            rates: dict[str, Value] = {}
            if before is not None and at > before[0] and len(bean.tags) == 0:
                for name, value in bean.values.items():
                    then = before[1].get(f"{bean.type}/{name}")
                    if name.endswith("-total") and isinstance(value, float) and isinstance(then, float):
                        rates[name.removesuffix("-total") + "-rate"] = max(0.0, value - then) / (at - before[0])
            found.append(Bean(bean.domain, bean.type, {"client-id": self._client_id, **bean.tags}, {**bean.values, **rates}))
        return found


def consumer_beans(statistics: Mapping[str, Any], ends: Ends) -> list[Bean]:
    """Return a consumer's metrics, without its client id.

    ``ends`` has end offsets of some topic partitions; the later one of theirs and the statistics' counts.
    """
    partitions = [(topic, number, each) for topic, number, each in _partitions(statistics) if each.get("consumer_lag", -1) >= 0]
    lags = [
        float(max(each["consumer_lag"], ends.get(TopicPartition(topic, int(number)), 0) - each.get("committed_offset", 0)))
        for topic, number, each in partitions
    ]
    group = statistics.get("cgrp", {})
    beans = [
        Bean("kafka.consumer", "consumer-metrics", {}, _requests(statistics)),
        Bean(
            "kafka.consumer",
            _FETCHES,
            {},
            {
                "records-consumed-total": _number(statistics, "rxmsgs"),
                "bytes-consumed-total": _number(statistics, "rxmsg_bytes"),
                "records-lag-max": max(lags, default=float("nan")),
                "fetch-total": sum(_request_count(broker, "Fetch") for broker in _brokers(statistics)),
                "fetch-latency-avg": _latency(statistics),
                "fetch-throttle-time-avg": _throttle(statistics),
                "fetch-throttle-time-max": max(
                    (_number(each.get("throttle", {}), "max") for each in _brokers(statistics)), default=0.0
                ),
            },
        ),
        Bean(
            "kafka.consumer",
            "consumer-coordinator-metrics",
            {},
            {
                "assigned-partitions": _number(group, "assignment_size"),
                "rebalance-total": _number(group, "rebalance_cnt"),
                "last-rebalance-seconds-ago": _number(group, "rebalance_age") / 1000,
            },
        ),
    ]
    beans += [
        Bean(
            "kafka.consumer",
            _FETCHES,
            {"topic": topic, "partition": number},
            {"records-lag": lag},
        )
        for (topic, number, _), lag in zip(partitions, lags, strict=True)
    ]
    return beans


def producer_beans(statistics: Mapping[str, Any]) -> list[Bean]:
    """Return a producer's metrics, without its client id."""
    topics = list(statistics.get("topics", {}).values())
    brokers = _brokers(statistics)
    size = _number(statistics, "msg_size_max")
    values = _requests(statistics)
    values |= {
        "record-send-total": _number(statistics, "txmsgs"),
        "byte-total": _number(statistics, "txmsg_bytes"),
        "record-retry-total": sum(_number(each, "txretries") for each in brokers),
        "record-queue-time-avg": _average([each.get("int_latency", {}) for each in brokers], "avg") / _MICROSECONDS,
        "record-queue-time-max": max((_number(each.get("int_latency", {}), "max") for each in brokers), default=0.0)
        / _MICROSECONDS,
        "batch-size-avg": _average([each.get("batchsize", {}) for each in topics], "avg"),
        "batch-size-max": max((_number(each.get("batchsize", {}), "max") for each in topics), default=0.0),
        "records-per-request-avg": _average([each.get("batchcnt", {}) for each in topics], "avg"),
        "produce-throttle-time-avg": _throttle(statistics),
        "buffer-total-bytes": size,
        "buffer-available-bytes": max(0.0, size - _number(statistics, "msg_size")),
    }
    return [Bean("kafka.producer", "producer-metrics", {}, values)]


def _requests(statistics: Mapping[str, Any]) -> dict[str, Value]:
    """Return the metrics that all clients have in common."""
    brokers = _brokers(statistics)
    return {
        "request-total": _number(statistics, "tx"),
        "response-total": _number(statistics, "rx"),
        "outgoing-byte-total": _number(statistics, "tx_bytes"),
        "incoming-byte-total": _number(statistics, "rx_bytes"),
        "request-latency-avg": _latency(statistics),
        "request-latency-max": max((_number(each.get("rtt", {}), "max") for each in brokers), default=0.0) / _MICROSECONDS,
        "requests-in-flight": sum(_number(each, "waitresp_cnt") for each in brokers),
        "connection-count": float(sum(each.get("state") == "UP" for each in brokers)),
        "connection-creation-total": sum(_number(each, "connects") for each in brokers),
        "connection-close-total": sum(_number(each, "disconnects") for each in brokers),
    }


def _brokers(statistics: Mapping[str, Any]) -> list[_Window]:
    return list(statistics.get("brokers", {}).values())


def _partitions(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str, _Window]]:
    for topic, each in statistics.get("topics", {}).items():
        for number, partition in each.get("partitions", {}).items():
            if number != "-1":  # records that have no partition yet
                yield topic, number, partition


def _latency(statistics: Mapping[str, Any]) -> float:
    return _average([each.get("rtt", {}) for each in _brokers(statistics)], "avg") / _MICROSECONDS


def _throttle(statistics: Mapping[str, Any]) -> float:
    return _average([each.get("throttle", {}) for each in _brokers(statistics)], "avg")


def _request_count(broker: _Window, kind: str) -> float:
    return _number(broker.get("req", {}), kind)


def _average(windows: Sequence[_Window], field: str) -> float:
    """Return the average of a field over all windows that have values, weighted by their numbers; 0 without any."""
    count = sum(_number(each, "cnt") for each in windows)
    return sum(_number(each, field) * _number(each, "cnt") for each in windows) / count if count else 0.0


def _number(values: Mapping[str, Any], name: str) -> float:
    return float(values.get(name, 0) or 0)
