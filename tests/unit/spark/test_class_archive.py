"""The class archive: when drivers use it, and when it is made."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from sluiceway.errors import ConnectError
from sluiceway.spark import class_archive, session


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def _submit(monkeypatch: pytest.MonkeyPatch, exit_code: int) -> list[list[str]]:
    """Replace spark-submit by a fake that writes an archive and exits with ``exit_code``; return the list of its commands."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if "org.apache.spark.launcher.Main" in command:
            options = next(part for part in command if "ArchiveClassesAtExit" in part).partition("=")[2]
            return subprocess.CompletedProcess(
                command, 0, "\0\n" + "".join(f"{each}\0" for each in ["java", "-cp", "conf:jars", *options.split()]), ""
            )
        commands.append(command)
        [options] = [part for part in command if "ArchiveClassesAtExit" in part]
        Path(options.rpartition("ArchiveClassesAtExit=")[2]).write_bytes(b"classes")
        return subprocess.CompletedProcess(command, exit_code, "", "no memory\n")

    monkeypatch.setattr("sluiceway.spark.class_archive.subprocess.run", run)
    return commands


def test_a_driver_uses_the_archive_only_if_it_exists() -> None:
    java = "spark.driver.extraJavaOptions"
    assert session.local_conf()[java] == session.LOCAL_CONF[java]
    path = class_archive.archive_path()
    path.parent.mkdir(parents=True)
    path.touch()
    assert f"-XX:SharedArchiveFile={path}" in session.local_conf()[java]
    assert session.local_conf()[java].startswith(session.LOCAL_CONF[java])


def test_the_archive_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = _submit(monkeypatch, 0)
    assert class_archive.make() == class_archive.make() == class_archive.archive_path()
    assert class_archive.archive_path().read_bytes() == b"classes"
    assert len(commands) == 1


def test_the_archive_for_containers_has_only_sparks_jars_on_its_class_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = _submit(monkeypatch, 0)
    assert class_archive.main(["--containers", "--folder", str(tmp_path)]) == 0
    made = class_archive.archive_path(tmp_path, containers=True)
    assert made != class_archive.archive_path(tmp_path)
    assert made.read_bytes() == b"classes"
    [command] = commands
    jars = f"{class_archive.spark_home()}/jars/*"
    assert command[:3] == ["java", "-cp", jars]
    settings = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    assert settings == class_archive.container_conf(made)
    assert {settings[f"spark.{role}.extraClassPath"] for role in ("driver", "executor")} == {jars}
    assert all(str(made) in each for key, each in settings.items() if key.endswith("JavaOptions"))


def test_a_spark_whose_launcher_fails_has_no_archive_for_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "no jars")

    monkeypatch.setattr("sluiceway.spark.class_archive.subprocess.run", fails)
    with pytest.raises(ConnectError, match="no command for spark-submit: no jars"):
        class_archive.make(containers=True)


def test_each_spark_has_an_archive_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usual = class_archive.archive_path()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert class_archive.archive_path() != usual


def test_a_failure_to_make_the_archive_shows_the_output_and_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    _submit(monkeypatch, 1)
    with pytest.raises(ConnectError, match="no memory"):
        class_archive.make()
    left = [file.suffix for file in class_archive.archive_path().parent.iterdir()]
    assert left == [".lock"], "neither archive nor scratch file"
