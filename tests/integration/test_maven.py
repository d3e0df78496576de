"""Class paths from Maven repositories that work, fail, or give damaged files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.errors import MissingToolError
from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from support.maven_repository import EMPTY_ZIP, Repository, metadata, module_files, serving, with_checksums

THING = "org.example:thing:1.0"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository with ``thing``, which depends on ``part``."""
    with serving(module_files("thing", "part") | module_files("part")) as server:
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, server.url)
        yield server


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
    for path, content in module_files("thing").items():
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


def test_the_newest_version_is_looked_up_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latest = f"org.example:thing:{maven.LATEST}"
    versions = [module_files("thing", version=version) for version in ("1.9.0", "1.10.0")]
    with serving(versions[0] | metadata("thing", "1.9.0")) as repository:
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, repository.url)
        [jar] = maven.resolve([latest], tmp_path)
        assert maven.coordinates_of(jar) == "org.example:thing:1.9.0"
        repository.files |= versions[1] | metadata("thing", "1.9.0", "1.10.0")
        [jar] = maven.resolve([latest], tmp_path)
        assert maven.coordinates_of(jar) == "org.example:thing:1.10.0"


def test_a_jar_that_differs_from_its_published_checksum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = with_checksums(module_files("thing"))
    [jar] = (path for path in files if path.endswith(".jar"))
    with serving(files | {jar: EMPTY_ZIP[:-2] + b"\x02\x00!!"}) as repository:
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, repository.url)
        with pytest.raises(MissingToolError, match="invalid sha1"):
            maven.resolve([THING], tmp_path)
