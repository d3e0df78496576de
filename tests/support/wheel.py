"""The wheel, built from no more than what docker/Dockerfile.dockerignore lets through."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build_context(target: Path) -> Path:
    """Copy what an image is built from into ``target``, and return that."""
    lines = (ROOT / "docker" / "Dockerfile.dockerignore").read_text().splitlines()
    for path in (line[1:] for line in lines if line.startswith("!")):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target / path, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, target / path)
    return target


def build_wheel(folder: Path) -> Path:
    """Build the wheel in ``folder`` and return its path."""
    source = build_context(folder / "src")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder / "dist"), str(source)]
    subprocess.run(command, check=True)
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel
