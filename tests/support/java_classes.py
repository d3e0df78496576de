"""Writes jars with class files that have a header but no code, so that tests need no Java compiler."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from sluiceway import discovery
from sluiceway.java_plugins import finder

PUBLIC, INTERFACE, ABSTRACT = 0x0001, 0x0200, 0x0400
SOURCE = "org.apache.kafka.connect.source.SourceConnector"
SINK = "org.apache.kafka.connect.sink.SinkConnector"
CONVERTER = "org.apache.kafka.connect.storage.Converter"
HEADER_CONVERTER = "org.apache.kafka.connect.storage.HeaderConverter"
TRANSFORMATION = "org.apache.kafka.connect.transforms.Transformation"
PREDICATE = "org.apache.kafka.connect.transforms.predicates.Predicate"


@pytest.fixture(autouse=True)
def no_other_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Find only the jars of this test, which no JVM is asked about. For each test of a module that imports it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(finder, "check_versions", lambda *_: None)
    monkeypatch.setattr(finder, "_folders", [])
    yield
    discovery.use_finder(None)


def class_file(
    name: str,
    parent: str = "java.lang.Object",
    interfaces: Sequence[str] = (),
    *,
    access: int = PUBLIC,
    constructor: str | None = "()V",
    java: int = 17,
) -> bytes:
    """Return a class file with a field, and a public constructor unless its descriptor is None."""
    pool: list[bytes] = [b"\x05" + bytes(8), b""]  # a long takes two indexes

    def text(value: str) -> int:
        pool.append(b"\x01" + struct.pack(">H", len(value)) + value.encode())
        return len(pool)

    def class_of(value: str) -> int:
        index = text(value.replace(".", "/"))
        pool.append(b"\x07" + struct.pack(">H", index))
        return len(pool)

    this, above, others = class_of(name), class_of(parent), [class_of(each) for each in interfaces]
    attribute = text("Deprecated")
    field = struct.pack(">HHHH", 2, text("size"), text("I"), 1) + struct.pack(">HI", attribute, 0)
    methods = [struct.pack(">HHHH", PUBLIC, text("<init>"), text(constructor), 0)] if constructor else []
    body = struct.pack(f">HHHH{len(others)}H", access, this, above, len(others), *others)
    body += struct.pack(">H", 1) + field + struct.pack(">H", len(methods)) + b"".join(methods) + struct.pack(">H", 0)
    return b"\xca\xfe\xba\xbe" + struct.pack(">HHH", 0, 44 + java, len(pool) + 1) + b"".join(pool) + body


def write_jar(
    path: Path, classes: Mapping[str, bytes], services: Mapping[str, Sequence[str]] | None = None, version: str | None = None
) -> Path:
    """Write a jar with these class files, ServiceLoader manifests, and a version in its manifest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        if version is not None:
            jar.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nImplementation-Version: {version}\r\n")
        for name, content in classes.items():
            jar.writestr(f"{name.replace('.', '/')}.class", content)
        for service, names in (services or {}).items():
            jar.writestr(f"META-INF/services/{service}", "# plugins\n" + "".join(f"{name}  # one\n" for name in names))
    return path


def source_jar(path: Path, name: str = "org.example.OrdersSourceConnector", version: str | None = None) -> Path:
    """Write a jar with one source connector, which a manifest lists."""
    return write_jar(path, {name: class_file(name, SOURCE)}, {SOURCE: [name]}, version)
