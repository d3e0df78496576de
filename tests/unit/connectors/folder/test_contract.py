"""The contract of source connectors, for each mode and format."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.testing import SourceConnectorContract


class TestLogs(SourceConnectorContract):
    connector_class = FolderSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "app.log.1").write_text("one\ntwo\n")
        (tmp_path / "app.log").write_text("three\n")
        (tmp_path / "other.log").write_text("a\nb\n")
        return {"paths": f"{tmp_path}/*.log*", "mode": "logs", "topic": "t", "rotated.close.ms": "0"}


class TestMultiline(SourceConnectorContract):
    connector_class = FolderSourceConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "app.log").write_text("one\n  more\ntwo\nthree\n")
        return {"paths": str(tmp_path), "mode": "logs", "topic": "t", "format": "multiline", "multiline.timeout.ms": "50"}


class TestCsv(SourceConnectorContract):
    connector_class = FolderSourceConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "a.csv").write_text('id,name\n1,"a\nb"\n2,c\n')
        (tmp_path / "b.csv").write_text("id,name\n3,d")
        return {"paths": str(tmp_path), "mode": "files", "topic": "t", "format": "csv", "complete.when": "renamed"}


class TestJson(SourceConnectorContract):
    connector_class = FolderSourceConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "a.json").write_text('{"a": 1}\n\n[2]\n3')
        return {"paths": str(tmp_path), "mode": "files", "topic": "t", "format": "json", "complete.when": "renamed"}


class TestJsonArray(SourceConnectorContract):
    connector_class = FolderSourceConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "a.json").write_text('[{"a": 1},\n[2], 3]\n')
        return {"paths": str(tmp_path), "mode": "files", "topic": "t", "format": "json-array", "complete.when": "renamed"}


class TestFixed(SourceConnectorContract):
    connector_class = FolderSourceConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "a.txt").write_text(" 1one  \n 2two\n 3")
        own = {"complete.when": "renamed", "fixed.columns": "id:2,name:5"}
        return {"paths": str(tmp_path), "mode": "files", "topic": "t", "format": "fixed", **own}


class TestXml(SourceConnectorContract):
    connector_class = FolderSourceConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "a.xml").write_text("<orders><order>1</order>\n<order/><order/></orders>\n")
        own = {"complete.when": "renamed", "xml.record": "order"}
        return {"paths": str(tmp_path), "mode": "files", "topic": "t", "format": "xml", **own}


class TestTypedCsv(SourceConnectorContract):
    connector_class = FolderSourceConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        (tmp_path / "a.csv").write_text("id,at,price\n1,2026-11-29 10:11:12,1.5\n2,,\n3,2026-11-29,2")
        own = {"complete.when": "renamed", "csv.types": "id:int64,at:timestamp,price:decimal(5,2)"}
        return {"paths": str(tmp_path), "mode": "files", "topic": "t", "format": "csv", **own}


class TestWhole(SourceConnectorContract):
    connector_class = FolderSourceConnector
    record_count = 2

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        for name in "ab":
            (tmp_path / name).write_bytes(name.encode() * 1000)
        own = {"complete.when": "renamed", "record.key": "file"}
        return {"paths": str(tmp_path), "mode": "files", "topic": "t", "format": "whole", **own}
