"""Java plugins found by name, alias, kind and version."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from sluiceway.discovery import CONNECT_VERSION
from sluiceway.java.version_range import VersionRange
from sluiceway.java_plugins.index import SERVICE_LOAD, PluginIndex
from support.java_classes import CONVERTER, HEADER_CONVERTER, SOURCE, TRANSFORMATION, class_file, source_jar, write_jar

ORDERS = "org.example.OrdersSourceConnector"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_class_is_found_by_its_full_name_without_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = source_jar(tmp_path / "path/orders/orders-1.2.jar")
    monkeypatch.setattr("sluiceway.java_plugins.index.scan_location", None)

    found = PluginIndex([tmp_path / "path"]).find(ORDERS)

    assert found is not None
    assert (found.class_name, found.kind, found.version, found.in_manifest) == (ORDERS, "source", "1.2", True)
    assert (found.location, found.jars) == (tmp_path / "path/orders", (jar,))


@pytest.mark.parametrize("alias", ["OrdersSourceConnector", "OrdersSource"])
def test_a_class_is_found_by_an_alias(tmp_path: Path, alias: str) -> None:
    source_jar(tmp_path / "path/orders.jar")
    index = PluginIndex([tmp_path / "path"])

    assert index.find(alias, "source") == index.find(ORDERS)
    assert index.find(alias, "sink") is None
    assert index.find("Orders") is None
    assert index.find("org.example.None") is None


def test_an_alias_of_two_classes_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for package in ("a", "b"):
        source_jar(tmp_path / f"path/{package}.jar", f"{package}.OrdersSourceConnector")

    assert PluginIndex([tmp_path / "path"]).find("OrdersSource") is None
    assert "several plugins have it: a.OrdersSourceConnector, b.OrdersSourceConnector" in caplog.text


def test_the_newest_version_wins_unless_a_range_excludes_it(tmp_path: Path) -> None:
    for version in ("1.9.0.Final", "1.10.0.Final", "1.10.0.Beta1"):
        source_jar(tmp_path / f"path/{version}/orders.jar", version=version)
    index = PluginIndex([tmp_path / "path"])

    def version_in(text: str | None) -> str | None:
        found = index.find("OrdersSource", "source", VersionRange.parse(text))
        return None if found is None else found.version

    assert [version_in(text) for text in (None, "[1.9,1.10)", "1.10.0.Beta1", "[2,)")] == [
        "1.10.0.Final",
        "1.10.0.Beta1",
        "1.10.0.Beta1",
        None,
    ]
    assert [each.version for each in index.all_versions(ORDERS)] == ["1.9.0.Final", "1.10.0.Beta1", "1.10.0.Final"]


def test_plugins_without_a_manifest_are_found_by_a_scan_only(tmp_path: Path) -> None:
    classes = {"a.Both": class_file("a.Both", interfaces=[CONVERTER, HEADER_CONVERTER])}
    classes["a.Turn$Key"] = class_file("a.Turn$Key", interfaces=[TRANSFORMATION])
    write_jar(tmp_path / "path/mine.jar", classes, {CONVERTER: ["a.Both"]})
    both, services = PluginIndex([tmp_path / "path"]), PluginIndex([tmp_path / "path"], SERVICE_LOAD)

    assert [(each.class_name, each.kind, each.in_manifest) for each in both.plugins()] == [
        ("a.Both", "converter", True),
        ("a.Both", "header_converter", False),
        ("a.Turn$Key", "transformation", False),
    ]
    assert [(each.class_name, each.kind) for each in services.plugins()] == [("a.Both", "converter")]
    assert [each.kind for each in services.all_versions("a.Both")] == ["converter"]
    assert services.find("a.Turn$Key") is None
    assert [each.kind for each in both.without_manifest()] == ["header_converter", "transformation"]


def test_a_stored_scan_is_used_until_a_jar_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = source_jar(tmp_path / "path/orders.jar")
    before = PluginIndex([tmp_path / "path"]).plugins()
    with monkeypatch.context() as patch:
        patch.setattr("sluiceway.java_plugins.index.scan_location", None)
        assert PluginIndex([tmp_path / "path"]).plugins() == before

    source_jar(jar, "org.example.OtherSourceConnector")
    os.utime(jar, ns=(1, 1))

    assert [each.class_name for each in PluginIndex([tmp_path / "path"]).plugins()] == ["org.example.OtherSourceConnector"]


def test_a_damaged_scan_is_made_again(tmp_path: Path) -> None:
    source_jar(tmp_path / "path/orders.jar")
    before = PluginIndex([tmp_path / "path"]).plugins()
    for file in (tmp_path / "cache").rglob("*.json"):
        file.write_text('{"format": 1, "jars": []}')

    assert PluginIndex([tmp_path / "path"]).plugins() == before


def test_a_cache_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    source_jar(tmp_path / "path/orders.jar")

    assert len(PluginIndex([tmp_path / "path"]).plugins()) == 1


def test_broken_jars_and_manifests_are_problems(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_jar(tmp_path / "path/mine/mine.jar", {}, {SOURCE: ["a.Gone"]})
    (tmp_path / "path/mine/broken.jar").write_text("no jar")
    caplog.set_level(logging.WARNING)

    index = PluginIndex([tmp_path / "path"])

    assert index.plugins() == []
    (problems,) = index.problems().values()
    assert problems[0] == "META-INF/services lists a.Gone, which is no plugin of this location."
    assert problems[1].startswith(f"{tmp_path}/path/mine/broken.jar cannot be read (")
    assert "a.Gone" in caplog.text


def test_kafkas_plugins_have_kafkas_version(tmp_path: Path) -> None:
    source_jar(tmp_path / "path/connect-file-3.9.0.jar", "org.apache.kafka.connect.file.FileStreamSourceConnector")
    write_jar(tmp_path / "path/plain.jar", {ORDERS: class_file(ORDERS, SOURCE)})

    assert [each.version for each in PluginIndex([tmp_path / "path"]).plugins()] == [CONNECT_VERSION, "undefined"]
