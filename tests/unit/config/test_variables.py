"""References to config providers (``${provider:path:key}``) and the paths that providers may read."""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection
from pathlib import Path

import pytest

from sluiceway.config.environment import HANDED_OVER, for_configs, for_connectors
from sluiceway.config.providers import ConfigData, ConfigProvider
from sluiceway.config.variables import Resolver, referring_keys, resolution_for_use, resolver, with_references
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError


class Fixed(ConfigProvider):
    def __init__(self, ttl: int | None = None, **values: str) -> None:
        self.ttl, self.values = ttl, values
        self.asked: list[tuple[str, list[str]]] = []

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        self.asked.append((path, sorted(keys)))
        return ConfigData({key: self.values[key] for key in keys if key in self.values}, self.ttl)


def test_references_are_resolved_anywhere_in_a_value() -> None:
    resolve = Resolver({"f": Fixed(a="1", b="2")}).resolve
    assert resolve({"x": "u${f:p:a}v${f:p:b}w", "y": "${f:a}", "z": "plain"}) == {"x": "u1v2w", "y": "1", "z": "plain"}


@pytest.mark.parametrize("text", ["${g:p:a}", "${f:p:missing}", "${f}", "${f:p:a", "$f:p:a}", "{f:p:a}"])
def test_references_to_unknown_providers_or_keys_are_kept(text: str) -> None:
    assert Resolver({"f": Fixed(a="1")}).resolve({"x": text}) == {"x": text}


PROVIDERS = {
    "config.providers": "env,file,dir",
    "config.providers.env.class": "EnvVarConfigProvider",
    "config.providers.file.class": "FileConfigProvider",
    "config.providers.dir.class": "DirectoryConfigProvider",
}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("${env:CONNECTOR_GONE}", "has no value where the connector runs"),
        ("${env:NOT_ALLOWED}", "has no value where the connector runs"),
        ("${file:<FOLDER>/there.properties:gone}", "has no value where the connector runs"),
        ("${file:<FOLDER>/gone.properties:a}", "Could not read properties from file"),
        ("${dir:<FOLDER>:gone}", "has no value where the connector runs"),
        ("${vault:secret:a}", "unknown config provider: the worker has dir, env, file"),
        ("${env:CONNECTOR_THERE", "does not end with }"),
        ("${file:<FOLDER>/there.properties:a}${env:CONNECTOR_GONE}", "${env:CONNECTOR_GONE} has no value"),
    ],
)
def test_a_reference_without_a_value_reaches_no_connector(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTOR_THERE", "1")
    monkeypatch.setenv("NOT_ALLOWED", "1")
    (tmp_path / "there.properties").write_text("a=1\n")
    worker = WorkerConfig.of(PROVIDERS)
    there = {"x": "${env:CONNECTOR_THERE}", "y": f"${{dir:{tmp_path}:there.properties}}"}
    assert resolution_for_use(worker, there).config == {"x": "1", "y": "a=1\n"}
    with pytest.raises(ConfigError) as caught:
        resolution_for_use(worker, {**there, "file": text.replace("<FOLDER>", str(tmp_path))})
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["$1", "${topic}", "{env:X}", "${not a name:x}", "$env:X", "}${"])
def test_texts_that_are_no_references_reach_the_connector(text: str) -> None:
    assert resolution_for_use(WorkerConfig.of(PROVIDERS), {"x": text}).config == {"x": text}


def test_resolved_values_are_not_resolved_again() -> None:
    assert Resolver({"f": Fixed(a="${f:b}", b="2")}).resolve({"x": "${f:a}"}) == {"x": "${f:b}"}


def test_a_provider_is_called_once_per_path() -> None:
    provider = Fixed(a="1", b="2")
    Resolver({"f": provider}).resolve({"x": "${f:p:a}${f:p:b}", "y": "${f:q:a}", "z": "${f:p:a}"})
    assert sorted(provider.asked) == [("p", ["a", "b"]), ("q", ["a"])]


def test_the_shortest_time_to_live_wins() -> None:
    providers = {"f": Fixed(ttl=5000, a="1"), "g": Fixed(ttl=300, a="1"), "h": Fixed(a="1")}
    assert Resolver(providers).resolve_for({"x": "${f:a}${g:a}${h:a}"}).ttl == 300
    assert Resolver(providers).resolve_for({"x": "${h:a}"}).ttl is None


def test_the_repr_does_not_show_resolved_values() -> None:
    found = Resolver({"f": Fixed(a="hunter2")}).resolve_for({"x": "${f:a}"})
    assert "hunter2" not in repr(found) + repr(ConfigData({"a": "hunter2"}))


def test_task_configs_are_stored_with_the_references_of_the_connectors_config() -> None:
    written = {"pass": "${f:a}", "user": "u"}
    assert with_references(written, [{"pass": "hunter2", "user": "u", "n": "0"}, {"n": "1"}]) == [
        {"pass": "${f:a}", "user": "u", "n": "0"},
        {"n": "1"},
    ]
    assert referring_keys(written) == {"pass"}


