"""Commands that print configs hide what the plugins of a config declare as passwords, whatever its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluiceway.cli.main import main
from sluiceway.cli.secrets import DeclaredPasswords
from sluiceway.errors import ConnectError
from unit.cli.pretend_client import PretendClient, write

OLD, NEW = "hunter1", "hunter2"
PLUGINS = {
    "connector.class": "my.Source",
    "key.converter": "my.Converter",
    "value.converter": "my.Converter",
    "header.converter": "my.HeaderConverter",
    "transforms": "seal,other",
    "transforms.seal.type": "my.Seal",
    "predicates": "known",
    "predicates.known.type": "my.Known",
}
PREFIXES = ("", "key.converter.", "value.converter.", "header.converter.", "transforms.seal.", "predicates.known.")
SECRETS = tuple(f"{prefix}phrase" for prefix in PREFIXES)


def config(secret: str) -> dict[str, str]:
    """Return a config with a secret in each place that a plugin declares."""
    return {"name": "a", **PLUGINS, **dict.fromkeys(SECRETS, secret), "transforms.other.phrase": "shown"}


@pytest.fixture
def typed(api: PretendClient) -> PretendClient:
    def plugin_config(name: str) -> Any:
        if not name.startswith("my."):
            raise ConnectError(f"Unknown plugin {name}")
        return [{"name": "phrase", "type": "PASSWORD"}, {"name": "file", "type": "STRING"}]

    api.answer_plugin_config = plugin_config  # type: ignore[method-assign, assignment]
    api.configs = {"a": config(OLD)}
    api.answer_tasks = lambda _name: [{"id": {"connector": "a", "task": 0}, "config": config(OLD)}]  # type: ignore[method-assign]
    known = [{"definition": {"name": key, "type": "STRING"}, "value": {"name": key, "errors": []}} for key in ("name", *PLUGINS)]
    api.answer_validate = lambda _class, _config: {"configs": known}  # type: ignore[method-assign, assignment] # as of an old Kafka Connect
    edits = [{"key": "file", "before": None, "after": "/f"}]
    changed = {"timestamp": 0, "user": None, "authenticated": False, "address": None, "client": None, "note": None}
    change = changed | {"version": 1, "change": "config", "config": config("[hidden]") | {"phrase": NEW}, "edits": edits}
    api.answer_history = lambda _name: [change]  # type: ignore[method-assign]
    return api


@pytest.mark.parametrize(
    "command",
    [
        "diff -f FILE",
        "apply -f FILE",
        "apply -f FILE --dry-run",
        "patch a --set phrase=hunter2",
        "patch a --dry-run --set transforms.seal.phrase=hunter2 --remove key.converter.phrase",
        "rollback a --to 1",
        "rollback a --to 1 --dry-run",
        "get config a",
        "get config a -o json",
        "get tasks a",
        "get tasks a -o json",
        "describe connector a -o json",
        "validate -f FILE",
        "validate -f FILE -o json",
    ],
)
def test_no_command_prints_them(typed: PretendClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    file = write(tmp_path / "f.json", config(NEW))
    main(command.replace("FILE", file).split())
    printed = "".join(capsys.readouterr())
    assert "[hidden]" in printed
    assert "hunter" not in printed


def test_a_server_is_asked_once_for_each_class(typed: PretendClient) -> None:
    declared = DeclaredPasswords(typed)  # type: ignore[arg-type]
    for _ in range(2):
        assert declared.keys(config(OLD), None, {"connector.class": "other", "phrase": "x"}) == set(SECRETS)
    asked = [name for kind, name in typed.asked if kind == "plugin_config"]
    assert sorted(asked) == ["my.Converter", "my.HeaderConverter", "my.Known", "my.Seal", "my.Source", "other"]
