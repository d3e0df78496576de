"""Metrics of a shared application, from its tasks to Prometheus's text, on a local Spark master."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sluiceway.herder import Herder
from sluiceway.rest.server import RestServer
from sluiceway.spark.session import local_conf
from sluiceway.storage.factory import open_stores
from support.driver import submitted_application, worker_of, worker_properties, write_properties
from support.eventually import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

LINES = 500
STRING = "org.apache.kafka.connect.storage.StringConverter"
FILTER = {
    "transforms": "drop",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.drop.predicate": "never",
    "transforms.drop.negate": "true",
    "predicates": "never",
    "predicates.never.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.never.pattern": ".*",
}


class Scrape:
    """The samples of one text, by name and labels."""

    def __init__(self, text: str) -> None:
        families = text_string_to_metric_families(text)
        self.samples = [sample for family in families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float | None:
        found = [each.value for each in self.samples if each.name == name and labels.items() <= each.labels.items()]
        assert len(found) <= 1, (name, labels, found)
        return found[0] if found else None


@pytest.fixture(scope="module")
def rest(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("metrics")
    properties = worker_properties(
        kafka_bootstrap,
        folder.name,
        **{
            "offset.flush.interval.ms": "500",
            "sluiceway.heartbeat.interval.ms": "1000",
            "listeners": "http://127.0.0.1:0",
            "key.converter": STRING,
            "value.converter": STRING,
        },
    )
    worker = worker_of(properties)
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        lines = folder / "lines.txt"
        lines.write_text("".join(f"line {number}\n" for number in range(LINES)))
        topic = f"{folder.name}-lines"
        shared = {"sluiceway.application": "shared"}
        source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": topic, **shared}
        sink = {"connector.class": "FileStreamSink", "file": str(folder / "out.txt"), "topics": topic, **shared, **FILTER}
        sink |= {"predicates.never.pattern": "no-such-topic", "transforms.drop.negate": "false"}
        herder.put_config("lines", {"name": "lines", **source})
        herder.put_config("out", {"name": "out", **sink})
        driver = submitted_application(
            "shared", write_properties(folder / "worker.properties", properties), folder, master="local[4]", conf=local_conf()
        )
        server = RestServer(worker, lambda: herder)
        server.start()
        driver.start()
        try:
            yield server.addresses[0], folder
        finally:
            server.stop()
            driver.stop(timeout=60)


def scraped(address: str, query: str = "") -> Scrape:
    return Scrape(httpx.get(f"{address}/metrics{query}", timeout=30).raise_for_status().text)


def moved(address: str) -> Scrape | None:
    """Return the metrics once all lines have been moved and committed."""
    scrape = scraped(address)
    done = scrape.value("kafka_connect_sink_task_sink_record_send_total", connector="out") == LINES
    idle = scrape.value("kafka_connect_sink_task_sink_record_active_count", connector="out") == 0
    written = scrape.value("kafka_connect_source_task_source_record_write_total", connector="lines") == LINES
    consumed = scrape.value("kafka_consumer_fetch_manager_records_consumed_total", clientid="connector-consumer-out-0")
    return scrape if done and idle and written and consumed == LINES else None


def test_rest_and_driver_report_what_was_moved(rest: tuple[str, Path]) -> None:
    address, folder = rest
    scrape = eventually(partial(moved, address), what=f"{LINES} lines moved")
    assert len((folder / "out.txt").read_text().splitlines()) == LINES
    value = scrape.value
    assert value("kafka_connect_source_task_source_record_poll_total", connector="lines", task="0") == LINES
    assert value("kafka_connect_source_task_source_record_active_count", connector="lines") == 0
    assert value("kafka_connect_sink_task_sink_record_read_total", connector="out", task="0") == LINES
    assert value("kafka_connect_sink_task_partition_count", connector="out") == 1
    assert value("kafka_connect_connector_task_status", connector="out", status="running") == 1
    assert value("kafka_connect_connector_task_offset_commit_success_percentage", connector="lines") == 1
    assert value("kafka_connect_connector_status", connector="lines", status="running", task="0") == 1
    assert value("kafka_connect_connector_metrics", connector="lines", status="running") is None, "a name of Confluent's boards"
    assert value("sluiceway_connector_heartbeat_age_ms", connector="lines") is not None
    assert value("sluiceway_task_no_progress_ms", connector="out") == 0
    assert value("kafka_connect_connector_transform_transform_class", connector="out", transform="drop") == 1
    assert value("kafka_connect_task_error_total_record_errors", connector="out") == 0
    assert value("kafka_connect_worker_connector_count") == 2
    assert value("kafka_connect_worker_task_startup_success_total") == 2
    assert value("kafka_connect_worker_connector_startup_success_total") == 2
    assert value("kafka_producer_record_send_total", clientid="connector-producer-lines-0") == LINES
    assert value("kafka_consumer_coordinator_assigned_partitions", clientid="connector-consumer-out-0") == 1
    assert (value("sluiceway_task_record_delay_ms_max", connector="out") or 0) > 0
    assert (value("sluiceway_task_cpu_seconds_total", connector="out") or 0) > 0
    assert (value("sluiceway_task_process_memory_bytes", connector="lines") or 0) > 10_000_000
    assert value("sluiceway_task_launch_restarts_total", connector="lines") == 0


def test_the_driver_serves_the_same_itself(rest: tuple[str, Path]) -> None:
    address, folder = rest
    eventually(partial(moved, address), what=f"{LINES} lines moved")
    with open_stores(worker_of(_properties(folder))) as stores:
        (url,) = Herder(worker_of(_properties(folder)), stores.config, stores.status).metrics_urls()
    scrape = scraped(url, "?names=jmx")
    assert scrape.value("kafka_connect_sink_task_metrics_sink_record_send_total", connector="out", task="0") == LINES
    assert scrape.value("kafka_connect_connect_worker_metrics_task_count") == 2


def _properties(folder: Path) -> dict[str, str]:
    from sluiceway.config.properties import read_properties

    return dict(read_properties(folder / "worker.properties"))
