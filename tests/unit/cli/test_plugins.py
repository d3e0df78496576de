"""The plugins commands about Java plugins on this machine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from sluiceway.cli.main import main
from sluiceway.java_plugins import runtime_jars
from sluiceway.stack import plugin_install
from support.java_classes import CONVERTER, SOURCE, class_file, source_jar, write_jar

ORDERS = "org.example.OrdersSourceConnector"
FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_scan_prints_plugins_and_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source_jar(tmp_path / "path/orders/orders.jar", version="1.2")
    (tmp_path / "path/orders/broken.jar").write_text("no jar")
    arguments = ["plugins", "scan", "--no-java", "--plugin-path", str(tmp_path / "path")]

    assert main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["CLASS", "TYPE", "VERSION", "USED", "MANIFEST", "LOCATION"]
    assert lines[1].split() == [ORDERS, "source", "1.2", "java", "yes", f"{tmp_path}/path/orders"]
    assert lines[3] == f"{tmp_path}/path/orders:"
    assert lines[4].startswith(f"  {tmp_path}/path/orders/broken.jar cannot be read (")

    assert main([*arguments, "-o", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["plugins"][0]["aliases"] == ["OrdersSource", "OrdersSourceConnector"]
    assert list(document["problems"]) == [f"{tmp_path}/path/orders"]


def test_scan_reads_plugin_path_of_a_worker_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source_jar(tmp_path / "path/orders.jar")
    write_jar(tmp_path / "path/plain.jar", {"a.Plain": class_file("a.Plain", SOURCE)})
    worker = tmp_path / "worker.properties"
    worker.write_text(f"plugin.path={tmp_path}/path\nplugin.discovery=service_load\n")

    assert main(["plugins", "scan", "--no-java", "--worker", str(worker)]) == 0
    out = capsys.readouterr().out
    assert ORDERS in out
    assert "a.Plain" not in out


@pytest.mark.parametrize(
    ("choice", "used"),
    [("fallback", ["python", "python", "java"]), ("prefer", ["java", "python", "java"]), ("off", ["python", "python", "-"])],
)
def test_scan_and_describe_say_what_is_used(
    tmp_path: Path, choice: str, used: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The second class is an old copy of one of Kafka's own, which Kafka Connect does not use either."""
    names = [FILE, JSON, ORDERS]
    write_jar(tmp_path / "path/json.jar", {JSON: class_file(JSON, interfaces=[CONVERTER])}, {CONVERTER: [JSON]})
    for name in (FILE, ORDERS):
        source_jar(tmp_path / f"path/{name}/p.jar", name, "1.0")
    worker = tmp_path / "worker.properties"
    worker.write_text(f"plugin.path={tmp_path}/path\nplugin.java={choice}\n")

    assert main(["plugins", "scan", "--no-java", "--worker", str(worker)]) == 0
    rows = {line.split()[0]: line.split()[3] for line in capsys.readouterr().out.splitlines()}
    assert [rows[name] for name in names] == used
    for name, expected in zip(names, used, strict=True):
        assert main(["plugins", "describe", "--no-java", "--worker", str(worker), name, "-o", "json"]) == 0
        assert (json.loads(capsys.readouterr().out)[0]["used"] or "-") == expected


def test_describe_prints_each_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version in ("1.9", "1.10"):
        source_jar(tmp_path / f"path/{version}/orders.jar", version=version)
    arguments = ["plugins", "describe", "--no-java", "--plugin-path", str(tmp_path / "path"), "-o", "json"]

    assert main([*arguments, "OrdersSource"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["version"], each["java"], each["jars"]) for each in found] == [
        ("1.9", 17, ["orders.jar"]),
        ("1.10", 17, ["orders.jar"]),
    ]
    assert main([*arguments, "Other"]) != 0
    assert "plugin.path has no Java plugin Other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"), [([], "There is no plugin.path"), (["--plugin-path", "/none"], "/none, which does")]
)
def test_a_missing_plugin_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path))

    assert main(["plugins", "scan", *options]) != 0
    assert message in capsys.readouterr().err


def test_fetch_runtime_installs_and_lists_the_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pinned = tuple(replace(jar, sha256=hashlib.sha256(b"jar").hexdigest()) for jar in runtime_jars.RUNTIME_JARS)
    for module in (runtime_jars, plugin_install):
        monkeypatch.setattr(module, "RUNTIME_JARS", pinned)
    for jar in pinned:
        (tmp_path / jar.file_name).write_bytes(b"jar")
    monkeypatch.setattr("sluiceway.stack.maven.resolve", lambda *_, **__: [tmp_path / jar.file_name for jar in pinned])

    assert main(["plugins", "fetch-runtime", "--to", str(tmp_path / "home")]) == 0

    out = capsys.readouterr().out
    assert "connect-runtime-4.3.0.jar" in out
    assert f"Set KAFKA_HOME={tmp_path}/home" in out
    assert len(list((tmp_path / "home/libs").iterdir())) == len(pinned)
