from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sluiceway.java_plugins import helper_jar as module
from sluiceway.java_plugins.helper_jar import compiled, helper_jar, jar_name
from sluiceway.java_plugins.runtime_jars import runtime_jars
from sluiceway.spark.py_files import package_zip
from support.java_plugins import fetch_runtime


@pytest.fixture(scope="module")
def content() -> bytes:
    fetch_runtime()
    return compiled(runtime_jars())


@pytest.fixture
def cache(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "compiled", lambda _: content)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "sluiceway"


def test_the_jar_is_compiled_once_and_reproducible(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = helper_jar([])
    assert jar == cache / "java-plugins" / jar_name()
    first = jar.read_bytes()
    names = zipfile.ZipFile(io.BytesIO(first)).namelist()
    assert {"log4j2.properties", "org/sluiceway/plugins/Host.class"} <= set(names)
    assert names == sorted(names)
    monkeypatch.setattr(module, "compiled", lambda _: pytest.fail("compiled again"))
    assert helper_jar([]) == jar
    monkeypatch.undo()
    assert compiled(runtime_jars()) == first


def test_the_zip_for_executors_has_the_jar(cache: Path) -> None:
    jar = helper_jar([])
    archive = package_zip(cache)
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); from sluiceway.java_plugins.helper_jar import helper_jar; "
    other = cache / "other"
    done = subprocess.run(
        [sys.executable, "-c", code + "print(helper_jar([]))"],
        env={"XDG_CACHE_HOME": str(other), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    found = Path(done.stdout.strip())
    assert found.is_relative_to(other)
    assert found.read_bytes() == jar.read_bytes()
