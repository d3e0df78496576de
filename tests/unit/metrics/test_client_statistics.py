"""librdkafka's statistics as metrics of the Java clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.metrics.client_statistics import ClientStatistics

STATISTICS: dict[str, Any] = {
    "ts": 10_000_000,
    "tx": 20,
    "rx": 19,
    "tx_bytes": 1000,
    "rx_bytes": 5000,
    "txmsgs": 300,
    "txmsg_bytes": 4000,
    "rxmsgs": 400,
    "rxmsg_bytes": 6000,
    "msg_size": 100,
    "msg_size_max": 1000,
    "brokers": {
        "a": {"state": "UP", "rtt": {"avg": 2000, "max": 9000, "cnt": 3}, "txretries": 2, "waitresp_cnt": 1, "req": {"Fetch": 8}},
        "b": {"state": "DOWN", "rtt": {"avg": 6000, "max": 7000, "cnt": 1}, "txretries": 0, "waitresp_cnt": 0},
    },
    "topics": {
        "t": {
            "batchsize": {"avg": 500, "max": 900, "cnt": 2},
            "batchcnt": {"avg": 10, "cnt": 2},
            "partitions": {
                "0": {"consumer_lag": 5},
                "1": {"consumer_lag": 12},
                "2": {"consumer_lag": -1},
                "-1": {"consumer_lag": 99},
            },
        }
    },
    "cgrp": {"assignment_size": 3, "rebalance_cnt": 2, "rebalance_age": 4500},
}


def values(statistics: ClientStatistics, kind: str, **tags: str) -> dict[str, Any]:
    (bean,) = (bean for bean in statistics.beans() if bean.type == kind and bean.tags == {"client-id": "c", **tags})
    return dict(bean.values)


def test_there_is_nothing_before_the_first_statistics() -> None:
    assert ClientStatistics("consumer", "c").beans() == []


def test_a_consumer() -> None:
    statistics = ClientStatistics("consumer", "c")
    statistics(json.dumps(STATISTICS))
    fetch = values(statistics, "consumer-fetch-manager-metrics")
    assert (fetch["records-consumed-total"], fetch["records-lag-max"], fetch["fetch-total"]) == (400, 12, 8)
    assert values(statistics, "consumer-fetch-manager-metrics", topic="t", partition="0") == {"records-lag": 5}
    assert sum(bean.tags.get("topic") == "t" for bean in statistics.beans()) == 2, "partitions without a position have no lag"
    group = values(statistics, "consumer-coordinator-metrics")
    assert (group["assigned-partitions"], group["rebalance-total"], group["last-rebalance-seconds-ago"]) == (3, 2, 4.5)
    client = values(statistics, "consumer-metrics")
    assert client["request-latency-avg"] == pytest.approx(3.0)  # (3 x 2 ms + 1 x 6 ms) / 4
    assert (client["request-latency-max"], client["connection-count"], client["requests-in-flight"]) == (9, 1, 1)


def test_a_consumer_whose_queue_is_full_lags_behind_the_newer_of_two_ends() -> None:
    statistics = ClientStatistics("consumer", "c")
    partitions = {"0": {"consumer_lag": 5, "committed_offset": 100}, "1": {"consumer_lag": 12, "committed_offset": 30}}
    text = json.dumps({**STATISTICS, "topics": {"t": {"partitions": partitions}}})
    statistics.take_ends({TopicPartition("t", 0): 400, TopicPartition("t", 1): 40})
    statistics(text)
    assert values(statistics, "consumer-fetch-manager-metrics", topic="t", partition="0") == {"records-lag": 300}
    assert values(statistics, "consumer-fetch-manager-metrics", topic="t", partition="1") == {"records-lag": 12}
    assert values(statistics, "consumer-fetch-manager-metrics")["records-lag-max"] == 300


def test_a_producer_has_rates_from_the_second_statistics_on() -> None:
    statistics = ClientStatistics("producer", "c")
    statistics(json.dumps(STATISTICS))
    first = values(statistics, "producer-metrics")
    assert (first["record-send-total"], first["record-retry-total"], first["buffer-available-bytes"]) == (300, 2, 900)
    assert (first["batch-size-avg"], first["records-per-request-avg"]) == (500, 10)
    assert "record-send-rate" not in first
    statistics(json.dumps({**STATISTICS, "ts": 15_000_000, "txmsgs": 800}))
    assert values(statistics, "producer-metrics")["record-send-rate"] == 100
    assert values(statistics, "producer-metrics")["record-send-rate"] == 100, "asking again changes nothing"


def test_statistics_of_a_client_without_brokers() -> None:
    for kind in ("producer", "consumer"):
        statistics = ClientStatistics(kind, "c")
        statistics("{}")
        assert statistics.beans()


def test_fetch_metrics_of_a_java_consumer_replace_those_of_a_member_that_fetches_nothing() -> None:
    statistics = ClientStatistics("consumer", "c")
    statistics(json.dumps(STATISTICS))
    kinds = {bean.type for bean in statistics.beans()}
    partition = {"client-id": "c", "topic": "t", "partition": "0"}
    statistics.take_fetch_metrics([({"client-id": "c"}, {"fetch-rate": 2.0}), (partition, {"records-lag": 7.0})])
    assert {bean.type for bean in statistics.beans()} == kinds
    assert values(statistics, "consumer-fetch-manager-metrics") == {"fetch-rate": 2.0}
    assert values(statistics, "consumer-fetch-manager-metrics", topic="t", partition="0") == {"records-lag": 7.0}
    assert sum(bean.tags.get("topic") == "t" for bean in statistics.beans()) == 1
