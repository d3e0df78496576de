"""Named REST APIs, and which one is called with which credentials."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from sluiceway import exit_codes
from sluiceway.cli import common, context_file
from sluiceway.cli.main import main, parser
from sluiceway.stack.addresses import REST, Addresses, record
from sluiceway.stack.process import BackgroundProcess


@pytest.fixture(autouse=True)
def no_context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICEWAY_HOME", str(tmp_path / "home"))
    for variable in (common.SERVER_VARIABLE, common.CONTEXT_VARIABLE, common.TOKEN_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def chosen(*arguments: str) -> tuple[str, str | None]:
    """Return the server that would be called, and the Authorization header."""
    options = parser().parse_args(["get", "connectors", *arguments])
    with common.client(options) as client:
        request = client._http.build_request("GET", client.server)
        sent = next(client._http._auth.auth_flow(request)) if client._http._auth else request
        return client.server, sent.headers.get("authorization")


def test_contexts_are_made_used_shown_and_removed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["contexts", "set", "dev", "--server", "http://d:1"]) == 0
    assert main(["contexts", "set", "prod", "--server", "http://a:1,http://b:1", "--username", "me", "--password-env", "PW"]) == 0
    assert main(["contexts", "current"]) == 0
    assert main(["contexts", "use", "prod"]) == 0
    assert main(["contexts", "list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Context dev created",
        "Context prod created",
        "dev",
        "Context prod is now the current one",
        "CURRENT  NAME  SERVERS                LOGIN",
        "         dev   http://d:1             -",
        "*        prod  http://a:1,http://b:1  me",
    ]
    assert main(["contexts", "list", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["contexts"]["prod"]["servers"] == ["http://a:1", "http://b:1"]
    assert (tmp_path / "sluiceway" / "contexts.json").stat().st_mode & 0o077 == 0
    assert main(["contexts", "remove", "prod"]) == 0
    assert main(["contexts", "current"]) == 1
    assert main(["contexts", "use", "prod"]) == exit_codes.NOT_FOUND
    assert "Known contexts: dev" in capsys.readouterr().err


def test_a_context_may_be_changed_in_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["contexts", "set", "x", "--ca", "/ca.pem"]) == 1
    assert "has no server" in capsys.readouterr().err
    assert main(["contexts", "set", "x", "--server", "http://a", "--ca", "/ca.pem"]) == 0
    assert main(["contexts", "set", "x", "--server", "http://b"]) == 0
    assert context_file.load().get("x") == context_file.Context(servers=("http://b",), ca="/ca.pem")


def test_an_option_wins_over_the_environment_and_that_over_the_context_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen()[0] == "http://localhost:8083"
    main(["contexts", "set", "a", "--server", "http://a"])
    main(["contexts", "set", "b", "--server", "http://b"])
    assert chosen()[0] == "http://a"
    monkeypatch.setenv(common.CONTEXT_VARIABLE, "b")
    assert chosen()[0] == "http://b"
    monkeypatch.setenv(common.SERVER_VARIABLE, "http://e")
    assert chosen()[0] == "http://e"
    assert chosen("--context", "a")[0] == "http://a"
    assert chosen("--server", "http://o/, http://p")[0] == "http://o"


def test_credentials_come_from_files_and_variables_at_each_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("hunter2\n")
    (tmp_path / "tk").write_text("abc\n")
    main(["contexts", "set", "basic", "--server", "http://a", "--username", "me", "--password-file", str(tmp_path / "pw")])
    main(["contexts", "set", "token", "--server", "http://a", "--token-file", str(tmp_path / "tk")])
    main(["contexts", "set", "env", "--server", "http://a", "--token-env", "MY_TOKEN"])
    monkeypatch.setenv("MY_TOKEN", "def")
    assert chosen("--context", "basic")[1] == f"Basic {base64.b64encode(b'me:hunter2').decode()}"
    assert chosen("--context", "token")[1] == "Bearer abc"
    assert chosen("--context", "env")[1] == "Bearer def"
    monkeypatch.setenv(common.TOKEN_VARIABLE, "ghi")
    assert chosen("--context", "basic")[1] == "Bearer ghi"
    assert "hunter2" not in (tmp_path / "sluiceway" / "contexts.json").read_text()


def test_a_credential_that_is_not_there_is_told_by_where_it_should_be(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["contexts", "set", "env", "--server", "http://a", "--token-env", "NOT_SET_AT_ALL"])
    main(["contexts", "set", "file", "--server", "http://a", "--token-file", str(tmp_path / "missing")])
    assert main(["get", "connectors", "--context", "env"]) == 1
    assert main(["get", "connectors", "--context", "file"]) == 1
    printed = capsys.readouterr().err
    assert "variable NOT_SET_AT_ALL, which is not set" in printed
    assert "missing, which cannot be read" in printed


def test_a_password_in_an_address_is_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    for login in ("me:hunter2", "me:hunter/2"):
        assert main(["contexts", "set", "x", "--server", f"http://{login}@host"]) == 1
    assert "hunter2" not in capsys.readouterr().err
    assert context_file.load().by_name == {}


def test_a_password_in_an_address_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "connectors", "--server", "http://me:hunter2@127.0.0.1:1"]) == 5
    printed = capsys.readouterr().err
    assert "Cannot reach the REST API at http://127.0.0.1:1" in printed
    assert "hunter2" not in printed


@pytest.mark.parametrize("content", ["", "[]", '{"contexts": {"a": {}}}', '{"contexts": {"a": {"servers": [], "x": 1}}}'])
def test_a_broken_file_is_told_by_its_path(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sluiceway").mkdir()
    (tmp_path / "sluiceway" / "contexts.json").write_text(content)
    assert main(["get", "connectors"]) == 1
    assert "contexts.json: " in capsys.readouterr().err


def test_without_a_choice_the_running_stack_is_called_wherever_it_listens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    record(home, Addresses("http://localhost:21543", "http://localhost:21544", "localhost:9092", "worker.properties"))
    assert chosen()[0] == common.DEFAULT_SERVER  # another program may have the port now
    rest = BackgroundProcess(REST, ["sleep", "600"], home)
    rest.start()
    try:
        assert chosen()[0] == "http://localhost:21543"
        assert main(["config", "rest"]) == 0
        assert capsys.readouterr().out == "http://localhost:21543\n"
        assert chosen("--server", "http://a:1")[0] == "http://a:1"
        monkeypatch.setenv(common.SERVER_VARIABLE, "http://b:1")
        assert chosen()[0] == "http://b:1"
        monkeypatch.delenv(common.SERVER_VARIABLE)
        assert main(["contexts", "set", "prod", "--server", "http://c:1"]) == 0
        assert chosen()[0] == "http://c:1"
    finally:
        rest.stop()


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"rest": "http://localhost:1", "another": 1}'])
def test_a_stack_that_left_no_addresses_is_not_called(content: str | None, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    if content is not None:
        (tmp_path / "home" / "stack.json").write_text(content)
    assert chosen()[0] == common.DEFAULT_SERVER
