"""The folder source and the file sinks with a server of SFTP."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.folder.connector import FolderSourceConnector
from sluiceway.discovery import connector_class
from support.file_sinks import TOPIC, FileSink, rows
from support.folder_task import FolderTask
from support.sftp_server import SftpServer, sftp_server

P0 = TopicPartition(TOPIC, 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SftpServer]:
    with sftp_server(tmp_path) as made:
        yield made


def config(server: SftpServer, pattern: str = "in/**", **more: str) -> dict[str, str]:
    fixed = {"mode": "files", "complete.when": "renamed", "topic": "t"}
    return {"paths": f"{server.url}/{pattern}", **fixed, **server.config, **more}


def write(server: SftpServer, path: str, data: bytes) -> None:
    file = server.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def paths(server: SftpServer) -> list[str]:
    return sorted(str(each.relative_to(server.root)) for each in server.root.rglob("*") if each.is_file())


def test_files_are_read_once_and_moved(server: SftpServer) -> None:
    lines = [f"line {number} {'x' * (number % 90)}" for number in range(120_000)]  # more than is read ahead
    write(server, "in/2026/large.txt", "\n".join(lines).encode())
    write(server, "in/2026/11/small.txt.gz", gzip.compress(b"one\ntwo\n"))
    write(server, "done/2026/large.txt", b"another file")
    more = {"after.read": "move", "after.read.folder": f"{server.url}/done"}
    assert not any(each.errors for each in FolderSourceConnector.validate(config(server, **more)).values())
    task = FolderTask(**config(server, **more))
    assert sorted(task.run()) == sorted([*lines, "one", "two"])
    moved = paths(server)
    assert moved[:2] == ["done/2026/11/small.txt.gz", "done/2026/large.txt"]
    assert (server.root / moved[1]).read_bytes() == b"another file"
    assert (server.root / moved[2]).read_text().split("\n") == lines
    assert len(moved) == 3
    task.restart()
    assert task.run() == []
    task.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of the thread that reads ahead
def test_a_server_that_is_killed_while_a_file_is_read_loses_nothing(server: SftpServer) -> None:
    lines = [f"line {number} {'x' * (number % 90)}" for number in range(120_000)]
    write(server, "in/a.txt", "\n".join(lines).encode())
    task = FolderTask(**config(server))
    task.take(task.poll())
    server.kill()
    task.run()
    assert 0 < len(task.records) < len(lines)
    assert "in" in str(task.context.waits_for[-1])
    server.start()
    task.run()
    assert [record.value for record in task.records] == lines
    task.stop()


@pytest.mark.parametrize(
    ("more", "key", "text"),
    [
        ({"sftp.password": "wrong"}, "sftp.password", "Authentication failed"),
        (
            {"sftp.host.key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"},
            "paths",
            "ost key",
        ),
        ({"sftp.key.file": "/none"}, "sftp.key.file", "there is no private key /none"),
    ],
)
def test_a_refused_login_is_said(server: SftpServer, more: dict[str, str], key: str, text: str) -> None:
    found = FolderSourceConnector.validate(config(server, **more))
    assert [name for name, each in found.items() if each.errors] == [key]
    assert text in found[key].errors[0]
    assert "s3cret" not in str(found[key].errors)


def test_a_sink_writes_each_record_once(server: SftpServer) -> None:
    name = "JsonFileSink"
    sink_config = {
        "connector.class": name,
        "path": f"{server.url}/lake",
        "flush.size": "100",
        **server.config,
    }
    assert not any(each.errors for each in connector_class(name).validate({**sink_config, "topics": TOPIC}).values())
    sink = FileSink(sink_config, [P0])
    sink.put(rows(0, 250), columns=True)
    assert sink.commit() == {P0: 200}
    sink.task.stop()
    sink = FileSink(sink_config, [P0])
    assert sink.next == {P0: 200}
    sink.put(rows(200, 300), columns=True)
    assert sink.commit() == {P0: 300}
    sink.task.stop()
    files = [path for path in paths(server) if path.startswith("lake/") and path.rpartition("/")[2].startswith(f"{TOPIC}+")]
    ids = [line for path in files for line in (server.root / path).read_text().splitlines()]
    assert len(ids) == len(set(ids)) == 300
    assert not [path for path in paths(server) if path.endswith(".tmp")]
