"""A misspelt secret and a misspelt key are answered at the key: by the REST API, the command line, and the page's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sluiceway.cli.main import main
from sluiceway.errors import ConnectError
from sluiceway.rest.client import ConnectClient
from support.page import Cluster, Ui

pytestmark = pytest.mark.kafka

FILE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "topic": "lines"}
SECRET = "${vault:kv/db:password}"


def test_a_misspelt_secret_is_an_error_of_its_key(
    ui: Ui, cluster: Cluster, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {**FILE, "file": SECRET}
    with ConnectClient(cluster.url) as connect, pytest.raises(ConnectError, match="unknown config provider"):
        connect.create(name, config)
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"name": name, **config}))
    assert main(["validate", "-f", str(file), "--server", cluster.url]) != 0
    printed = "".join(capsys.readouterr())
    assert f"file = {SECRET}" in printed, printed
    assert "unknown config provider" in printed
    ui.go(f"#/plugins/{FILE['connector.class']}/create")
    ui.fill({"name": name, "topic": "lines", "file": SECRET})
    expect(ui.field("file").locator(".wrong")).to_contain_text("unknown config provider")


def test_a_misspelt_key_is_answered_with_the_one_that_is_meant(
    ui: Ui, cluster: Cluster, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "connector.json"
    config = {**FILE, "name": name, "batch.sise": "5", "errors.unknown.keys": "fail"}
    file.write_text(json.dumps(config))
    assert main(["apply", "-f", str(file), "--server", cluster.url]) != 0
    printed = "".join(capsys.readouterr())
    assert "batch.sise" in printed, printed
    assert "batch.size" in printed
    with ConnectClient(cluster.url) as connect, pytest.raises(ConnectError, match=r"batch\.sise.*batch\.size"):
        connect.create(name, config)
    ui.go(f"#/plugins/{FILE['connector.class']}/create")
    ui.fill({"name": name, "topic": "lines", "batch.sise": "5"})
    expect(ui.field("batch.sise")).to_contain_text("batch.size")
