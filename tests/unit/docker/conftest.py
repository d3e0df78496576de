"""What docker/ holds, read as Docker would read it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from support.airflow_home import isolate_airflow

isolate_airflow()

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"


class Instruction(NamedTuple):
    """One instruction of a Dockerfile, and the build stage it stands in (empty before the first)."""

    stage: str
    name: str
    arguments: str


def dockerfile() -> list[Instruction]:
    """Parse docker/Dockerfile: comments dropped, continued lines joined."""
    text = "\n".join(line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#"))
    found: list[Instruction] = []
    stage = ""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if not line.strip():
            continue
        name, _, arguments = line.partition(" ")
        if name == "FROM":
            stage = arguments.rpartition(" AS ")[2]
        found.append(Instruction(stage, name, arguments.strip()))
    return found


def environment() -> dict[str, str]:
    """Return the variables that docker/.env sets."""
    lines = [line for line in (DOCKER / ".env").read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


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
    """docker/compose.yaml with the defaults of docker/.env in their places."""
    raw = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    found: dict[str, Any] = _interpolated(raw, environment())
    return found


@pytest.fixture(scope="session")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found
