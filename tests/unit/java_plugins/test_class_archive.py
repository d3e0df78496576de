from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.java_plugins.class_archive import ClassArchive
from sluiceway.java_runtime import JavaRuntime


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JavaRuntime:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "a.jar").write_text("a")
    return JavaRuntime(tmp_path, tmp_path / "java", 17)


def recorded_by(archive: ClassArchive) -> Path | None:
    paths = [Path(each.partition("=")[2]) for each in archive.options if each.startswith("-XX:ArchiveClassesAtExit=")]
    return paths[0] if paths else None


def test_one_process_records_the_archive_that_later_ones_use(java: JavaRuntime, tmp_path: Path) -> None:
    jars = [tmp_path / "a.jar"]
    first, second = ClassArchive(java, jars, ""), ClassArchive(java, jars, "")
    recorded = recorded_by(first)
    assert recorded is not None
    assert second.options == []
    recorded.write_text("classes")
    first.close(0)
    second.close(0)
    option, *_others = ClassArchive(java, jars, "").options
    assert option.startswith("-XX:SharedArchiveFile=")
    assert Path(option.partition("=")[2]).read_text() == "classes"
    (tmp_path / "a.jar").write_text("changed")
    assert recorded_by(ClassArchive(java, jars, "")) is not None, "the archive is for other jars"


def test_a_process_that_fails_leaves_no_archive_and_the_next_one_records(java: JavaRuntime, tmp_path: Path) -> None:
    first = ClassArchive(java, [], "")
    recorded = recorded_by(first)
    assert recorded is not None
    recorded.write_text("a part")
    first.close(-9)
    assert not recorded.exists()
    assert recorded_by(ClassArchive(java, [], "")) is not None


@pytest.mark.parametrize("options", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa"])
def test_options_of_the_user_win(java: JavaRuntime, options: str) -> None:
    assert ClassArchive(java, [], options).options == []
