"""Jars of plugin.path grouped as Connect groups them."""

from __future__ import annotations

from pathlib import Path

from sluiceway.java_plugins.locations import plugin_locations
from support.java_classes import source_jar


def test_each_child_of_a_folder_is_a_location(tmp_path: Path) -> None:
    alone, first = source_jar(tmp_path / "path/alone.jar"), source_jar(tmp_path / "path/orders/lib/first.jar")
    second = source_jar(tmp_path / "path/orders/second.zip")
    (tmp_path / "path/notes.txt").touch()
    (tmp_path / "path/python/pkg").mkdir(parents=True)

    found = plugin_locations([tmp_path / "path", tmp_path / "none"])

    assert found == {alone: (alone,), tmp_path / "path/orders": (first, second)}


def test_an_archive_may_be_named_itself(tmp_path: Path) -> None:
    jar = source_jar(tmp_path / "one.jar")

    assert plugin_locations([jar]) == {jar: (jar,)}


def test_links_are_followed_once(tmp_path: Path) -> None:
    jar = source_jar(tmp_path / "store/orders.jar")
    location = tmp_path / "path/orders"
    location.mkdir(parents=True)
    (location / "orders.jar").symlink_to(jar)
    (location / "again").symlink_to(location)
    (location / "gone.jar").symlink_to(tmp_path / "nothing.jar")

    assert plugin_locations([tmp_path / "path"]) == {location: (jar,)}
