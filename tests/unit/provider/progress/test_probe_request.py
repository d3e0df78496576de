"""Tests of what is requested from Kafka for a connector's config."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.config_provider import for_run
from sluiceway.provider.progress.probe_request import ProbeRequest, probe_request, probe_requests, resolve_client_keys
from sluiceway.storage.model import ClusterState, ConnectorEntry

SINK = {"connector.class": "FileStreamSink", "topics": "a, b"}
SOURCE = {"connector.class": "FileStreamSource", "topic": "a"}
DLQ = {"errors.deadletterqueue.topic.name": "dead"}
ACTIVE = ["a", "dead"]
FAR = {"consumer.override.bootstrap.servers": "far:9092", "producer.override.bootstrap.servers": "far:9092"}


@pytest.mark.parametrize(
    ("config", "request_"),
    [
        (SINK, ProbeRequest("c", "connect-c", ("a", "b"))),
        ({**SINK, **DLQ}, ProbeRequest("c", "connect-c", ("a", "b"), "dead")),
        ({**SINK, "consumer.override.group.id": "own"}, ProbeRequest("c", "own", ("a", "b"))),
        ({**SINK, "consumer.override.group.id": "${env:GROUP}"}, ProbeRequest("c")),
        ({**SINK, "consumer.override.bootstrap.servers": "far:9092"}, ProbeRequest("c")),
        ({"connector.class": "FileStreamSink", "topics.regex": "."}, ProbeRequest("c", "connect-c", ("a", "dead"))),
        ({**SOURCE, **DLQ}, ProbeRequest("c", None, ("a",), "dead")),
        ({**SOURCE, "producer.override.bootstrap.servers": "far:9092"}, ProbeRequest("c")),
        ({**SOURCE, "errors.deadletterqueue.topic.name": "${env:DEAD}"}, ProbeRequest("c", None, ("a", "dead"))),
    ],
)
def test_a_config_determines_what_is_requested(config: dict[str, str], request_: ProbeRequest) -> None:
    assert probe_request("c", config, WorkerConfig.of({}), ACTIVE) == request_


def test_the_group_of_a_sink_is_the_one_that_its_tasks_use() -> None:
    worker = WorkerConfig.of({"consumer.group.id": "shared"})
    assert probe_request("c", SINK, worker, ACTIVE).group == "shared"
    assert probe_request("c", {**SINK, "consumer.override.group.id": "own"}, worker, ACTIVE).group == "own"


def test_with_its_own_admin_client_a_connector_on_another_cluster_is_measured_there() -> None:
    worker = WorkerConfig.of({})
    assert probe_request("c", {**SINK, **FAR}, worker, ACTIVE, own_admin=True).group == "connect-c"
    assert probe_request("c", {**SOURCE, **FAR}, worker, ACTIVE, own_admin=True).topics == ("a", "dead")


def test_deleted_connectors_are_not_requested() -> None:
    state = ClusterState({"c": ConnectorEntry("c", SINK), "gone": ConnectorEntry("gone", None)})
    assert [each.name for each in probe_requests(state, WorkerConfig.of({}), lambda _name: ACTIVE)] == ["c"]


def test_only_references_in_client_overrides_and_topics_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "group").write_text("resolved")
    worker = WorkerConfig.of(
        {
            "config.providers": "dir",
            "config.providers.dir.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        }
    )
    reference = f"${{dir:{tmp_path}:group}}"
    resolved = resolve_client_keys(worker, {**SINK, "consumer.override.group.id": reference, "db.password": reference})
    assert (resolved["consumer.override.group.id"], resolved["db.password"]) == ("resolved", reference)


def test_topics_that_only_a_run_knows_are_left_for_it() -> None:
    worker = WorkerConfig.of({"config.providers": "airflow", "config.providers.airflow.class": "AirflowConfigProvider"})
    config = {**SINK, "topics": "a,b-${airflow:run:ds}"}
    assert resolve_client_keys(worker, config) == config
    run = for_run(worker, {"ds": "2024-01-01"})
    assert resolve_client_keys(run, config)["topics"] == "a,b-2024-01-01"
