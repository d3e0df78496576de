"""Calls in an isolated process: what they reach, and how their results and errors arrive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import (
    BadRequestError,
    ConfigError,
    ConflictError,
    ConnectError,
    DataError,
    KafkaClientError,
    NotFoundError,
)
from sluiceway.kafka.group_offsets import GroupBusyError
from sluiceway.preview import isolated as calls
from sluiceway.preview import landlock, process
from sluiceway.preview.isolated import CallAnswer, isolated
from sluiceway.preview.request import Call, Limits
from support import isolated_functions

SECRET = "hunter2-of-the-server"
MINE = "hunter2-of-the-connector"

needs_landlock = pytest.mark.skipif(not landlock.available(), reason="this kernel has no Landlock")


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the process may read, with a password."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    folder = tmp_path / "allowed"
    folder.mkdir()
    (folder / "db.properties").write_text(f"password={MINE}\n")
    return folder


@pytest.fixture
def worker(allowed: Path) -> WorkerConfig:
    return WorkerConfig.of(
        {
            "config.providers": "file,env",
            "config.providers.file.class": "FileConfigProvider",
            "config.providers.file.param.allowed.paths": str(allowed),
            "config.providers.env.class": "EnvVarConfigProvider",
            "listeners.https.ssl.key.password": SECRET,
        }
    )


@pytest.fixture
def config(allowed: Path) -> dict[str, str]:
    return {"name": "c", "password": f"${{file:{allowed}/db.properties:password}}"}


@needs_landlock
def test_a_call_reaches_what_a_driver_reaches_and_nothing_of_the_server(
    worker: WorkerConfig, config: dict[str, str], allowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW_CONN_DB", "POSTGRES_PASSWORD"):
        monkeypatch.setenv(name, SECRET)
    (tmp_path / "airflow.cfg").write_text(SECRET)
    files = [str(tmp_path / "airflow.cfg"), str(allowed / "db.properties")]
    found = isolated(isolated_functions.reach, {**config, "other": "${env:POSTGRES_PASSWORD}"}, worker, files)
    assert found["files"] == files[1:]
    assert found["resolved"] == {**config, "password": MINE, "other": "${env:POSTGRES_PASSWORD}"}
    assert SECRET not in str(found)


@needs_landlock
@pytest.mark.parametrize(("how", "text"), [("crash", "ended with exit code 3"), ("hang", "did not answer within 0.5 s")])
def test_a_call_that_does_not_return_is_an_error(
    worker: WorkerConfig, config: dict[str, str], how: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_SECONDS", 0.5)
    with pytest.raises(ConnectError, match=text):
        isolated(isolated_functions.end, config, worker, how)


def test_without_landlock_a_call_is_refused(
    worker: WorkerConfig, config: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "_version", lambda: 0)
    with pytest.raises(ConnectError, match=r"need Linux 5\.13 .* REST API outside of Airflow"):
        isolated(isolated_functions.reach, config, worker, [])


def test_an_error_says_which_files_may_not_be_read(worker: WorkerConfig, config: dict[str, str], allowed: Path) -> None:
    files = {"file": "/etc/shop.txt", "other": f"{allowed}/db.properties", "url": "jdbc:x"}
    error = _answered(isolated_functions.refuse, {**config, **files}, worker).error
    assert str(error) == (
        f"Cannot read it. file is not read: Airflow's REST API reads files in the worker's allowed.paths only ({allowed})."
    )


def _answered(function: Callable[..., Any], config: dict[str, str], worker: WorkerConfig, *arguments: Any) -> CallAnswer:
    """Return the answer to a call in this process."""
    answer = CallAnswer()
    process.call(Call(function, config, worker, arguments, Limits()), process.Teller(answer.add))
    assert answer.ready
    assert answer.ended
    return answer


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (NotFoundError, NotFoundError),
        (BadRequestError, BadRequestError),
        (ConflictError, ConflictError),
        (GroupBusyError, ConflictError),
        (ConfigError, ConfigError),
        (ConnectError, ConnectError),
        (DataError, ConnectError),
        (KafkaClientError, KafkaClientError),
        (ValueError, ConnectError),
    ],
)
def test_errors_keep_their_kind_and_text_without_the_secrets_of_the_config(
    worker: WorkerConfig,
    config: dict[str, str],
    kind: type[Exception],
    expected: type[Exception],
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = ("_TRANSPORT",) if kind is KafkaClientError else ()
    error = _answered(isolated_functions.reject, config, worker, kind, "no access with", *code).error
    assert type(error) is expected
    if issubclass(kind, ConnectError):
        assert str(error) == f"no access with {config['password']}"
    else:
        assert "no access" not in str(error)
        assert "no access" in caplog.text, "only the log has the text of an unexpected error"
    assert MINE not in f"{error!r} {caplog.text}"
    assert getattr(error, "code", "") == "".join(code)
