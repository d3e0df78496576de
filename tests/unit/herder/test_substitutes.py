"""Python classes that are used though plugin.path has the Java classes of those names: said wherever somebody looks."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import java_name
from sluiceway.errors import ConnectError, InvalidConfigError
from sluiceway.herder import Herder
from sluiceway.herder.plugin_classes import KINDS, installed_classes
from sluiceway.herder.substitutes import substitute_of, substitutes, warn_of_substitutes
from sluiceway.herder.validation import checked, installed, plugin_implementation
from sluiceway.java_plugins import finder
from sluiceway.java_plugins.connector import JavaConnector
from sluiceway.java_plugins.finder import use_java_plugins
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.java_classes import CONVERTER, HEADER_CONVERTER, PREDICATE, SINK, SOURCE, TRANSFORMATION, class_file, write_jar
from support.java_classes import no_other_plugins as no_other_plugins  # a fixture

FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
AVRO = "io.confluent.connect.avro.AvroConverter"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
CAST = "org.apache.kafka.connect.transforms.Cast$Value"
ORDERS = "org.example.OrdersSourceConnector"

BASES = {
    "source": (SOURCE, ()),
    "sink": (SINK, ()),
    "converter": ("java.lang.Object", (CONVERTER,)),
    "header_converter": ("java.lang.Object", (HEADER_CONVERTER,)),
    "transformation": ("java.lang.Object", (TRANSFORMATION,)),
    "predicate": ("java.lang.Object", (PREDICATE,)),
}
PYTHON = {java_name(cls): kind.type for kind in KINDS for cls in installed_classes(kind) if getattr(cls, "java_class", None)}
"""The Java classes that Python implements, with their kinds."""
ON_CLASS_PATH = (*finder._OF_RUNTIME, "org.apache.kafka.connect.tools.")
"""The packages of classes that Kafka Connect does not take from plugin.path, or only newer ones."""

SOURCE_CONFIG = {"name": "c", "connector.class": POSTGRES, "topic.prefix": "p", "database.hostname": "h"}
WORKER = {"bootstrap.servers": "localhost:1"}


def install(tmp_path: Path, *names: str, java: str = "fallback", version: str = "77.1") -> WorkerConfig:
    """Put jars with these classes into plugin.path, each in a location of its own."""
    for number, name in enumerate(names):
        parent, interfaces = BASES[PYTHON.get(name, "source")]
        write_jar(tmp_path / f"path/{number}/p.jar", {name: class_file(name, parent, interfaces)}, version=version)
    worker = {**WORKER, "plugin.path": str(tmp_path / "path"), "plugin.java": java}
    use_java_plugins([tmp_path / "path"], worker)
    return WorkerConfig.of(worker)


def told(config: Mapping[str, str], worker: WorkerConfig) -> dict[str, str]:
    """Return the texts about a config by Java class."""
    return {java_name(each.python): each.text for each in substitutes(config, worker)}


@pytest.mark.parametrize("name", [name for name in PYTHON if not name.startswith(ON_CLASS_PATH)])
def test_every_python_class_says_that_it_is_not_the_java_class(name: str, tmp_path: Path) -> None:
    cls = discovery.python_named(next(kind.group for kind in KINDS if kind.type == PYTHON[name]), name)
    assert cls is not None
    assert substitute_of(cls) is None
    install(tmp_path, name)
    found = substitute_of(cls)
    assert found is not None
    assert f"{name} is Sluiceway's class in Python here, not the Java class in {tmp_path}/path/0. " in found.text
    assert found.text.endswith("plugin.java=prefer in the worker file.")
    assert plugin_implementation(name).note == found.text
    assert {each.used for each in installed(connectors_only=False) if each.name == name} == {"python"}


@pytest.mark.parametrize(("java", "used"), [("fallback", "python"), ("prefer", "java"), ("off", None)])
def test_the_list_of_plugins_says_what_is_used(tmp_path: Path, java: str, used: str | None) -> None:
    worker = install(tmp_path, FILE, POSTGRES, ORDERS, java=java)
    found = {each.name: each.used for each in installed()}
    assert (found[FILE], found[POSTGRES], found.get(ORDERS)) == (used, used, None)
    assert found["io.debezium.connector.mysql.MySqlConnector"] is None
    assert set(told({"connector.class": POSTGRES}, worker)) == ({POSTGRES} if java == "fallback" else set())


def test_a_class_of_kafka_is_used_in_its_newest_version(tmp_path: Path) -> None:
    """Connectors bring old copies of Kafka's own converters and transforms along, which Kafka Connect does not use either."""
    worker = install(tmp_path, CAST)
    config = {"connector.class": POSTGRES, "transforms": "t", "transforms.t.type": CAST}
    assert told(config, worker) == {}
    assert {each.used for each in installed(connectors_only=False) if each.name == CAST} == {"python"}


