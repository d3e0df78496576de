"""Configs with references are validated with the resolved values, which the result does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConfigError
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


def test_without_providers_a_reference_is_plain_text() -> None:
    found = validate_config(SOURCE | {"batch.size": "${file:/a:b}"}, WorkerConfig.of({}))
    assert found.errors == ["Invalid value ${file:/a:b} for configuration batch.size: Not a number of type INT"]
