"""The example that applies a git folder, on a real clone."""

from __future__ import annotations

import json
import logging
import subprocess
from pathlib import Path
from typing import Any

import pytest

from unit.cli.pretend_client import CONFIG, PretendClient

pytest.importorskip("airflow")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, **files: dict[str, str]) -> str:
    for name, config in files.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "change")
    return git(folder, "rev-parse", "HEAD")


def test_files_that_were_pushed_are_pulled_and_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from sluiceway.dags.example_connectors_from_git import dag

    origin, clone = tmp_path / "origin", tmp_path / "clone"
    origin.mkdir()
    git(origin, "init", "-q")
    commit(origin, a=CONFIG)
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    newest = commit(origin, a={**CONFIG, "topic": "u"}, b={**CONFIG, "name": "b"})
    api = PretendClient()
    monkeypatch.setattr("sluiceway.provider.hooks.kafka_connect.KafkaConnectHook.get_conn", lambda _self: api)
    task: Any = dag.get_task
    functions = {name: task(name).python_callable for name in ("pull", "apply")}
    assert functions["pull"](str(clone)) == newest
    with caplog.at_level(logging.INFO):
        assert functions["apply"](str(clone)) == {"a": "change", "b": "create"}
    assert [call[:2] for call in api.calls] == [("put_config", "a"), ("put_config", "b")]
    assert "+ topic: u" in caplog.text
    assert "hunter2" not in caplog.text
