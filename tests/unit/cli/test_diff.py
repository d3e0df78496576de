"""Changes that apply would make, without secrets."""

from __future__ import annotations

import pytest

from sluiceway.cli.diff import changes, config_lines, summary
from sluiceway.cli.secrets import DeclaredPasswords, is_secret, masked, shown
from sluiceway.config.connector_files import ConnectorFile
from sluiceway.errors import ConfigError
from unit.cli.pretend_client import PretendClient


def file(name: str, where: str = "f.json", **config: str) -> ConnectorFile:
    return ConnectorFile(name, {"name": name, **{key.replace("_", "."): value for key, value in config.items()}}, where)


def lines(files: list[ConnectorFile], configs: dict[str, dict[str, str]], *, prune: bool = False) -> list[str]:
    return [line for change in changes(files, configs, prune=prune) for line in change.lines(())]


def test_new_changed_equal_and_pruned_connectors_are_told_apart() -> None:
    there = {"same": {"name": "same", "a": "1"}, "old": {"name": "old", "a": "1", "b": "2", "d": "4"}, "gone": {"name": "gone"}}
    files = [file("new", a="1"), file("same", a="1"), file("old", a="1", b="3", c="3")]
    assert lines(files, there, prune=True) == [
        "+ new",
        "  + a: 1",
        "  + name: new",
        "= same",
        "~ old",
        "  - b: 2",
        "  + b: 3",
        "  + c: 3",
        "  - d: 4",
        "- gone",
    ]
    assert summary(changes(files, there, prune=True)) == "1 to create, 1 to change, 1 to delete, 1 unchanged"
    assert summary(changes(files, there, prune=False)) == "1 to create, 1 to change, 1 unchanged"


def test_secrets_are_not_in_a_diff_though_their_change_is() -> None:
    there = {"a": {"name": "a", "db.password": "hunter1"}}
    assert lines([file("a", db_password="hunter2")], there) == ["~ a", "  - db.password: [hidden]", "  + db.password: [hidden]"]
    assert "hunter" not in repr(changes([file("a", db_password="hunter2")], there, prune=False))


def test_a_connector_in_two_places_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a is in x\.json and in y\.yaml"):
        changes([file("a", "x.json"), file("a", "y.yaml")], {}, prune=False)


def test_a_masked_secret_is_never_applied() -> None:
    with pytest.raises(ConfigError, match=r"f\.json: db\.password is \[hidden\]"):
        changes([file("a", db_password="[hidden]")], {}, prune=False)


def test_pruning_without_any_connector_would_delete_all_and_is_refused() -> None:
    with pytest.raises(ConfigError, match="would delete every connector"):
        changes([], {"a": {}}, prune=True)
    assert changes([], {"a": {}}, prune=False) == []


def test_a_patch_that_changes_nothing_has_no_lines() -> None:
    before = {"a": "1", "b": "2"}
    declared = DeclaredPasswords(PretendClient())  # type: ignore[arg-type]
    assert config_lines(before, {"a": "1", "c": None}, "x", declared) == []
    assert config_lines(before, {"a": "3", "b": None}, "x", declared) == ["~ x", "  - a: 1", "  + a: 3", "  - b: 2"]


@pytest.mark.parametrize(
    "key",
    [
        "connection.password",
        "aws.secret.access.key",
        "sasl.jaas.config",
        "producer.override.sasl.jaas.config",
        "api.key",
        "api_key",
        "ssl.keystore.key",
        "consumer.override.ssl.key.password",
        "auth.token",
        "basic.auth.user.info",
        "PASSWORD",
    ],
)
def test_keys_of_secrets_are_known_by_their_names(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key",
    ["key.converter", "topic", "file", "primary.key.fields", "sasl.oauthbearer.token.endpoint.url", "password.file"],
)
def test_other_keys_are_shown(key: str) -> None:
    assert is_secret(key) is False


def test_references_and_the_harmless_rest_of_a_url_are_shown() -> None:
    assert shown("db.password", "${file:/etc/db:password}") == "${file:/etc/db:password}"
    assert shown("db.password", "${env:A}${env:B}") == "${env:A}${env:B}"
    assert shown("db.password", "x${env:A}") == "[hidden]"
    assert shown("db.password", "") == ""
    assert shown("connection.url", "jdbc:postgresql://me:hunter2@host:5432/db") == "jdbc:postgresql://[hidden]@host:5432/db"
    assert masked({"a": "1", "token": "2"}) == {"a": "1", "token": "[hidden]"}
