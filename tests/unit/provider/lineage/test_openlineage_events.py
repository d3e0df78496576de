"""The events that OpenLineage's own client writes to a file for a connector's run. Needs its provider: ``make test-lineage``."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.operators import SinkConnectorOperator
from sluiceway.provider.lineage import observed
from sluiceway.provider.lineage.shapes import FieldShape, TopicShape
from sluiceway.provider.progress.run_summary import RunSummary
from sluiceway.provider.settings import Settings

client = pytest.importorskip("openlineage.client")
event_v2 = pytest.importorskip("openlineage.client.event_v2")
transport = pytest.importorskip("openlineage.client.transport.file")
extractors = pytest.importorskip("airflow.providers.openlineage.extractors.base")

CONFIG = {"name": "c", "connector.class": "FileStreamSink", "file": "/out/orders.txt", "topics": "orders"}
PRODUCER = "https://example.com/test"


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Any:
    class _Settings(Settings):
        def worker(self, override: Any = None, more: Any = None) -> WorkerConfig:
            return WorkerConfig.of({"bootstrap.servers": "broker:9092"})

    shapes = {"orders": TopicShape((FieldShape("id", "int32"), FieldShape("name", "string", "Who ordered")), 20.0)}
    monkeypatch.setattr(observed, "read_shapes", lambda *_: shapes)
    made: Any = SinkConnectorOperator(task_id="t", config=CONFIG)
    made._settings = _Settings
    made._internal_topics = lambda worker: None
    return made


def events(folder: Path, *states_and_lineages: tuple[str, Any]) -> list[dict[str, Any]]:
    """Return the events as OpenLineage's file transport has written them."""
    path = folder / "events.jsonl"
    sender = client.OpenLineageClient(transport=transport.FileTransport(transport.FileConfig(str(path), append=True)))
    run = event_v2.Run(str(uuid.uuid4()))
    for state, lineage in states_and_lineages:
        now = datetime.now(timezone.utc).isoformat()
        sender.emit(
            event_v2.RunEvent(
                eventTime=now,
                run=run,
                job=event_v2.Job("airflow", "dag.t"),
                producer=PRODUCER,
                eventType=event_v2.RunState[state],
                inputs=lineage.inputs,
                outputs=lineage.outputs,
            )
        )
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_runs_events_have_rows_bytes_and_fields_of_both_ends(operator: Any, tmp_path: Path) -> None:
    extractor = extractors.DefaultExtractor(operator)
    started = extractor.extract()
    operator._moved = RunSummary(1000, 2.0)
    start, complete = events(tmp_path, ("START", started), ("COMPLETE", extractor.extract_on_complete(None)))
    (before,) = start["inputs"]
    assert "inputStatistics" not in before.get("inputFacets", {}), "nothing is moved at the start"
    assert [field["name"] for field in before["facets"]["schema"]["fields"]] == ["id", "name"]
    (topic,), (file,) = complete["inputs"], complete["outputs"]
    assert (topic["namespace"], topic["name"]) == ("kafka://broker:9092", "orders")
    assert (file["namespace"], file["name"]) == ("file", "/out/orders.txt")
    assert topic["inputFacets"]["inputStatistics"]["rowCount"] == 1000
    assert topic["inputFacets"]["inputStatistics"]["size"] == 20_000
    assert file["outputFacets"]["outputStatistics"]["rowCount"] == 1000
    fields = [(field["name"], field["type"], field.get("description")) for field in file["facets"]["schema"]["fields"]]
    assert fields == [("id", "int32", None), ("name", "string", "Who ordered")]


def test_a_run_that_fails_reports_what_it_knows(operator: Any, tmp_path: Path) -> None:
    (failed,) = events(tmp_path, ("FAIL", extractors.DefaultExtractor(operator).extract_on_failure(None)))
    assert [each["name"] for each in failed["inputs"]] == ["orders"]
    assert "inputStatistics" not in failed["inputs"][0].get("inputFacets", {})