def test_the_way_to_the_java_class_is_one_that_works(tmp_path: Path) -> None:
    worker = install(tmp_path, FILE, POSTGRES)
    with_version = "set connector.plugin.version=77.1 beside the class, or plugin.java=prefer in the worker file."
    assert with_version in told({"connector.class": POSTGRES}, worker)[POSTGRES]
    assert issubclass(discovery.connector_class(POSTGRES, "77.1"), JavaConnector)
    assert told({"connector.class": POSTGRES, "connector.plugin.version": "77.1"}, worker) == {}
    # The Python class has Kafka's version as well, so a version chooses nothing.
    assert "class, set plugin.java=prefer" in told({"connector.class": "FileStreamSource"}, worker)[FILE].replace("Java ", "")


@pytest.mark.parametrize(
    ("connector", "expected"), [(POSTGRES, {POSTGRES, AVRO, UNWRAP}), (ORDERS, {AVRO})], ids=["python", "java"]
)
def test_stages_are_named_with_the_keys_of_their_versions(tmp_path: Path, connector: str, expected: set[str]) -> None:
    """Those of a Java connector run in Java, but for its converters."""
    worker = install(tmp_path, POSTGRES, AVRO, UNWRAP, ORDERS)
    config = {"connector.class": connector, "value.converter": AVRO, "transforms": "u", "transforms.u.type": UNWRAP}
    found = told(config, worker)
    assert set(found) == expected
    assert "set value.converter.plugin.version=77.1 " in found[AVRO]
    if UNWRAP in found:
        assert "set transforms.u.plugin.version=77.1 " in found[UNWRAP]


def test_converters_of_the_worker_are_named(tmp_path: Path) -> None:
    worker = install(tmp_path, AVRO)
    assert set(told({"connector.class": POSTGRES}, WorkerConfig.of({**worker.raw, "value.converter": AVRO}))) == {AVRO}


def test_a_refused_config_says_which_class_has_refused_it(tmp_path: Path) -> None:
    config = {**SOURCE_CONFIG, "snapshot.mode": "perhaps"}
    with pytest.raises(InvalidConfigError) as before:
        checked(config, WorkerConfig.of(WORKER), offline=True)
    assert "Python" not in str(before.value)
    worker = install(tmp_path, POSTGRES)
    with pytest.raises(InvalidConfigError) as raised:
        checked(config, worker, offline=True)
    assert str(raised.value) == f"{before.value}\n{told(config, worker)[POSTGRES]}"
    copy = pickle.loads(pickle.dumps(raised.value))  # noqa: S301
    assert (str(copy), copy.errors) == (str(raised.value), raised.value.errors)


@pytest.mark.parametrize(
    ("prefix", "name"), [("", POSTGRES), ("transforms.u.", UNWRAP), ("value.converter.", AVRO)], ids=["connector", "smt", "avro"]
)
def test_keys_that_only_the_java_class_has_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, name: str
) -> None:
    worker = install(tmp_path, POSTGRES, AVRO, UNWRAP)
    config = {"connector.class": POSTGRES, "value.converter": AVRO, "transforms": "u", "transforms.u.type": UNWRAP}
    [found] = [each for each in substitutes(config, worker) if java_name(each.python) == name]
    in_java = ConfigDef(ConfigKey(name=key, type=Type.STRING, doc="") for key in ("new.key", "type"))
    monkeypatch.setattr(found.java, "config_def", lambda: in_java)
    assert found.text_for(config) == found.text
    assert found.text_for({**config, f"{prefix}new.key": "1", f"{prefix}of.nobody": "2"}) == (
        f"{found.text} Only the Java class has {prefix}new.key."
    )


def test_java_is_asked_only_about_keys_that_python_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = install(tmp_path, POSTGRES)
    config = {**SOURCE_CONFIG, "producer.override.acks": "1", "key.converter.schemas.enable": "false", "airflow.owner": "a"}
    [found] = substitutes(config, worker)
    asked = []

    def config_def() -> ConfigDef:
        asked.append(1)
        raise ConnectError("There is no Java.")

    monkeypatch.setattr(found.java, "config_def", config_def)
    assert (found.text_for(config), asked) == (found.text, [])
    assert (found.text_for({**config, "new.key": "x"}), asked) == (found.text, [1])


def test_a_new_connector_is_warned_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    worker = install(tmp_path, FILE)
    herder = Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
    config = {"name": "c", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}

    def warnings() -> list[str]:
        texts = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        caplog.clear()
        return texts

    expected = [f"[c|worker] {told(config, worker)[FILE]}"]
    herder.create("c", config)
    assert warnings() == expected
    herder.put_config("c", {**config, "topic": "u"})
    assert warnings() == []
    herder.delete("c")
    herder.put_config("c", config)
    assert warnings() == expected
    warn_of_substitutes("c", config, worker)  # as the driver does at each start
    assert warnings() == expected
