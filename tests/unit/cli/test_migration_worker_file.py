"""The worker file of a Sluiceway that is written from Kafka Connect's."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.cli.main import main
from sluiceway.cli.migration_worker_file import worker_properties, write_worker_file
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError

THEIRS = {
    "bootstrap.servers": "kafka:9092",
    "group.id": "connect-cluster",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "listeners": "http://:8083",
    "rest.advertised.host.name": "connect",
    "plugin.path": "C:\\plugins, /opt/ünï",
    "producer.sasl.jaas.config": 'x required password="a=b:c#d!";',
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "connect-distributed.properties"
    lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in THEIRS.items())
    path.write_text("# a comment\n" + "\n".join(lines) + "\n", encoding="latin-1")
    return path


def test_all_but_the_group_the_topics_and_the_addresses_stay(file: Path, tmp_path: Path) -> None:
    written = tmp_path / "sluiceway.properties"
    lines = write_worker_file(file, written, "http://connect:8083", 3)
    ours = read_properties(written)
    assert ours == {
        **{key: value for key, value in THEIRS.items() if key not in ("listeners", "rest.advertised.host.name")},
        "group.id": "connect-cluster-sluiceway",
        "config.storage.topic": "connect-configs-sluiceway",
        "offset.storage.topic": "connect-offsets-sluiceway",
        "status.storage.topic": "connect-status-sluiceway",
        "sluiceway.migrate.with": "http://connect:8083",
    }
    WorkerConfig.of(ours)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "  without listeners" in lines
    assert lines[-1].endswith(f"sluiceway up {written}")
    assert not any("password" in line for line in lines)
    with pytest.raises(ConfigError, match="exists"):
        write_worker_file(file, written, "http://connect:8083", 3)


@given(st.dictionaries(st.text(min_size=1).map("x.{}".format), st.text()))
def test_any_other_key_stays(more: dict[str, str]) -> None:
    ours = worker_properties({**THEIRS, **more}, "http://c", 5)
    assert ours.items() >= more.items()
    assert ours["sluiceway.application.default"] == "small"


def test_a_file_that_is_not_a_distributed_workers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "standalone.properties"
    path.write_text("bootstrap.servers=k:9092\noffset.storage.file.filename=/tmp/x\n")
    with pytest.raises(ConfigError, match=r"not the file of a distributed worker: it has no group\.id"):
        write_worker_file(path, tmp_path / "new", "http://c", 1)


def test_the_command_needs_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["migrate", "--from", "http://c", "--write-worker-config", str(tmp_path / "new")]) == 2
    assert "--connect-worker-config FILE" in capsys.readouterr().err
