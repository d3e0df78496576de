"""Archives of loaded classes: their paths, who makes them, and when the broker uses one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from sluiceway import class_archives
from sluiceway.java_runtime import JavaRuntime
from sluiceway.stack import broker


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = JavaRuntime(tmp_path, tmp_path / "java", 17)
    monkeypatch.setattr(broker, "find_java", lambda: java)
    jar = tmp_path / "a.jar"
    jar.write_text("a")
    return jar


def test_a_broker_uses_an_archive_that_exists_for_its_jars_unless_the_user_chooses_one(jar: Path) -> None:
    archive = broker.broker_archive([jar])
    assert broker.class_options([jar], "") == []
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in broker.class_options([jar], "-Xmx1g")
    for chosen in ("-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-XX:ArchiveClassesAtExit=mine.jsa"):
        assert broker.class_options([jar], chosen) == []
    jar.write_text("changed")
    assert broker.class_options([jar], "") == []


def test_one_of_several_makes_an_archive_and_none_sees_a_part(tmp_path: Path) -> None:
    target = tmp_path / "cache" / "classes.jsa"
    calls: list[Path] = []

    def record(scratch: Path) -> None:
        calls.append(scratch)
        scratch.write_text("a part")
        assert not target.exists()
        scratch.write_text("all")

    makers = [threading.Thread(target=class_archives.make_once, args=(target, record)) for _ in range(4)]
    for each in makers:
        each.start()
    for each in makers:
        each.join()
    assert len(calls) == 1
    assert target.read_text() == "all"


def test_a_failed_recording_leaves_nothing_and_the_next_one_makes_the_archive(tmp_path: Path) -> None:
    target = tmp_path / "classes.jsa"

    def fails(scratch: Path) -> None:
        scratch.write_text("a part")
        raise RuntimeError

    def succeeds(scratch: Path) -> None:
        scratch.write_text("all")

    with pytest.raises(RuntimeError):
        class_archives.make_once(target, fails)
    assert [file.suffix for file in tmp_path.iterdir()] == [".lock"]
    class_archives.make_once(target, succeeds)
    assert target.read_text() == "all"
