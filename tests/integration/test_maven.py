"""Class paths from Maven repositories that work, fail, or give damaged files."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sluiceway.errors import MissingToolError
from sluiceway.stack import maven
from sluiceway.stack.ports import free_port

EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
THING = "org.example:thing:1.0"


def files_of(artifact: str, dependency: str = "") -> dict[str, bytes]:
    """Return the files of a module by their paths in a repository."""
    base = f"/org/example/{artifact}/1.0/{artifact}-1.0"
    head = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    names = f"<groupId>org.example</groupId><artifactId>{artifact}</artifactId><version>1.0</version>"
    needs = names.replace(artifact, dependency) if dependency else ""
    dependencies = f"<dependencies><dependency>{needs}</dependency></dependencies>" if dependency else ""
    return {f"{base}.pom": f"{head}{names}{dependencies}</project>".encode(), f"{base}.jar": EMPTY_ZIP}


class Repository(ThreadingHTTPServer):
    """A repository with ``thing``, which depends on ``part``. It resets the connection of the first requests for a path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.files = files_of("thing", "part") | files_of("part")
        self.resets: Counter[str] = Counter()
        """Paths, and how many requests for each are still reset."""

    def reset(self, suffix: str, times: int) -> None:
        self.resets.update({path: times for path in self.files if path.endswith(suffix)})


class Answers(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        if self.server.resets[self.path] > 0:
            self.server.resets[self.path] -= 1
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        body = self.server.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if body and self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def finish(self) -> None:
        if self.connection.fileno() >= 0:
            super().finish()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    with Repository() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


def names(jars: list[Path]) -> list[str]:
    return [jar.name for jar in jars]


@pytest.mark.long
def test_a_pom_whose_connection_breaks_is_requested_again(repository: Repository, tmp_path: Path) -> None:
    repository.reset("part-1.0.pom", 2)  # Java repeats a request once
    assert names(maven.resolve([THING], tmp_path)) == ["thing-1.0.jar", "part-1.0.jar"]
    assert repository.resets.total() == 0


@pytest.mark.long
def test_no_class_path_is_recorded_while_the_server_fails(repository: Repository, tmp_path: Path) -> None:
    repository.reset("", 1000)
    with pytest.raises(MissingToolError, match=r"(?s)try again, or set SLUICEWAY_MAVEN_REPOSITORY.*Server access error"):
        maven.resolve([THING], tmp_path)
    repository.resets.clear()
    repository.reset("part-1.0.pom", 1000)
    with pytest.raises(MissingToolError, match=r"(?s)module not found: org.example#part;1.0.*Server access error"):
        maven.resolve([THING], tmp_path)
    repository.resets.clear()
    jars = maven.resolve([THING], tmp_path)
    assert names(jars) == ["thing-1.0.jar", "part-1.0.jar"]
    repository.reset("", 1000)
    assert maven.resolve([THING], tmp_path) == jars, "the recorded class path"


def test_a_failed_download_names_the_cause_and_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = f"http://127.0.0.1:{free_port()}/maven"
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, repository)
    said: list[str] = []
    with pytest.raises(MissingToolError, match=rf"(?s)download from {repository} failed.*{tmp_path}.*\.log.*Connection refused"):
        maven.resolve([THING], tmp_path, progress=said.append)
    assert said == [f"Fetching org.example:thing:1.0 from {repository} ..."]


def test_jars_come_from_the_named_repository_once_and_broken_ones_are_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, content in files_of("thing").items():
        file = Path(f"{tmp_path}/repository{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, f"file://{tmp_path}/repository")
    cache = tmp_path / "cache"
    said: list[str] = []
    (jar,) = maven.resolve([THING], cache, progress=said.append)
    assert jar.read_bytes() == EMPTY_ZIP
    assert maven.resolve([THING], cache, progress=said.append) == [jar]
    assert len(said) == 1
    jar.write_bytes(b"half")
    assert maven.resolve([THING], cache, progress=said.append) == [jar]
    assert jar.read_bytes() == EMPTY_ZIP
