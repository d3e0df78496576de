"""The jars of Connect's runtime: taken from a Kafka installation or the download folder, and checked when downloaded."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.java_plugins import runtime_jars
from sluiceway.java_plugins.runtime_jars import PROVIDED, RUNTIME_JARS, fetched_home, install_runtime


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KAFKA_HOME", raising=False)


def fill(libs: Path, **versions: str) -> Path:
    libs.mkdir(parents=True)
    for jar in RUNTIME_JARS:
        version = versions.get(jar.artifact.replace("-", "_"))
        (libs / (f"{jar.artifact}-{version}.jar" if version else jar.file_name)).touch()
    return libs.parent


def test_without_any_the_error_names_both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))

    with pytest.raises(MissingToolError, match="sluiceway plugins fetch-runtime") as raised:
        runtime_jars.runtime_jars()

    assert f"{tmp_path}/libs has no jars; {fetched_home()}/libs has no jars" in str(raised.value)


def test_a_kafka_installation_comes_first_with_all_its_jars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fill(tmp_path / "kafka/libs", connect_runtime="4.4.1", log4j_api="2.30.0")
    fill(fetched_home() / "libs")
    (home / "libs/rocksdbjni-9.jar").touch()
    monkeypatch.setenv("KAFKA_HOME", str(home))

    found = runtime_jars.runtime_jars()

    assert sorted(found) == sorted((home / "libs").glob("*.jar"))
    assert [found[number].name for number in (0, 10)] == ["lz4-java-1.10.2.jar", "connect-runtime-4.4.1.jar"]


def test_a_kafka_installation_needs_no_jar_that_only_plugins_may_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fill(tmp_path / "kafka/libs")
    fill(fetched_home() / "libs")
    for jar in RUNTIME_JARS:
        if jar.module not in PROVIDED:
            (home / "libs" / jar.file_name).unlink()
    monkeypatch.setenv("KAFKA_HOME", str(home))
    assert len(runtime_jars.runtime_jars()) == len(PROVIDED)

    (home / "libs/connect-json-4.3.0.jar").unlink()
    assert {jar.parent for jar in runtime_jars.runtime_jars()} == {fetched_home() / "libs"}
    (fetched_home() / "libs/jersey-server-3.1.10.jar").unlink()  # a download of another version of this project
    with pytest.raises(MissingToolError, match=r"has no connect-json; .* has no jersey-server"):
        runtime_jars.runtime_jars()


def test_an_old_kafka_installation_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(fill(tmp_path / "kafka/libs", connect_runtime="3.9.0")))
    with pytest.raises(MissingToolError, match=r"has Kafka 3\.9, which is too old"):
        runtime_jars.runtime_jars()
    fill(fetched_home() / "libs")

    assert {jar.parent for jar in runtime_jars.runtime_jars()} == {fetched_home() / "libs"}


def test_only_jars_with_the_pinned_digest_are_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    downloaded = [tmp_path / jar.file_name for jar in RUNTIME_JARS]
    for jar in downloaded:
        jar.write_text(jar.name)
    pinned = tuple(replace(jar, sha256=hashlib.sha256(jar.file_name.encode()).hexdigest()) for jar in RUNTIME_JARS)
    monkeypatch.setattr(runtime_jars, "RUNTIME_JARS", pinned)

    assert install_runtime(downloaded, fetched_home()) == fetched_home() / "libs"
    assert len(runtime_jars.runtime_jars()) == len(RUNTIME_JARS)

    downloaded[0].write_text("other")
    with pytest.raises(ConnectError, match=r"is not at\.yawk\.lz4:lz4-java:1\.10\.2 as it was published"):
        install_runtime(downloaded, tmp_path / "second")
    with pytest.raises(ConnectError, match="gave no lz4-java"):
        install_runtime(downloaded[1:], tmp_path / "second")
    assert not (tmp_path / "second/libs").exists()


def test_each_jar_has_a_license() -> None:
    assert {jar.license for jar in RUNTIME_JARS} == {
        *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CDDL-1.0", "EPL-2.0", "MIT"),
    }
