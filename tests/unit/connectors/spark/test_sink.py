"""SparkSink's config and validation."""

from __future__ import annotations

import pytest

from sluiceway.connectors.spark.sink import SparkSinkConnector, SparkSinkTask
from sluiceway.errors import ConfigError, ConnectError

CONFIG = {"format": "parquet", "path": "/out", "topics": "t"}


def errors(config: dict[str, str]) -> dict[str, list[str]]:
    return {name: each.errors for name, each in SparkSinkConnector.validate(config).items() if each.errors}


def test_a_task_knows_how_large_its_rounds_are() -> None:
    task = SparkSinkTask()
    task.start(
        {**CONFIG, "flush.size": "10", "flush.bytes": "99", "rotate.interval.ms": "1500", "behavior.on.null.values": "IGNORE"}
    )
    assert (task.flush_size, task.flush_bytes, task.rotate_seconds, task.skip_nulls) == (10, 99, 1.5, True)


def test_validation_names_the_key() -> None:
    assert not errors(CONFIG)
    assert list(errors({**CONFIG, "table": "t"})) == ["path"]
    assert list(errors({**CONFIG, "path": ""})) == ["path"]
    assert not errors({"format": "mongodb", "option.collection": "orders"})
    assert list(errors({"format": "mongodb"})) == ["path"]
    assert list(errors({**CONFIG, "mode": "overwrite"})) == ["mode"]
    assert list(errors({**CONFIG, "flush.size": "0"})) == ["flush.size"]
    assert list(errors({**CONFIG, "flush.bytes": "0"})) == ["flush.bytes"]


@pytest.mark.parametrize(("name", "other"), [("parquet", "ParquetSink"), ("Delta", "DeltaSink"), ("kudu", "format=kudu")])
def test_exactly_once_is_refused_with_what_delivers_it(name: str, other: str) -> None:
    config = {**CONFIG, "format": name, "exactly.once.support": "REQUIRED"}
    [message] = errors(config)["exactly.once.support"]
    assert "at least once" in message
    assert other in message
    with pytest.raises(ConfigError, match="at least once"):
        SparkSinkConnector().start(config)


def test_a_connector_without_a_place_does_not_start() -> None:
    with pytest.raises(ConfigError, match="Exactly one of path and table"):
        SparkSinkConnector().start({"format": "parquet"})


def test_a_task_of_data_frames_takes_no_records() -> None:
    with pytest.raises(ConnectError, match="runs on a Spark driver only"):
        SparkSinkTask().put([])
