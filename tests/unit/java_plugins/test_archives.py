"""Archives of plugins, honest ones and others."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from sluiceway.errors import ConnectError
from sluiceway.java_plugins import archives
from sluiceway.java_plugins.archives import unpack

OUTSIDE = ("../x.jar", "a/../../x.jar", "/x.jar", "..\\x.jar", "C:\\x.jar", "C:x.jar", "..")


def zip_file(path: Path, files: Mapping[str, bytes], *, mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def tar_file(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def archive_of(folder: Path, suffix: str, files: Mapping[str, bytes]) -> Path:
    make = zip_file if suffix == ".zip" else tar_file
    return make(folder / f"archive{suffix}", files)


def unpacked(archive: Path) -> dict[str, bytes]:
    target = archive.parent / "target"
    target.mkdir()
    unpack(archive, target)
    return {str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*") if file.is_file()}


@pytest.mark.parametrize("suffix", archives.SUFFIXES)
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.jar": b"1", "lib/b.jar": b"2"}, {"a.jar": b"1", "lib/b.jar": b"2"}),
        ({"p-1/a.jar": b"1", "p-1/lib/b.jar": b"2"}, {"a.jar": b"1", "lib/b.jar": b"2"}),
        ({"p/p/a.jar": b"1"}, {"p/a.jar": b"1"}),
        ({"./p/a.jar": b"1", "p/b.jar": b""}, {"a.jar": b"1", "b.jar": b""}),
    ],
)
def test_a_folder_that_has_everything_is_left_out(
    tmp_path: Path, suffix: str, files: dict[str, bytes], expected: dict[str, bytes]
) -> None:
    assert unpacked(archive_of(tmp_path, suffix, files)) == expected


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, suffix: str, name: str) -> None:
    archive = archive_of(tmp_path, suffix, {"good.jar": b"1", name: b"evil"})

    with pytest.raises(ConnectError, match="is outside of its folder"):
        unpacked(archive)
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == [archive.name, "good.jar"]


def test_links_are_refused(tmp_path: Path) -> None:
    linked = zip_file(tmp_path / "a.zip", {"lib": b"/etc"}, mode=stat.S_IFLNK | 0o777)
    with pytest.raises(ConnectError, match="has lib, which is not a regular file"):
        unpacked(linked)
    tar = tmp_path / "b.tgz"
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
        with tarfile.open(tar, "w:gz") as archive:
            info = tarfile.TarInfo("lib")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        (tmp_path / "target").rmdir()
        with pytest.raises(ConnectError, match="has lib, which is not a regular file"):
            unpacked(tar)


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 3 << 20)
    archive = archive_of(tmp_path, suffix, {f"{number}.jar": bytes(1 << 20) for number in range(8)})
    assert archive.stat().st_size < 1 << 20

    with pytest.raises(ConnectError, match="GiB of files"):
        unpacked(archive)
    assert sum(file.stat().st_size for file in (tmp_path / "target").rglob("*")) <= 5 << 20


def test_a_zip_that_lies_about_its_sizes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    archive = zip_file(tmp_path / "a.zip", {"a.jar": bytes(100_000)})
    data = archive.read_bytes()
    archive.write_bytes(data.replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))

    with pytest.raises(ConnectError, match=r"not unpacked|cannot be unpacked"):
        unpacked(archive)


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    with pytest.raises(ConnectError, match="more than 3 files"):
        unpacked(archive_of(tmp_path, ".zip", {f"{number}.jar": b"" for number in range(4)}))


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_a_damaged_archive_is_refused(tmp_path: Path, suffix: str) -> None:
    whole = archive_of(tmp_path, suffix, {"a.jar": bytes(range(256)) * 100})
    data = whole.read_bytes()
    for cut in (0, 10, len(data) // 2):
        whole.write_bytes(data[:cut])
        with pytest.raises(ConnectError, match="cannot be unpacked"):
            unpacked(whole)
        for file in (tmp_path / "target").rglob("*"):
            file.unlink()
        (tmp_path / "target").rmdir()


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    for suffix in (".zip", ".tar.gz"):
        archive = archive_of(tmp_path, suffix, {"a.jar": b"1", "./a.jar": b"2"})
        with pytest.raises(ConnectError, match="cannot be unpacked"):
            unpacked(archive)
        (tmp_path / "target" / "a.jar").unlink()
        (tmp_path / "target").rmdir()
