"""The local stack's worker properties file."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from sluiceway.config.properties import read_properties
from sluiceway.config.variables import resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.stack.worker_file import Readable, needs_broker, rest_url, worker_properties, write_worker_file

HOME = Path("/home/me/.sluiceway")


def properties_of(user: Mapping[str, str] | None, *, bootstrap: str | None, listeners: str, home: Path = HOME) -> dict[str, str]:
    readable = Readable.of(home)
    return worker_properties(user, bootstrap=bootstrap, listeners=listeners, readable=readable, plugins=home / "plugins")


def test_connectors_may_refer_to_files_in_the_stacks_folders_only(tmp_path: Path) -> None:
    home = tmp_path / "home"
    Readable.of(home).make()
    assert stat.S_IMODE((home / "secrets").stat().st_mode) == 0o700
    (home / "secrets" / "db.properties").write_text("password=hunter2\n")
    (home / "jwt-secret").write_text("signing")
    values = resolver(WorkerConfig.of(properties_of(None, bootstrap="h:1", listeners="http://h:1", home=home)))
    there = {"x": f"${{file:{home}/secrets/db.properties:password}}", "y": f"${{directory:{home}/secrets:db.properties}}"}
    assert values.resolve(there) == {"x": "hunter2", "y": "password=hunter2\n"}
    outside = f"${{directory:{home}:jwt-secret}}", f"${{file:{home}/secrets/../jwt-secret:signing}}", "${directory:/etc:passwd}"
    for text in outside:
        assert values.resolve({"x": text}) == {"x": text}
        assert "is not within the allowed paths" in values.errors(text)[0]


def test_without_a_file_of_the_user_the_worker_has_kafkas_sample_settings_and_the_embedded_broker() -> None:
    worker = WorkerConfig.of(properties_of(None, bootstrap="h:1", listeners="http://127.0.0.1:8083"))
    assert worker.bootstrap_servers == "h:1"
    assert worker.number("offset.flush.interval.ms") == 10_000
    assert worker.number("config.storage.replication.factor") == 1
    assert worker.text("value.converter") == "org.apache.kafka.connect.json.JsonConverter"


def test_settings_of_the_users_file_win_except_for_addresses() -> None:
    user = {"group.id": "mine", "bootstrap.servers": "b:9092", "config.storage.replication.factor": "3"}
    found = properties_of(user, bootstrap=None, listeners="http://l:1")
    own = {"sluiceway.validate.references": "true", "plugin.path": f"{HOME}/plugins"}
    assert found == {**user, **own, "listeners": "http://l:1"}
    user |= {"sluiceway.validate.references": "false", "plugin.path": "/opt/plugins"}
    assert properties_of(user, bootstrap=None, listeners="http://l:1") == {**user, "listeners": "http://l:1"}
    embedded = properties_of({"status.storage.replication.factor": "-1"}, bootstrap="h:1", listeners="http://l:1")
    assert embedded["status.storage.replication.factor"] == "-1"
    assert embedded["offset.storage.replication.factor"] == "1"


@pytest.mark.parametrize(
    ("own", "url"),
    [
        ("", "http://localhost:9"),
        ("http://0.0.0.0:8083,https://h:8443", "http://localhost:9"),
        ("HTTPS://h:8443,http://h:8083", "https://localhost:9"),
    ],
)
def test_the_rest_url_has_the_scheme_of_the_users_first_listener(own: str, url: str) -> None:
    properties = properties_of({"listeners": own}, bootstrap="h:1", listeners="http://127.0.0.1:9")
    assert rest_url(properties) == url


def test_a_broker_is_needed_only_if_the_user_names_none() -> None:
    assert needs_broker(None)
    assert needs_broker({"group.id": "mine"})
    assert not needs_broker({"bootstrap.servers": "b:9092"})


def test_the_worker_file_is_readable_by_its_owner_only_and_reads_back(tmp_path: Path) -> None:
    properties = {"sasl.jaas.config": 'a b="c\\d";', "group.id": "größe"}
    write_worker_file(tmp_path / "w.properties", properties)
    assert read_properties(tmp_path / "w.properties") == properties
    assert stat.S_IMODE((tmp_path / "w.properties").stat().st_mode) == 0o600
