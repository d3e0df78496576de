"""The services of docker/compose.yaml as fixtures."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from support.airflow_home import isolate_airflow
from support.docker_files import DOCKER, environment

isolate_airflow()


def _interpolated(value: Any, variables: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _interpolated(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_interpolated(each, variables) for each in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"(?<!\$)\$\{(\w+)\}", lambda found: variables[found[1]], value).replace("$$", "$")


@pytest.fixture(scope="session")
def compose() -> dict[str, Any]:
    """docker/compose.yaml with the defaults of docker/.env inserted."""
    raw = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    found: dict[str, Any] = _interpolated(raw, environment())
    return found


@pytest.fixture(scope="session")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found
