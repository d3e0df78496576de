"""``sluiceway plugins install`` with a real Ivy and a repository on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.cli.main import main
from sluiceway.java_plugins.installed import read_lock
from sluiceway.stack import maven, plugin_install
from support.java_classes import source_jar, write_jar
from support.maven_repository import metadata, module_files, serving

_ORDERS = "org.example:orders"


def test_a_plugin_comes_from_a_repository_and_is_upgraded_and_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(plugin_install, "runtime_jars", list)
    jar, text = source_jar(tmp_path / "orders.jar").read_bytes(), write_jar(tmp_path / "text.jar", {}).read_bytes()
    files = module_files("orders", "text", jar=jar) | metadata("orders", "1.0")
    # What the repository lacks must not be asked for: the runtime has it.
    files |= module_files("text", "org.apache.kafka:connect-api:4.3.0", jar=text)
    here, there = tmp_path / "here", tmp_path / "there"
    with serving(files) as repository:
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, repository.url)
        assert main(["plugins", "install", "--no-java", "--to", str(here), _ORDERS]) == 0
        assert sorted(each.name for each in (here / "orders-1.0").iterdir()) == ["orders-1.0.jar", "text-1.0.jar"]
        lock = tmp_path / "plugins.lock"
        lock.write_bytes((here / "plugins.lock").read_bytes())
        assert list(read_lock(lock)["orders-1.0"].sha256) == ["org.example:orders:1.0", "org.example:text:1.0"]

        repository.files |= module_files("orders", "text", version="2.0", jar=jar) | metadata("orders", "1.0", "2.0")
        assert main(["plugins", "upgrade", "--no-java", "--to", str(here), "orders-1.0"]) == 0
        assert list(read_lock(here / "plugins.lock")) == ["orders-2.0"]
        assert not (here / "orders-1.0").exists()

        assert main(["plugins", "install", "--no-java", "--to", str(there), "--locked", str(lock)]) == 0
        assert (there / "plugins.lock").read_bytes() == lock.read_bytes()
        assert main(["plugins", "install", "--no-java", "--to", str(there), "org.example:none:1.0"]) == 1
    assert f"Fetching {_ORDERS} from {repository.url} ..." in capsys.readouterr().out


_PUBLISHED = {
    "org.mongodb.kafka:mongo-kafka-connect:2.0.1": ("com.mongodb.kafka.connect.MongoSinkConnector", "sink", "database"),
    "com.github.jcustenborder.kafka.connect:kafka-connect-transform-common:0.1.0.14": (
        "com.github.jcustenborder.kafka.connect.transform.common.PatternRename$Value",
        "transformation",
        None,
    ),
    "io.debezium:debezium-connector-jdbc:3.3.1.Final": ("io.debezium.connector.jdbc.JdbcSinkConnector", "sink", "connection.url"),
}


@pytest.mark.long
@pytest.mark.parametrize("coordinates", _PUBLISHED)
def test_published_plugins_are_installed_whole(coordinates: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With their real dependencies, in a real Java: no class is broken, and each connector has a config to begin with."""
    name, kind, key = _PUBLISHED[coordinates]
    assert main(["plugins", "install", "--to", str(tmp_path / "here"), coordinates]) == 0

    printed = capsys.readouterr().out
    assert [name, kind] in [line.split()[:2] for line in printed.splitlines()]
    assert "cannot be created" not in printed
    assert key is None or f'"{key}": "<string' in printed
    lock = tmp_path / "here" / "plugins.lock"
    assert main(["plugins", "install", "--no-java", "--to", str(tmp_path / "there"), "--locked", str(lock)]) == 0
    [here], [there] = ([each for each in (tmp_path / side).iterdir() if each.is_dir()] for side in ("here", "there"))
    assert {each.name: each.read_bytes() for each in here.iterdir()} == {each.name: each.read_bytes() for each in there.iterdir()}
