"""Makes an environment of a cell of the matrix from the wheel, and runs ``tools/version_checks.py`` in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from matrix_cells import PACKAGES, PINS, Cell
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_TIMEOUT = 3600
_CHECKS = Path(__file__).with_name("version_checks.py")
#: What uv and pip say of an index that does not answer. pip says it before its error.
_NO_ANSWER = re.compile(r"Failed to fetch|connection broken by|Download failed|Read timed out")
UNREACHABLE = "the package index cannot be reached"
_VERSIONS = (
    "import importlib.metadata as m, json, sys; print(json.dumps({d.metadata['Name'].lower().replace('_', '-'): d.version "
    "for d in m.distributions()}))"
)


class Environment:
    """A virtual environment of a cell. uv installs if this machine has it: it resolves requirements as pip does, faster.

    Without ``uv`` pip installs, which keeps the wheels that it has built of PySpark whatever the package index says of caching.
    """

    def __init__(self, cell: Cell, python: Path, folder: Path, *, uv: bool = True) -> None:
        self.cell, self.folder = cell, folder
        self.python = folder / "bin" / "python"
        self._uv = shutil.which("uv") if uv else None
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--no-compile"]
        self._install_with = [self._uv, "pip", "install", "--python", str(self.python)] if self._uv else pip
        subprocess.run([str(python), "-m", "venv", "--without-pip", str(folder)], check=True)

    def install(self, wheel: Path, within: float = _TIMEOUT) -> str:
        """Install the wheel and the cell's pins within seconds. Return why that is impossible, or nothing.

        Beside Airflow's constraints this is done as Airflow's documentation says: Airflow with them, then the rest without.
        """
        cell = self.cell
        asked = [f"{wheel}[{','.join(cell.extras)}]", *cell.pins]
        if cell.floors:
            pins = {**constraints(cell), **floors(wheel, cell)}
            return self._install(asked, pins, within)
        if cell.beside:
            airflow = [pin for pin in cell.pins if pin.startswith("apache-airflow")]
            return self._install(airflow, constraints(cell), within) or self._install(asked, {}, within)
        return self._install(asked, {}, within)

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that the table shows."""
        printed = subprocess.run([self.python, "-c", _VERSIONS], capture_output=True, text=True, check=True).stdout
        found = json.loads(printed)
        return {package: found[package] for package in PACKAGES if package in found}

    def run(self, checks: Sequence[str], postgresql: str = "", bootstrap: str = "") -> dict[str, str]:
        """Run checks and return the problem of each, an empty string for one that passed."""
        command = [str(self.python), str(_CHECKS), str(self.folder / "checks"), "--checks", ",".join(checks)]
        command += ["--postgresql", postgresql, "--bootstrap", bootstrap]
        given = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "PYTHON", "SPARK"))}
        done = subprocess.run(command, env=given, stdout=subprocess.PIPE, text=True, check=False, timeout=_TIMEOUT)
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
        said = {each["check"]: str(each["problem"]) for each in answers}
        return {name: said.get(name, f"no answer; exit code {done.returncode}") for name in checks}

    def forget(self, package: str) -> None:
        """Delete what uv keeps of a package; the environment keeps its files."""
        if self._uv:
            subprocess.run([self._uv, "cache", "clean", "--quiet", package], check=True)

    def _install(self, what: Sequence[str], pins: Mapping[str, str], within: float) -> str:
        file = self.folder / "constraints.txt"
        file.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())), encoding="utf-8")
        command = [*self._install_with, *what, "--constraint", str(file)]
        try:
            return said(subprocess.run(command, capture_output=True, text=True, check=False, timeout=within))
        except subprocess.TimeoutExpired:
            return f"{UNREACHABLE}: nothing was installed within {within:g} s"


def resolve(wheel: Path, cell: Cell, extras: Sequence[str], folder: Path) -> str:
    """Resolve extras beside Airflow's constraints without installing anything. Return why that is impossible, or nothing."""
    asked, pins = folder / f"{cell.name}.in", folder / f"{cell.name}.txt"
    asked.write_text("\n".join((f"sluiceway[{','.join(extras)}] @ {wheel.as_uri()}", *cell.pins)), encoding="utf-8")
    pins.write_text("".join(f"{name}=={version}\n" for name, version in constraints(cell).items()), encoding="utf-8")
    uv = shutil.which("uv")
    if uv is None:
        return "uv was not found; install it with pip"
    command = [uv, "pip", "compile", "--quiet", "--python-version", cell.python, "--constraint", str(pins), str(asked)]
    return said(subprocess.run(command, capture_output=True, text=True, check=False))


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return why an installer failed on one line, or nothing. Says first if the package index did not answer."""
    if not done.returncode:
        return ""
    lines = (line.strip(" ×╰─▶│") for line in done.stderr.strip().splitlines()[-6:])  # noqa: RUF001 (uv draws with these)
    words = " ".join(lines)
    reason = re.search(r"[Bb]ecause (.*?), we can conclude", words)  # the rest of uv's message follows from this
    found = reason[1] if reason else words
    return f"{UNREACHABLE}: {found}" if _NO_ANSWER.search(done.stderr) else found


def constraints(cell: Cell) -> dict[str, str]:
    """Return the versions that Airflow's own constraints hold beside a cell, by package."""
    if not cell.beside:
        return {}
    lines = (PINS / f"{cell.beside}.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def floors(wheel: Path, cell: Cell) -> dict[str, str]:
    """Return the oldest version of each direct requirement of the cell that says one."""
    with zipfile.ZipFile(wheel) as archive:
        [file] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Metadata.from_email(archive.read(file), validate=False)
    requirements = [(str(canonicalize_name(each.name)), each) for each in metadata.requires_dist or ()]
    extras = {"", *cell.extras}
    while True:  # an extra may need another one of the same package
        active = [(name, each) for name, each in requirements if _applies(each, extras, cell.python)]
        more = {extra for name, each in active if name == "sluiceway" for extra in each.extras} - extras
        if not more:
            return {name: oldest for name, each in active if (oldest := _oldest(each))}
        extras |= more


def _applies(requirement: Requirement, extras: set[str], python: str) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra, "python_version": python}) for extra in extras)


def _oldest(requirement: Requirement) -> str:
    return next((each.version for each in requirement.specifier if each.operator == ">="), "")
