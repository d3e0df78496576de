"""The preview's process in a server with secrets of its own: it reaches what a driver reaches, and nothing of the server."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.preview import landlock
from sluiceway.preview.isolated import isolated
from sluiceway.preview.request import Limits
from sluiceway.preview.service import preview
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from support.eventually import LIMIT
from support.preview_connectors import SOURCE

pytestmark = pytest.mark.skipif(not landlock.available(), reason="this kernel has no Landlock")

SECRET = "hunter2-of-the-server"
FILE = {"name": "lines", "connector.class": "FileStreamSource", "topic": "t", "tasks.max": "1"}


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    (tmp_path / "allowed").mkdir()
    return tmp_path / "allowed"


@pytest.fixture
def herder(allowed: Path, monkeypatch: pytest.MonkeyPatch) -> Herder:
    """The herder of an API server with secrets in its environment."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    for name in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW_CONN_DB", "AIRFLOW_VAR_CODE", "POSTGRES_PASSWORD", "AWS_SECRET"):
        monkeypatch.setenv(name, SECRET)
    providers = {f"config.providers.{name.lower()}.class": f"{name}ConfigProvider" for name in ("File", "Directory", "Airflow")}
    worker = {
        "bootstrap.servers": "localhost:1",
        "value.converter": "StringConverter",
        "config.providers": "file,directory,env,airflow",
        "config.providers.env.class": "EnvVarConfigProvider",
        "config.providers.file.param.allowed.paths": str(allowed),
        "config.providers.directory.param.allowed.paths": str(allowed),
        "listeners.https.ssl.key.password": SECRET,
        **providers,
    }
    return Herder(WorkerConfig.of(worker), MemoryConfigBackingStore(), MemoryStatusBackingStore(), isolated=isolated)


def previewed(herder: Herder, config: Mapping[str, str], records: int = 20) -> dict[str, Any]:
    return preview(herder, config, Limits(records, LIMIT), from_beginning=True)


def texts(answer: Mapping[str, Any]) -> list[str]:
    return [record["before"]["value"]["data"] for record in answer["records"]]


def test_files_that_configs_may_refer_to_are_read(herder: Herder, allowed: Path) -> None:
    (allowed / "lines").write_text("one\ntwo\n")
    answer = previewed(herder, {**FILE, "file": str(allowed / "lines")}, 2)
    assert (texts(answer), answer["warnings"], answer["error"]) == (["one", "two"], [], None)


def test_a_database_in_an_allowed_folder_is_read(herder: Herder, allowed: Path) -> None:
    with closing(sqlite3.connect(allowed / "shop.db")) as database, database:
        database.execute("create table orders (id integer primary key, item text)")
        database.execute("insert into orders values (1, 'seeds')")
    config = {"name": "d", "connector.class": "JdbcSource", "topic.prefix": "p-", "mode": "bulk"}
    answer = previewed(herder, {**config, "connection.url": f"jdbc:sqlite:{allowed}/shop.db"}, 1)
    assert (answer["validation"], answer["error"]) == (None, None)
    assert answer["records"][0]["before"]["value"]["data"] == {"id": 1, "item": "seeds"}


