"""Java plugins in ``sluiceway.discovery``: their names, versions, and which class a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.connectors.file.source import FileStreamSourceConnector
from sluiceway.errors import ConfigError, ConnectError, NotFoundError
from sluiceway.herder.validation import InstalledPlugin, installed, plugin_config
from sluiceway.java.version_range import VersionRange
from sluiceway.java_plugins import finder
from sluiceway.java_plugins.finder import use_java_plugins
from support.java_classes import SOURCE, class_file, source_jar, write_jar
from support.java_classes import no_other_plugins as no_other_plugins  # a fixture

ORDERS = "org.example.OrdersSourceConnector"
FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def java_class_of(cls: type) -> tuple[str | None, str]:
    return getattr(cls, "java_class", None), discovery.version_of(cls)


@pytest.mark.parametrize("name", [ORDERS, "OrdersSourceConnector", "OrdersSource"])
def test_a_java_connector_is_found_like_a_python_one(tmp_path: Path, name: str) -> None:
    source_jar(tmp_path / "path/orders.jar", version="1.2")
    use_java_plugins([tmp_path / "path"], {})

    assert java_class_of(discovery.connector_class(name)) == (ORDERS, "1.2")
    assert not discovery.is_sink(discovery.connector_class(name))


def test_without_jars_nothing_changes(tmp_path: Path) -> None:
    before = installed(connectors_only=False)
    use_java_plugins([tmp_path], {})

    assert installed(connectors_only=False) == before
    with pytest.raises(NotFoundError, match="available connectors are:"):
        discovery.connector_class("org.example.None")
    assert use_java_plugins([], {}) is None


@pytest.mark.parametrize(("choice", "version"), [("prefer", "9.9"), ("fallback", "4.3.0"), ("off", "4.3.0"), (None, "4.3.0")])
def test_a_name_of_two_classes(tmp_path: Path, choice: str | None, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.java_plugins.location_scan.CONNECT_VERSION", "9.9")
    source_jar(tmp_path / "path/file.jar", FILE)
    use_java_plugins([tmp_path / "path"], {"plugin.java": choice} if choice else {})

    for name in (FILE, "FileStreamSource"):
        found = discovery.connector_class(name)
        assert discovery.version_of(found) == version
        assert (found is FileStreamSourceConnector) == (choice != "prefer")
    found = discovery.connector_class(FILE, "[9,)")
    assert discovery.version_of(found) == ("4.3.0" if choice == "off" else "9.9")
    listed = [each.version for each in installed() if each.name == FILE]
    assert listed == (["4.3.0"] if choice == "off" else ["4.3.0", "9.9"])


def test_versions_of_one_class(tmp_path: Path) -> None:
    for version in ("1.9", "1.10"):
        source_jar(tmp_path / f"path/{version}/orders.jar", version=version)
    use_java_plugins([tmp_path / "path"], {})

    assert [java_class_of(discovery.connector_class(ORDERS, wanted))[1] for wanted in (None, "1.9", "[1,1.10)", "[2,)")] == [
        "1.10",
        "1.9",
        "1.9",
        "1.10",
    ]
    assert [each for each in installed() if each.name == ORDERS] == [
        InstalledPlugin(ORDERS, "source", version) for version in ("1.9", "1.10")
    ]
    with pytest.raises(ConfigError):
        discovery.connector_class(ORDERS, "[1")
    with pytest.raises(ConnectError, match=r"matches the version range \[2,\), available versions: \[1\.9, 1\.10\]"):
        plugin_config(ORDERS, "[2,)")
    assert discovery.plugin_named("sluiceway.connectors", ORDERS, VersionRange.parse("1.9")) is discovery.connector_class(
        ORDERS, "1.9"
    )


def test_a_later_call_adds_folders_and_keeps_what_is_known(tmp_path: Path) -> None:
    source_jar(tmp_path / "one/orders.jar")
    source_jar(tmp_path / "two/other.jar", "org.example.OtherSourceConnector")
    first = use_java_plugins([tmp_path / "one"], {})

    assert use_java_plugins([tmp_path / "one"], {}) is first
    use_java_plugins([tmp_path / "two"], {})
    assert use_java_plugins([], {}) is None

    assert discovery.connector_class(ORDERS) is not discovery.connector_class("org.example.OtherSourceConnector")


def test_hybrid_fail_refuses_plugins_without_manifests(tmp_path: Path) -> None:
    source_jar(tmp_path / "path/orders.jar")
    use_java_plugins([tmp_path / "path"], {"plugin.discovery": "HYBRID_FAIL"})
    write_jar(tmp_path / "path/plain.jar", {"a.Plain": class_file("a.Plain", SOURCE)})
    finder._last = None

    with pytest.raises(ConnectError, match=r"missing ServiceLoader manifests(.|\n)*plain\.jar\ta\.Plain\tsource") as raised:
        use_java_plugins([tmp_path / "path"], {"plugin.discovery": "hybrid_fail"})
    assert ORDERS not in str(raised.value)
