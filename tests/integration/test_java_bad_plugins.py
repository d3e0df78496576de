"""Java plugins that cannot be created, end their process, hang, fill memory or the log: a clear error, and nothing else ends."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.validation import validate_config
from sluiceway.java_plugins import hosts, log_levels
from sluiceway.java_plugins.log_levels import set_java_levels
from sluiceway.storage.model import State
from sluiceway.worker.worker_connector import Failed
from support.engine import RunningTask
from support.eventually import eventually
from support.java_classes import SOURCE, class_file, write_jar
from support.java_plugins import SCRIPTED, Driven, compiled_plugin, fetch_runtime, forget_plugins, java_processes
from support.kafka import Kafka

_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_SCRIPTED = "test.ScriptedSource"

_CANNOT_BE_CREATED = {
    "test.BadSources$ConstructorThrows": "no license",
    "test.BadSources$StaticBlockThrows": "IllegalStateException: no native library",
    "test.BadSources$NeedsMissing": "java.lang.ClassNotFoundException: test.BadSources$Missing",
    "test.Newer": "java.lang.UnsupportedClassVersionError: test/Newer has been compiled by a more recent version",
}


@pytest.fixture(scope="module", autouse=True)
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A ``plugin.path`` with good and bad plugins."""
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    jar = compiled_plugin(folder, "bad", SCRIPTED) / "bad.jar"
    without(jar, "test/BadSources$Missing.class")
    write_jar(folder / "bad/newer.jar", {"test.Newer": class_file("test.Newer", SOURCE, java=26)})
    write_jar(folder / "bad/broken.jar", {}).write_bytes(b"this is no jar")
    use_plugin_path({"plugin.path": str(folder)})
    yield folder
    forget_plugins()


def without(jar: Path, name: str) -> None:
    """Remove an entry from a jar."""
    with zipfile.ZipFile(jar) as old:
        kept = {each: old.read(each) for each in old.namelist() if each != name}
    with zipfile.ZipFile(jar, "w") as new:
        for each, content in kept.items():
            new.writestr(each, content)


def validated(name: str) -> list[str]:
    config = {"name": "c", "connector.class": name}
    return validate_config(config, WorkerConfig.of({"bootstrap.servers": "localhost:1"})).errors


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("test.BadSources$Exits", "ended unexpectedly with exit code 4"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in _CANNOT_BE_CREATED.items()),
        ("test.BadSources$Overflows", "test.BadSources$Overflows.validate() failed: java.lang.StackOverflowError"),
        pytest.param("test.BadSources$FillsMemory", "java.lang.OutOfMemoryError: Java heap space", marks=pytest.mark.long),
        pytest.param("test.BadSources$Hangs", "did not return from validate() within 2 s", marks=pytest.mark.long),
    ],
)
def test_validation_of_a_bad_plugin_is_an_error_and_the_next_one_works(
    name: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert validated(_SCRIPTED) == []
    if name.endswith("Hangs"):
        monkeypatch.setattr(hosts, "_CALL_SECONDS", 2.0)
    with pytest.raises(ConnectError) as raised:
        validated(name)
    assert wanted in str(raised.value)
    monkeypatch.undo()
    assert validated(_SCRIPTED) == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "wanted"), _CANNOT_BE_CREATED.items())
def test_a_connector_that_cannot_be_created_is_failed(name: str, wanted: str) -> None:
    driven = Driven({"name": "c", "connector.class": name, "tasks.max": "1"})
    assert wanted in str(driven.until(Failed).error)
    driven.connector.stop(30)
    assert java_processes() == []


def config(name: str, topic: str, **more: str) -> dict[str, str]:
    task = {"name": name, "connector.class": _SCRIPTED, "task.class": f"{_SCRIPTED}$ScriptedTask", "topic": topic}
    converters = {"key.converter": _STRINGS, "value.converter": _STRINGS}
    return {**task, **converters, **{key.replace("_", "."): value for key, value in more.items()}}


_PYTHON_STAGE = {"transforms": "python", "transforms_python_type": "support.java_plugins.Same"}
_JSON_VALUES = {"value_converter": "org.apache.kafka.connect.json.JsonConverter"}


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"then": "null"}, "ScriptedTask.poll() returned a null record"),
        ({"then": "schema", **_JSON_VALUES}, "Tolerance exceeded in error handler"),
        ({"then": "schema", **_PYTHON_STAGE, **_JSON_VALUES}, "text"),
        ({"then": "missing"}, "java.lang.NoClassDefFoundError: com/example/Driver"),
        ({"task.class": "test.BadSources$ThrowingTask"}, "java.lang.IllegalStateException: no license"),
        ({"task.class": "test.BadSources$Gone"}, "java.lang.ClassNotFoundException: test.BadSources$Gone"),
    ],
)
def test_a_bad_task_is_failed_with_its_error(kafka: Kafka, topic: str, name: str, more: Mapping[str, str], wanted: str) -> None:
    with RunningTask(config(name, topic, **more), kafka.worker()) as task:
        result = task.join()
    assert result.failed
    assert wanted in (result.trace or ""), result.trace
    assert task.reports.states[-1] is State.FAILED
    assert java_processes() == []


@pytest.mark.long
@pytest.mark.kafka
def test_a_task_whose_constructor_hangs_ends_when_it_must_stop(kafka: Kafka, topic: str, name: str) -> None:
    worker = kafka.worker(task_shutdown_graceful_timeout_ms="2000")
    with RunningTask(config(name, topic, task_class="test.BadSources$HangingTask"), worker) as task:
        eventually(lambda: java_processes() != [])
        result = task.stop()
    assert "The constructor of the task did not return" in (result.trace or "")
    assert java_processes() == []


@pytest.mark.kafka
def test_very_many_log_lines_are_left_out_and_levels_can_be_set(
    kafka: Kafka, topic: str, name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_levels, "_levels", {})
    set_java_levels({"test": "DEBUG"})
    found: list[str] = []

    def logged(wanted: Callable[[str], bool]) -> bool:
        found.extend(capfd.readouterr().err.splitlines())
        return any(map(wanted, found))

    limit = {"sluiceway.java.opts": "-Dsluiceway.log.lines.per.second=300"}
    endless = {"limit": "1000000", "slow": "50", "flood": ""}
    with RunningTask(config(name, topic, **endless, **limit), kafka.worker()) as task:
        eventually(lambda: logged(lambda line: f"DEBUG [{name}|task-0] the task starts at level DEBUG" in line))
        eventually(lambda: logged(lambda line: "Left out " in line))
        set_java_levels({"test": "ERROR"})
        sent = kafka.end(topic)
        eventually(lambda: kafka.end(topic) > sent)
        capfd.readouterr()
        eventually(lambda: not capfd.readouterr().err)
        result = task.stop()
    assert not result.failed, result.trace
    flood = [line for line in found if "of very many" in line]
    assert 3000 <= len(flood) < 20_000
    [note] = [line for line in found if "Left out" in line]
    assert int(note.split("Left out ")[1].split()[0]) > 100_000, note
    assert java_processes() == []
