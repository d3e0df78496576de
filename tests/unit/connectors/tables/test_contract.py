"""The contract of sink connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.delta import DeltaSinkConnector
from sluiceway.connectors.iceberg import IcebergSinkConnector
from sluiceway.testing import SinkConnectorContract
from support.jdbc_sink import person
from support.table_sink import Lake


class _Contract(SinkConnectorContract):
    """Writes people to a table in a folder."""

    format = ""

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        self.lake = Lake(self.format, tmp_path)
        return self.lake.config()

    def records(self) -> Sequence[SinkRecord]:
        return [
            person(offset, offset * 2 + partition, "x", topic=self.topic, partition=partition)
            for offset in range(3)
            for partition in range(2)
        ]

    def check_written(self, config: Mapping[str, str], records: Sequence[SinkRecord]) -> None:
        written = {row["id"] for row in self.lake.rows(config)}
        assert {record.value["id"] for record in records} <= written


class TestIcebergSink(_Contract):
    connector_class = IcebergSinkConnector
    format = "iceberg"


class TestDeltaSink(_Contract):
    connector_class = DeltaSinkConnector
    format = "delta"
