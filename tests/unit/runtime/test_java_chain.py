"""The class that a transform's name means, and whether it can run in Java beside a Java connector. Starts no JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.java_plugins.finder import use_java_plugins
from sluiceway.runtime.java_chain import java_transform
from sluiceway.transforms.debezium.extract_new_record_state import ExtractNewRecordState
from support.java_classes import TRANSFORMATION, class_file, write_jar
from support.java_classes import no_other_plugins as no_other_plugins  # a fixture

UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
CONFIG = {"transforms.u.type": UNWRAP, "transforms.u.add.fields": "op"}


@pytest.mark.parametrize(
    ("choice", "in_python", "in_java"), [("prefer", False, True), ("fallback", True, True), ("off", True, False)]
)
def test_debeziums_transforms_are_pythons_alone_and_javas_in_a_java_chain(
    tmp_path: Path, choice: str, in_python: bool, in_java: bool
) -> None:
    jar = class_file(UNWRAP, interfaces=[TRANSFORMATION])
    write_jar(tmp_path / "path/debezium.jar", {UNWRAP: jar}, {TRANSFORMATION: [UNWRAP]}, "3.7.0.Final")
    use_java_plugins([tmp_path / "path"], {"plugin.java": choice})

    assert (discovery.transform_class(UNWRAP) is ExtractNewRecordState) is in_python
    found = java_transform("u", CONFIG)
    assert (found is not None) is in_java
    if found is not None:
        assert found["plugin"]["class"] == UNWRAP  # type: ignore[index]
        assert found["config"] == {"type": UNWRAP, "add.fields": "op"}


def test_without_a_jar_debeziums_transforms_need_python() -> None:
    assert java_transform("u", CONFIG) is None
    assert java_transform("k", {"transforms.k.type": "org.apache.kafka.connect.transforms.Filter"}) is not None