def test_no_other_file_is_read_whatever_leads_to_it(herder: Herder, allowed: Path, tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text(f"{SECRET}\n")
    (allowed / "link").symlink_to(tmp_path / "airflow.cfg")
    for file in (tmp_path / "airflow.cfg", allowed / "link", allowed / ".." / "airflow.cfg"):
        answer = previewed(herder, {**FILE, "file": str(file)}, 1)
        assert answer["records"] == []
        assert "Permission denied" in answer["error"]["message"]
        if file.name != "link":
            assert answer["warnings"] == [
                f"file is not read: Airflow's REST API reads files in the worker's allowed.paths only ({allowed})."
            ]


_OPENS = """
import os, subprocess, sys
from pathlib import Path
from sluiceway.preview.isolation import limit_files
limit_files({}, Path(sys.argv[1]))
parent = f"/proc/{os.getppid()}"
for name in (f"{parent}/environ", f"{parent}/mem", f"{parent}/maps", f"{parent}/fd/0", "/proc/self/root" + parent + "/environ",
             "/etc/shadow", str(Path.home()), "/", "/tmp"):
    try:
        os.close(os.open(name, os.O_RDONLY))
        print("opened", name)
    except PermissionError:
        pass
print(subprocess.run(["cat", f"{parent}/environ"], capture_output=True).returncode, end=" ")
Path(sys.argv[1], "mine").write_text("x")
print(Path("/etc/hosts").exists() and bool(Path("/etc/hosts").read_text()))
"""


def test_no_other_process_is_seen_by_it_and_by_its_children(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _OPENS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "1 True\n"
    assert (tmp_path / "mine").exists()


def test_neither_are_databases_and_nothing_is_written(herder: Herder, tmp_path: Path) -> None:
    (tmp_path / "airflow.db").write_bytes(b"SQLite format 3\0")
    database = {"name": "d", "connector.class": "JdbcSource", "topic.prefix": "p", "mode": "bulk"}
    answer = previewed(herder, {**database, "connection.url": f"jdbc:sqlite:{tmp_path}/airflow.db"})
    assert "airflow.db" in str(answer["validation"])
    assert answer["records"] == []
    answer = previewed(herder, {"name": "odd", "connector.class": SOURCE, "behavior": "write", "trace": str(tmp_path / "trace")})
    assert "Permission denied" in answer["error"]["message"]
    assert not (tmp_path / "trace").exists()


def test_the_process_has_no_variable_of_the_server(herder: Herder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTOR_PASS", "mine")
    shown = texts(previewed(herder, {"name": "odd", "connector.class": SOURCE, "behavior": "environment"}, 100))
    seen = "".join(texts(previewed(herder, {**FILE, "file": "/proc/self/environ"}, 1)))
    names = {each.partition("=")[0] for each in (*shown, *seen.split("\0"))}
    assert {"PATH", "CONNECTOR_PASS"} <= names
    assert SECRET not in f"{shown} {seen}"
    assert not [name for name in names if "AIRFLOW" in name]


def test_references_are_those_of_a_driver_and_hidden_in_messages(herder: Herder, allowed: Path) -> None:
    (allowed / "db.properties").write_text("password=hunter2-of-mine\n")
    config = {"name": "odd", "connector.class": SOURCE, "behavior": "tell"}
    config["secret"] = f"${{file:{allowed}/db.properties:password}}"
    answer = previewed(herder, config)
    assert answer["error"]["message"].endswith(f"the secret is {config['secret']}")
    for text in ("${env:AIRFLOW__API_AUTH__JWT_SECRET}", "${env:POSTGRES_PASSWORD}"):
        assert "cannot be resolved" in str(previewed(herder, {**config, "secret": text})["validation"])
    for text in ("${airflow:db:password}", "${airflow:variable:CODE}"):
        answer = previewed(herder, {**config, "secret": text})
        assert answer["warnings"] == [f"The value of secret cannot be resolved on this machine: {text}"]
        assert answer["error"]["message"].endswith(f"the secret is {text}")


def test_what_needs_a_connection_is_validated_there(herder: Herder) -> None:
    config = {"name": "d", "connector.class": "JdbcSource", "topic.prefix": "p", "mode": "bulk"}
    config |= {"connection.url": "jdbc:postgresql://127.0.0.1:1/shop", "connection.password": "hunter2-of-mine"}
    assert herder.validate(config).errors == []
    answer = previewed(herder, config)
    assert "cannot be reached" in str(answer["validation"])
    assert "hunter2-of-mine" not in str(answer)


def test_a_crash_shows_no_log(herder: Herder) -> None:
    answer = previewed(herder, {"name": "odd", "connector.class": SOURCE, "behavior": "print and crash"})
    assert answer["error"]["trace"] == ""
    assert "by signal 11" in answer["error"]["message"]


def test_without_landlock_it_is_refused(herder: Herder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_version", lambda: 0)
    with pytest.raises(ConnectError, match="need Linux 5"):
        previewed(herder, FILE | {"file": "/x"})
