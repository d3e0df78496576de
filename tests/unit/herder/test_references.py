"""Configs with references are validated with the resolved values, which the result does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConfigError, InvalidConfigError
from sluiceway.herder.validation import checked, validate_config

SOURCE = {"name": "s", "connector.class": "FileStreamSource", "topic": "t"}


@pytest.fixture
def worker(tmp_path: Path) -> WorkerConfig:
    (tmp_path / "secrets.properties").write_text("size=250000\ntext=not-a-number\nversion=[hunter2\n")
    return WorkerConfig.of({"config.providers": "file", "config.providers.file.class": "FileConfigProvider"})


def at(tmp_path: Path, key: str) -> str:
    return f"${{file:{tmp_path}/secrets.properties:{key}}}"


def value(config: dict[str, str], worker: WorkerConfig, name: str) -> str | None:
    return next(info.value.value for info in validate_config(config, worker).configs if info.value and info.value.name == name)


def test_a_reference_is_resolved_for_validation_and_shown_unresolved(worker: WorkerConfig, tmp_path: Path) -> None:
    config = SOURCE | {"batch.size": at(tmp_path, "size")}
    checked(config, worker)
    assert value(config, worker, "batch.size") == at(tmp_path, "size")


def test_an_invalid_resolved_value_is_refused_without_being_shown(worker: WorkerConfig, tmp_path: Path) -> None:
    found = validate_config(SOURCE | {"batch.size": at(tmp_path, "text")}, worker)
    assert found.errors == [f"Invalid value {at(tmp_path, 'text')} for configuration batch.size: Not a number of type INT"]
    assert "not-a-number" not in str(found.to_json())


def test_errors_that_abort_the_validation_do_not_show_resolved_values(worker: WorkerConfig, tmp_path: Path) -> None:
    with pytest.raises(BadRequestError) as caught:
        validate_config(SOURCE | {"connector.plugin.version": at(tmp_path, "version")}, worker)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError) as overridden:
        validate_config(SOURCE | {"producer.override.linger.ms": at(tmp_path, "text")}, worker)
    assert "not-a-number" not in str(overridden.value)


def test_references_that_cannot_be_resolved_here_are_not_errors(worker: WorkerConfig) -> None:
    config = SOURCE | {"batch.size": "${file:/not/on/this/machine:size}"}
    checked(config, worker)
    assert value(config, worker, "batch.size") == "${file:/not/on/this/machine:size}"


PROVIDERS = {
    "config.providers": "file,env,directory,airflow",
    "config.providers.file.class": "FileConfigProvider",
    "config.providers.env.class": "EnvVarConfigProvider",
    "config.providers.directory.class": "DirectoryConfigProvider",
    "config.providers.airflow.class": "AirflowConfigProvider",
}
UNKNOWN = "unknown config provider: the worker has airflow, directory, env, file (config.providers)."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${vault:secret/db:password}", UNKNOWN),
        ("${fil:/a:b}", UNKNOWN),
        ("${vault:password}", UNKNOWN),
        ("${file:/a}", "write ${file:/path/to/file.properties:key}"),
        ("${file:/a:}", "write ${file:/path/to/file.properties:key}"),
        ("${directory:/a}", "write ${directory:/path/to/folder:file-name}"),
        ("${directory:/a:b/c}", "write ${directory:/path/to/folder:file-name}"),
        ("${env:HOME:NAME}", "write ${env:NAME}"),
        ("${airflow:db}", "must be ${airflow:<connection id>:<field>} or ${airflow:variable:<name>}."),
        ("${airflow:db:pasword}", "An Airflow connection has no field 'pasword'"),
        ("${airflow:run:date}", "A DAG run has no variable 'date'"),
        ("${file:/a:b", "does not end with }."),
    ],
)
@pytest.mark.parametrize("key", ["file", "a.key.that.nothing.defines", "transforms.t.x"])
def test_a_misspelt_reference_is_an_error_at_its_key(text: str, why: str, key: str) -> None:
    config = SOURCE | {key: f"x {text}"}
    found = validate_config(config, WorkerConfig.of(PROVIDERS))
    [at_key] = [each.value for each in found.configs if each.value and each.value.name == key]
    [error] = found.errors
    assert (at_key.value, at_key.errors) == (f"x {text}", (error,))
    assert text in error
    assert why in error
    with pytest.raises(InvalidConfigError):
        checked(config, WorkerConfig.of(PROVIDERS))


@pytest.mark.parametrize(
    "text", ["${topic}", "${user.home}/a", "${a ? b : c}", "$file:/a:b", "${file}", "{vault:a:b}", "${", "}${"]
)
def test_other_text_with_dollars_and_braces_is_no_reference(text: str) -> None:
    checked(SOURCE | {"file": text}, WorkerConfig.of(PROVIDERS))


@pytest.mark.parametrize(
    "text",
    [
        "${airflow:db:password}",
        "${airflow:db:extra.key}",
        "${airflow:variable:NAME}",
        "${airflow:run:ds}",
        "${env:CONNECTOR_NONE}",
    ],
)
def test_what_another_process_may_resolve_is_not_an_error(text: str) -> None:
    checked(SOURCE | {"file": text}, WorkerConfig.of(PROVIDERS))


def test_without_providers_a_reference_is_an_error() -> None:
    found = validate_config(SOURCE | {"batch.size": "${file:/a:b}"}, WorkerConfig.of({}))
    assert found.errors == ["${file:/a:b} refers to an unknown config provider: the worker has none (config.providers)."]


def test_where_connectors_run_here_a_missing_value_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTOR_A", "x")
    worker = WorkerConfig.of({**PROVIDERS, "sluiceway.validate.references": "true"})
    file, folder = tmp_path / "secrets.properties", tmp_path / "secrets"
    file.write_text("password=hunter2\n")
    folder.mkdir()
    (folder / "password").write_text("hunter2")
    for text in (
        f"${{file:{file}:password}}",
        f"${{directory:{folder}:password}}",
        "${env:CONNECTOR_A}",
        "${airflow:db:password}",
    ):
        checked(SOURCE | {"file": text}, worker)
    absent = {
        f"${{file:{file}:pasword}}": "the file provider does not find 'pasword'.",
        f"${{file:{file}s:password}}": f"Could not read properties from file {file}s: No such file or directory.",
        f"${{directory:{folder}:pasword}}": "the directory provider does not find 'pasword'.",
        "${env:CONNECTOR_NONE}": "the env provider does not find 'CONNECTOR_NONE'.",
    }
    for text, error in absent.items():
        assert validate_config(SOURCE | {"file": text}, worker).errors == [f"{text} has no value on this machine: {error}"]
