"""``plugins install``, ``list --installed``, ``remove`` and ``upgrade``: what they print, and what they leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.cli.first_config import first_config
from sluiceway.cli.main import main
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.errors import MissingToolError
from sluiceway.java_plugins.index import PluginIndex
from sluiceway.stack import maven, plugin_install
from support.java_classes import TRANSFORMATION, class_file, source_jar, write_jar
from unit.cli.pretend_client import PretendClient

ORDERS = "org.example.OrdersSourceConnector"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(plugin_install, "runtime_jars", list)
    return tmp_path / "home"


def test_install_prints_the_classes_and_the_next_step(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jar = source_jar(tmp_path / "orders.jar", version="1.2")
    assert main(["plugins", "install", "--no-java", str(jar)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Installed orders in {home}/plugins/orders"
    assert [line.split() for line in lines[2:4]] == [["CLASS", "TYPE", "VERSION"], [ORDERS, "source", "1.2"]]
    assert lines[5:] == [
        "Next, start a stack, which uses this folder:",
        "  sluiceway up",
        "Save a config, complete it, and create the connector:",
        "  sluiceway apply -f connector.json",
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [("{home}/plugins", []), ("/opt/p", ["  plugin.path=/opt/p,{home}/plugins"]), ("", ["  plugin.path={home}/plugins"])],
)
def test_a_worker_file_that_does_not_name_the_folder_must(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str], path: str, expected: list[str]
) -> None:
    home.mkdir()
    (home / "worker.properties").write_text(f"plugin.path={path.format(home=home)}\n")
    assert main(["plugins", "install", "--no-java", str(source_jar(tmp_path / "orders.jar"))]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "plugin.path=" in line] == [each.format(home=home) for each in expected]
    assert "  sluiceway up" not in lines


def test_a_class_that_python_has_too_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    assert main(["plugins", "install", "--no-java", str(source_jar(tmp_path / "file.jar", name))]) == 0
    assert f"Sluiceway has {name} in Python, and uses that unless" in capsys.readouterr().out


def test_problems_of_a_plugin_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source_jar(tmp_path / "mine" / "orders.jar")
    (tmp_path / "mine" / "broken.jar").write_text("no jar")
    assert main(["plugins", "install", "--no-java", str(tmp_path / "mine")]) == 0
    assert "mine/broken.jar cannot be read" in capsys.readouterr().out


def test_a_plugin_without_connectors_needs_no_connector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jar = write_jar(tmp_path / "turn.jar", {"a.Turn": class_file("a.Turn", interfaces=[TRANSFORMATION])})
    assert main(["plugins", "install", "--no-java", str(jar)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Configs may name these classes now."


def test_installed_plugins_are_listed_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    jar = source_jar(tmp_path / "orders.jar")
    assert main(["plugins", "install", "--no-java", "--to", str(folder), str(jar)]) == 0
    capsys.readouterr()

    assert main(["plugins", "list", "--from", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["orders", str(jar), f"{folder}/orders"]
    (folder / "orders").rename(tmp_path / "moved")
    assert main(["plugins", "list", "--from", str(folder), "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {"name": "orders", "source": str(jar), "location": f"{folder}/orders", "missing": True}
    ]
    assert main(["plugins", "remove", "orders", "--from", str(folder)]) == 0
    assert capsys.readouterr().out == "Removed orders\n"
    assert main(["plugins", "remove", "orders", "--from", str(folder)]) == 4
    assert "no installed plugin orders" in capsys.readouterr().err


def test_a_list_is_of_the_server_or_of_this_machine(
    tmp_path: Path, api: PretendClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugins", "list", "--all"]) == 0
    assert "x.Y" in capsys.readouterr().out
    assert main(["plugins", "list", "--installed"]) == 0
    assert capsys.readouterr().out.split() == ["NAME", "SOURCE", "LOCATION"]
    for wrong in (["--installed", "--all"], ["--installed", "--from", str(tmp_path)]):
        with pytest.raises(SystemExit):
            main(["plugins", "list", *wrong])


def test_a_lock_file_repeats_the_installation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jar = source_jar(tmp_path / "orders.jar")
    assert main(["plugins", "install", "--no-java", "--to", str(tmp_path / "here"), str(jar)]) == 0
    lock = str(tmp_path / "here" / "plugins.lock")
    assert main(["plugins", "install", "--no-java", "--to", str(tmp_path / "there"), "--locked", lock]) == 0
    assert (tmp_path / "there" / "orders" / "orders.jar").read_bytes() == jar.read_bytes()
    capsys.readouterr()
    for wrong in ([], ["--locked", lock, str(jar)]):
        assert main(["plugins", "install", *wrong]) == 1
        assert "Name the plugins to install, or a lock file" in capsys.readouterr().err


def test_an_upgrade_needs_a_plugin_of_a_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plugins", "install", "--no-java", str(source_jar(tmp_path / "orders.jar"))])
    assert main(["plugins", "upgrade", "orders"]) == 1
    assert "orders came from" in capsys.readouterr().err


def test_the_runtime_is_fetched_if_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> list[Path]:
        raise MissingToolError("no jars")

    monkeypatch.setattr(plugin_install, "runtime_jars", missing)
    fetched: list[list[str]] = []
    monkeypatch.setattr(maven, "resolve", lambda coordinates, **_: fetched.append(coordinates) or [])
    monkeypatch.setattr(plugin_install, "install_runtime", lambda _jars, home: home)
    assert main(["plugins", "install", "--no-java", str(source_jar(tmp_path / "orders.jar"))]) == 0
    assert "org.apache.kafka:connect-runtime:4.3.0" in fetched[0]


def test_a_running_worker_notices_what_is_installed_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    index = PluginIndex([folder])
    assert (index.plugins(), index.find(ORDERS), index.find("OrdersSource")) == ([], None, None)

    main(["plugins", "install", "--no-java", "--to", str(folder), str(source_jar(tmp_path / "orders.jar"))])
    assert [each.class_name for each in index.plugins()] == [ORDERS]
    assert index.find(ORDERS) == index.find("OrdersSource") is not None
    main(["plugins", "remove", "--from", str(folder), "orders"])
    assert (index.plugins(), index.find(ORDERS), index.find("OrdersSource")) == ([], None, None)


def test_a_first_config_has_what_its_user_must_know() -> None:
    definition = ConfigDef(
        [
            ConfigKey(name="url", type=Type.STRING, doc="Where\nthe server is. It must\nanswer."),
            ConfigKey(name="password", type=Type.PASSWORD, default=None, importance=Importance.HIGH, doc="The password"),
            ConfigKey(name="batch", type=Type.INT, default=10, importance=Importance.HIGH),
            ConfigKey(name="label", type=Type.STRING, default="", importance=Importance.LOW),
            ConfigKey(name="hidden", type=Type.STRING, internal=True),
            ConfigKey(name="tasks.max", type=Type.INT),
            ConfigKey(name="plain", type=Type.LIST),
            ConfigKey(name="topics.regex", type=Type.STRING, default="", importance=Importance.HIGH),
        ]
    )
    assert first_config("org.example.HTTPOrdersSinkConnector", "sink", definition) == {
        "name": "httporders-sink",
        "config": {
            "connector.class": "org.example.HTTPOrdersSinkConnector",
            "tasks.max": "1",
            "topics": "<topics, separated by commas>",
            "url": "<string: Where the server is>",
            "password": "<password: The password>",
            "plain": "<list>",
        },
    }
    assert "topics" not in first_config(ORDERS, "source", definition)["config"]
