"""The files of docker/, parsed as Docker parses them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"


class Instruction(NamedTuple):
    """One instruction of a Dockerfile and its build stage (empty before the first)."""

    stage: str
    name: str
    arguments: str


def dockerfile() -> list[Instruction]:
    """Return the instructions of docker/Dockerfile without comments, with continued lines joined."""
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
