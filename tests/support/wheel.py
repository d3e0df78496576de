"""Builds the wheel from the files that docker/Dockerfile.dockerignore allows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build_context(target: Path) -> Path:
    """Copy the images' build context to ``target``, and return ``target``."""
    lines = (ROOT / "docker" / "Dockerfile.dockerignore").read_text().splitlines()
    for path in (line[1:] for line in lines if line.startswith("!")):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target / path, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, target / path)
    return target


def build_wheel(folder: Path, *, java: bool = True) -> Path:
    """Build the wheel in ``folder`` and return its path. Without ``java`` it has no compiled Java classes, which take seconds."""
    source = build_context(folder / "src")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "dist"), str(source)]
    given = dict(os.environ)
    if not java:  # hide Kafka Connect's jars; pip's cache stays
        caches = Path(given.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        given = {"PIP_CACHE_DIR": str(caches / "pip"), **given, "XDG_CACHE_HOME": str(folder / "caches"), "KAFKA_HOME": ""}
    subprocess.run(command, env=given, check=True)
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel
