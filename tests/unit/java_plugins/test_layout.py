"""Mistakes in the layout of plugin.path: reported with what to do about them, and nothing else is."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest

from sluiceway.java_plugins.index import PluginIndex
from support.java_classes import SINK, SOURCE, class_file, source_jar, write_jar

ORDERS = "org.example.OrdersSourceConnector"
BASE = "org.example.base.BaseSourceConnector"
CHILD = {ORDERS: class_file(ORDERS, BASE)}
PARENT = {BASE: class_file(BASE, SOURCE)}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def problems(folder: Path) -> dict[str, list[str]]:
    """Return the problems by the path of their location below a folder of plugin.path."""
    return {str(place.relative_to(folder)): found for place, found in PluginIndex([folder]).problems().items()}


@pytest.mark.parametrize("listed", [True, False], ids=["manifest", "no manifest"])
def test_a_plugin_whose_superclass_is_missing_is_reported(tmp_path: Path, listed: bool) -> None:
    """Debezium's connectors, for example, without the jar of debezium-core."""
    task = b"org/apache/kafka/connect/connector/Task"  # as the class file of every connector has it
    write_jar(tmp_path / "orders/orders.jar", {ORDERS: CHILD[ORDERS] + task}, {SOURCE: [ORDERS]} if listed else None)
    needs = f"{ORDERS} extends {BASE}, which no jar of it has. Add the jars that it depends on."
    assert problems(tmp_path) == {"orders": [needs]}

    write_jar(tmp_path / "orders/base.jar", PARENT)
    assert problems(tmp_path) == {}


def test_classes_that_are_no_plugins_may_lack_anything(tmp_path: Path) -> None:
    mention = b"org/apache/kafka/connect/connector/Task"
    write_jar(tmp_path / "p/a.jar", {"a.Helper": class_file("a.Helper", "b.Missing") + mention})
    write_jar(tmp_path / "p/b.jar", {"a.TcpConnector": class_file("a.TcpConnector") + mention})
    write_jar(tmp_path / "p/c.jar", {"a.PlainConnector": class_file("a.PlainConnector", "b.Missing")})
    assert problems(tmp_path) == {}


def test_the_folder_of_one_plugin_is_one_level_too_low(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/orders"
    write_jar(folder / "orders.jar", CHILD, {SOURCE: [ORDERS]})
    write_jar(folder / "base.jar", PARENT)
    [_, found] = problems(folder)["orders.jar"]
    assert found.startswith(f"A class that it needs is in base.jar beside it: {folder} is the folder of one plugin. ")
    assert found.endswith(f" Name {tmp_path}/plugins in plugin.path instead.")
    assert problems(tmp_path / "plugins") == {}


def test_a_class_that_java_does_not_find_leads_to_the_right_folder_too(tmp_path: Path) -> None:
    source_jar(tmp_path / "orders/orders.jar")
    write_jar(tmp_path / "orders/json.jar", {"org.json.JsonObject": class_file("org.json.JsonObject")})
    index = PluginIndex([tmp_path / "orders"])
    scan = index.scan(tmp_path / "orders/orders.jar")
    scan.broken[ORDERS] = "java.lang.NoClassDefFoundError: org/json/JsonObject"
    assert "is in json.jar beside it" in index.problems()[tmp_path / "orders/orders.jar"][1]
    scan.broken[ORDERS] = "java.lang.NoClassDefFoundError: org/json/Other"
    assert len(index.problems()[tmp_path / "orders/orders.jar"]) == 1


def test_a_folder_of_plugins_in_a_folder_is_one_level_too_high(tmp_path: Path) -> None:
    folder = tmp_path / "connect-plugins"
    source_jar(folder / "orders/lib/orders.jar")
    write_jar(folder / "jdbc/jdbc.jar", {"a.JdbcSinkConnector": class_file("a.JdbcSinkConnector", SINK)})
    write_jar(folder / "drivers/d.jar", {"a.Driver": class_file("a.Driver")})
    [found] = problems(tmp_path)["connect-plugins"]
    assert found.startswith("Its folders jdbc, orders have plugins each, but share one class loader.")
    assert found.endswith(f"name {folder} in plugin.path instead of {tmp_path}.")
    assert problems(folder) == {}


def test_a_plugin_may_have_its_jars_in_several_folders(tmp_path: Path) -> None:
    source_jar(tmp_path / "orders/lib/orders.jar")
    write_jar(tmp_path / "orders/ext/d.jar", {"a.Driver": class_file("a.Driver")})
    source_jar(tmp_path / "other/other.jar", "a.OtherSourceConnector")
    source_jar(tmp_path / "other/lib/more.jar", "a.MoreSourceConnector")
    assert problems(tmp_path) == {}


def test_an_archive_of_jars_is_reported(tmp_path: Path) -> None:
    """Archives of Confluent Hub have the jars in a folder."""
    jar = source_jar(tmp_path / "elsewhere/orders.jar")
    path = tmp_path / "path"
    path.mkdir()
    with zipfile.ZipFile(path / "hub.zip", "w") as archive:
        archive.write(jar, "owner-orders-1.0/lib/orders.jar")
    with tarfile.open(path / "orders.tar.gz", "w:gz") as archive:
        archive.add(jar, "orders/orders.jar")
    source_jar(path / "classes.zip", "a.ZippedSourceConnector")
    assert problems(path) == {
        name: [f"It is an archive that nothing looks into. Install it with 'sluiceway plugins install {path}/{name}'."]
        for name in ("hub.zip", "orders.tar.gz")
    }


@pytest.mark.parametrize(
    ("jar", "copied"),
    [
        ("kafka-clients-3.5.1.jar", True),
        ("connect-api-2.6.0.jar", True),
        ("connect-json-2.6.0.jar", True),
        ("slf4j-api-2.0.9.jar", True),
        ("connect-mirror-client-4.3.0.jar", False),
        ("kafka-clients-extra.jar", False),
        ("slf4j-simple-2.0.9.jar", False),
    ],
)
def test_copies_of_the_runtime_are_noted_and_are_no_problem(tmp_path: Path, jar: str, copied: bool) -> None:
    source_jar(tmp_path / "orders/orders.jar")
    write_jar(tmp_path / "orders" / jar, {"a.Any": class_file("a.Any")})
    index = PluginIndex([tmp_path])
    assert index.problems() == {}
    notes = {place.name: note.partition(":")[0] for place, note in index.notes().items()}
    assert notes == ({"orders": jar} if copied else {})