def worker_with(name: str, cls: str, **params: str) -> WorkerConfig:
    more = {f"config.providers.{name}.param.{key.replace('__', '.')}": value for key, value in params.items()}
    return WorkerConfig.of({"config.providers": name, f"config.providers.{name}.class": cls, **more})


@pytest.mark.parametrize(
    "cls",
    [
        "FileConfigProvider",
        "File",
        "org.apache.kafka.common.config.provider.FileConfigProvider",
        "sluiceway.config.providers.file.FileConfigProvider",
    ],
)
def test_a_file_is_parsed_as_utf_8_properties(tmp_path: Path, cls: str) -> None:
    (tmp_path / "s.properties").write_text("pass = hünter\\u0032 \nother: x", encoding="utf-8")
    resolve = resolver(worker_with("file", cls)).resolve
    assert resolve({"x": f"${{file:{tmp_path}/s.properties:pass}}"}) == {"x": "hünter2 "}
    assert resolve({"x": "${file:pass}"}) == {"x": "${file:pass}"}


def test_the_error_for_an_unreadable_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^Could not read properties from file {tmp_path}/none: No such file"):
        resolver(worker_with("f", "FileConfigProvider")).resolve({"x": f"${{f:{tmp_path}/none:a}}"})


def test_the_error_for_an_invalid_file_does_not_quote_it(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("hunter2=\\u12")
    with pytest.raises(ConfigError) as caught:
        resolver(worker_with("f", "FileConfigProvider")).resolve({"x": f"${{f:{tmp_path}/s:a}}"})
    assert "u12" not in str(caught.value)


@pytest.mark.parametrize("cls", ["FileConfigProvider", "DirectoryConfigProvider"])
def test_only_allowed_paths_are_read(tmp_path: Path, cls: str) -> None:
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").write_text("a=1")
    resolve = resolver(worker_with("f", cls, allowed__paths=str(tmp_path / "in"))).resolve
    at = {"FileConfigProvider": "/a:a", "DirectoryConfigProvider": ":a"}[cls]
    refused = [f"${{f:{tmp_path}/out{at}}}", f"${{f:{tmp_path}/in/../out{at}}}"]
    assert [resolve({"x": text})["x"] for text in refused] == refused
    assert resolve({"x": f"${{f:{tmp_path}/in{at}}}"})["x"] in ("1", "a=1")


@pytest.mark.parametrize(("paths", "why"), [("relative", "is not absolute"), ("/no/such/folder", "does not exist")])
def test_allowed_paths_must_exist(paths: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^Path {paths} {why}$"):
        resolver(worker_with("f", "FileConfigProvider", allowed__paths=paths))


def test_a_directorys_files_are_its_keys(tmp_path: Path) -> None:
    (tmp_path / "pass").write_text("hunter2\n")
    (tmp_path / "sub").mkdir()
    resolve = resolver(worker_with("d", "DirectoryConfigProvider")).resolve
    values = {"x": f"${{d:{tmp_path}:pass}}", "y": f"${{d:{tmp_path}:sub}}", "z": f"${{d:{tmp_path}/sub:../pass}}"}
    assert resolve(values) == values | {"x": "hunter2\n"}


def test_only_allowed_environment_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PASS", "hunter2")
    monkeypatch.setenv("OTHER", "x")
    resolve = resolver(worker_with("env", "EnvVarConfigProvider", allowlist__pattern=r"\p{Upper}{3}_.*+")).resolve
    assert resolve({"x": "${env:APP_PASS}", "y": "${env:OTHER}"}) == {"x": "hunter2", "y": "${env:OTHER}"}
    with pytest.raises(ConfigError, match=r"^Path is not supported for EnvVarConfigProvider, invalid value 'p'"):
        resolve({"x": "${env:p:APP_PASS}"})
    with pytest.raises(ConfigError, match=r"^Invalid value \( for configuration allowlist.pattern"):
        resolver(worker_with("env", "EnvVarConfigProvider", allowlist__pattern="("))


AIRFLOWS = (
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__CORE__FERNET_KEY",
    "airflow__core__fernet_key",
    "AIRFLOW_CONN_DB",
    "AIRFLOW_VAR_CODE",
    "_AIRFLOW_WWW_USER_PASSWORD",
    HANDED_OVER,
)


@pytest.mark.parametrize("params", [{}, {"allowlist__pattern": ".*"}, {"allowlist__pattern": "(?i)_?(sluiceway_)?airflow.*"}])
@pytest.mark.parametrize("name", AIRFLOWS)
def test_airflows_own_variables_are_never_read(
    name: str, params: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(name, "{}")
    made = resolver(worker_with("env", "EnvVarConfigProvider", **params))
    text = f"${{env:{name}}}"
    assert made.resolve({"x": text}) == {"x": text}
    assert made.errors(text) == [f"The reference {text} cannot be resolved: configs cannot refer to Airflow's own variables"]
    assert f"{name} is not read" in caplog.text
    assert name not in for_configs({name: "x", "PATH": "/bin"})


def test_a_driver_gets_what_its_task_hands_over_and_nothing_else_of_airflow() -> None:
    given = dict.fromkeys((*AIRFLOWS, "PATH", "AIRFLOW_HOME", "AIRFLOW_CTX_DAG_ID", "AIRFLOW"), "x")
    assert set(for_connectors(given)) == {"PATH", "AIRFLOW_HOME", "AIRFLOW_CTX_DAG_ID", "AIRFLOW", HANDED_OVER}


def test_without_a_pattern_connectors_read_variables_that_are_made_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTOR_PASS", "hunter2")
    monkeypatch.setenv("OTHER", "x")
    made = resolver(worker_with("env", "EnvVarConfigProvider"))
    assert made.resolve({"x": "${env:CONNECTOR_PASS}", "y": "${env:OTHER}"}) == {"x": "hunter2", "y": "${env:OTHER}"}
    assert made.errors("${env:CONNECTOR_PASS}") == []
    (error,) = made.errors("${env:OTHER}")
    assert error.endswith("the worker's allowlist.pattern for this provider is CONNECTOR_.*")


def test_the_worker_file_itself_reads_variables_of_any_name_unless_it_has_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA", "kafka:9092")
    given = {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}
    own = {**given, "bootstrap.servers": "${env:KAFKA}"}
    assert WorkerConfig.of(own).bootstrap_servers == "kafka:9092"
    assert WorkerConfig.of({**own, "config.providers.env.param.allowlist.pattern": "X"}).bootstrap_servers == "${env:KAFKA}"


@pytest.mark.parametrize(("kind", "key"), [("File", "password"), ("Directory", "secrets")])
def test_a_path_that_is_not_allowed_is_an_error_of_validation(kind: str, key: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    made = resolver(worker_with("f", f"{kind}ConfigProvider", allowed__paths=str(tmp_path / "in")))
    assert made.errors(f"${{f:{tmp_path}/in/there:{key}}}") == []
    for outside in ("out", "in/../out", "inside"):
        (error,) = made.errors(f"${{f:{tmp_path}/{outside}:{key}}}")
        assert f"is not within the allowed paths: allowed.paths={tmp_path}/in" in error


def test_an_invalid_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'^Missing required configuration "config.providers.f.class" which has no default'):
        resolver(WorkerConfig.of({"config.providers": "f"}))
    with pytest.raises(ConfigError, match=r"^Invalid value a.B for configuration config.providers.f.class: Class a.B could not"):
        resolver(worker_with("f", "a.B"))
    with pytest.raises(ConfigError, match=r"does not implement the ConfigProvider interface$"):
        resolver(worker_with("f", "sluiceway.errors.ConfigError"))


def test_a_provider_of_a_package_added_since_is_found_by_its_alias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError):
        resolver(worker_with("late", "AddedLate"))  # which looks through the packages
    info = tmp_path / "added_late-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: added_late\nVersion: 1\n")
    path = "sluiceway.config.providers.file:FileConfigProvider"
    (info / "entry_points.txt").write_text(f"[sluiceway.config_providers]\nAddedLateConfigProvider = {path}\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "s").write_text("a=1")
    assert resolver(worker_with("late", "AddedLate")).resolve({"x": f"${{late:{tmp_path}/s:a}}"}) == {"x": "1"}


def test_references_in_worker_properties_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("group=g-1")
    worker = WorkerConfig.of(
        {"config.providers": "f", "config.providers.f.class": "FileConfigProvider", "group.id": f"${{f:{tmp_path}/s:group}}"}
    )
    assert worker.group_id == "g-1"


def test_values_from_an_airflow_task_reach_executors_and_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HANDED_OVER, json.dumps({"f:conn:password": "hunter2"}))
    worker = worker_with("f", f"{__name__}.Fixed") if __name__ != "__main__" else None
    assert worker is not None
    monkeypatch.delenv(HANDED_OVER)
    there = pickle.loads(pickle.dumps(worker))  # noqa: S301
    assert "hunter2" not in repr(there)
    monkeypatch.setattr("sluiceway.config.variables._provider", lambda *_: Fixed(login="u"))
    assert resolver(there).resolve({"x": "${f:conn:password}", "y": "${f:conn:login}"}) == {"x": "hunter2", "y": "u"}


def test_the_error_for_invalid_values_from_an_airflow_task_does_not_quote_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HANDED_OVER, '{"hunter2"')
    with pytest.raises(ConfigError) as caught:
        WorkerConfig.of({})
    assert "hunter2" not in str(caught.value)
