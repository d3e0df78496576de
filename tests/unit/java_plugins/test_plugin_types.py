"""The classes that Connect takes for plugins, by their supertypes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.java_plugins.class_files import ClassPath
from sluiceway.java_plugins.plugin_types import PluginTypes
from support.java_classes import (
    ABSTRACT,
    CONVERTER,
    HEADER_CONVERTER,
    PUBLIC,
    SINK,
    SOURCE,
    TRANSFORMATION,
    class_file,
    write_jar,
)


def scan(folder: Path, *classes: bytes) -> dict[str, set[str]]:
    named = {data[24:].decode("latin-1").partition("\x07")[0].replace("/", "."): data for data in classes}
    jar = write_jar(folder / "plugin.jar", named)
    with ClassPath([jar]) as found:
        return {name: set(kinds) for name, kinds in PluginTypes(found).scan().items()}


def test_direct_and_inherited_kinds(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        class_file("a.Base", SOURCE, access=PUBLIC | ABSTRACT),
        class_file("a.Middle", "a.Base", access=PUBLIC | ABSTRACT),
        class_file("a.Deep", "a.Middle"),
        class_file("a.Both", interfaces=[CONVERTER, HEADER_CONVERTER]),
        class_file("a.Sink", SINK),
        class_file("a.User", "a.Unknown"),
    )

    assert found == {"a.Deep": {"source"}, "a.Both": {"converter", "header_converter"}, "a.Sink": {"sink"}}


def test_classes_that_connect_cannot_create_are_left_out(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        class_file("a.Private", SOURCE, access=0),
        class_file("a.Abstract", SOURCE, access=PUBLIC | ABSTRACT),
        class_file("a.Options", SOURCE, constructor="(I)V"),
    )

    assert found == {}


@pytest.mark.parametrize(
    ("parent", "kinds"),
    [
        ("org.apache.kafka.connect.json.JsonConverter", {"converter", "header_converter"}),
        ("org.apache.kafka.connect.storage.SimpleHeaderConverter", {"header_converter"}),
        ("org.apache.kafka.connect.transforms.InsertField$Value", {"transformation"}),
        ("org.apache.kafka.connect.mirror.MirrorSourceConnector", {"source"}),
    ],
)
def test_subclasses_of_kafkas_own_plugins(tmp_path: Path, parent: str, kinds: set[str]) -> None:
    assert scan(tmp_path, class_file("a.Mine", parent)) == {"a.Mine": kinds}


def test_kafkas_classes_in_a_plugin_count_only_if_connect_isolates_them(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        class_file("org.apache.kafka.connect.tools.MockSourceConnector", SOURCE),
        class_file("org.apache.kafka.connect.file.FileStreamSourceConnector", SOURCE),
        class_file("org.apache.kafka.connect.transforms.Filter", interfaces=[TRANSFORMATION]),
    )

    assert set(found) == {"org.apache.kafka.connect.file.FileStreamSourceConnector", "org.apache.kafka.connect.transforms.Filter"}


def test_a_broken_cycle_of_supertypes_ends(tmp_path: Path) -> None:
    found = scan(tmp_path, class_file("a.A", "a.B", [CONVERTER]), class_file("a.B", "a.A"))

    assert found["a.A"] == {"converter"}
