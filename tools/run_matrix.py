"""Builds an environment for each cell of the matrix from the wheel, tries it, and prints a table.

    python tools/run_matrix.py [CELL ...] [--checks CHECK,...] [--folder FOLDER] [--record]

``make test-matrix`` runs it. Without cells it runs all; ``--record`` writes the answers into ``tools/matrix_results.json``, from
which ``make docs`` makes a page. Environments are deleted as soon as their cell is done. Returns 1 unless every check passed or
was refused with its sentence.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matrix_cells import CELLS, PACKAGES, RESULTS, Cell, describe, results, verdict
from matrix_pythons import find_python
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from support.postgres import PostgresServer
from support.wheel import build_wheel

_TIMEOUT = 3600
_CHECKS = Path(__file__).with_name("version_checks.py")
_VERSIONS = (
    "import importlib.metadata as m, json, sys; print(json.dumps({d.metadata['Name'].lower().replace('_', '-'): d.version "
    "for d in m.distributions()}))"
)


class Environment:
    """A virtual environment of a cell."""

    def __init__(self, cell: Cell, python: Path, folder: Path) -> None:
        self.cell, self.folder = cell, folder
        self.python = folder / "bin" / "python"
        self._uv = shutil.which("uv")  # the same resolution as pip's, faster
        options = ["--without-pip"] if self._uv else []
        subprocess.run([str(python), "-m", "venv", *options, str(folder)], check=True)

    def install(self, wheel: Path) -> str:
        """Install the wheel and the cell's pins. Return why that is impossible, or nothing."""
        what = [f"{wheel}[{','.join(self.cell.extras)}]", *self.cell.pins]
        if self.cell.floors:
            constraints = self.folder / "floors.txt"
            constraints.write_text("\n".join(floors(wheel, self.cell)), encoding="utf-8")
            what += ["--constraint", str(constraints)]
        pip = [self._uv, "pip", "install", "--python"] if self._uv else [str(self.python), "-m", "pip", "--python"]
        command = [*pip, str(self.python), *(() if self._uv else ("install",)), *what]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = " ".join(line.strip(" ×╰─▶│") for line in done.stderr.strip().splitlines()[-6:])  # noqa: RUF001 (uv draws with these)
        return said if done.returncode else ""

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages that the table shows."""
        printed = subprocess.run([self.python, "-c", _VERSIONS], capture_output=True, text=True, check=True).stdout
        found = json.loads(printed)
        return {package: found[package] for package in PACKAGES if package in found}

    def run(self, checks: Sequence[str], postgresql: str) -> dict[str, str]:
        """Run checks and return the problem of each, an empty string for one that passed."""
        command = [
            str(self.python),
            str(_CHECKS),
            str(self.folder / "checks"),
            "--checks",
            ",".join(checks),
            "--postgresql",
            postgresql,
        ]
        given = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "PYTHON", "SPARK"))}
        done = subprocess.run(command, env=given, stdout=subprocess.PIPE, text=True, check=False, timeout=_TIMEOUT)
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
        said = {each["check"]: str(each["problem"]) for each in answers}
        return {name: said.get(name, f"no answer; exit code {done.returncode}") for name in checks}


def floors(wheel: Path, cell: Cell) -> list[str]:
    """Return a constraint for the oldest version of each direct requirement of the cell that says one."""
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        [file] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Metadata.from_email(archive.read(file), validate=False)
    extras = {"", *cell.extras, "standalone", "spark"}
    found = {}
    for each in metadata.requires_dist or ():
        environments = [{"extra": extra, "python_version": cell.python} for extra in extras]
        if each.marker is None or any(each.marker.evaluate(environment) for environment in environments):
            oldest = _oldest(each)
            if oldest:
                found[each.name] = f"{each.name}=={oldest}"
    return sorted(found.values())


def _oldest(requirement: Requirement) -> str:
    return next((each.version for each in requirement.specifier if each.operator == ">="), "")


def run_cell(cell: Cell, wheel: Path, folder: Path, checks: Sequence[str], postgresql: str) -> dict[str, Any]:
    """Return a cell's result: the day, versions, and the answers of its checks."""
    result: dict[str, Any] = {"day": dt.datetime.now(dt.timezone.utc).date().isoformat(), "versions": {}}
    python = find_python(cell.python)
    if python is None:
        return {**result, "answers": {"install": f"no Python {cell.python} was found on this machine"}}
    shutil.rmtree(folder, ignore_errors=True)
    environment = Environment(cell, python, folder)
    if problem := environment.install(wheel):
        return {**result, "answers": {"install": problem}}
    result["versions"] = environment.versions()
    return {**result, "answers": environment.run([each for each in cell.checks if each in checks], postgresql)}


def main(arguments: Sequence[str]) -> int:
    """Run cells one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", metavar="CELL", help=", ".join(cell.name for cell in CELLS))
    parser.add_argument("--checks", default="imports,file,jdbc,parquet,spark,cdc,airflow")
    parser.add_argument("--folder", type=Path, default=Path("build/matrix"))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    unknown = set(options.cells) - {cell.name for cell in CELLS}
    if unknown:
        parser.error(f"no such cells: {', '.join(sorted(unknown))}")
    chosen = [cell for cell in CELLS if not options.cells or cell.name in options.cells]
    folder = options.folder.absolute()
    shutil.rmtree(folder / "wheel", ignore_errors=True)
    (folder / "wheel").mkdir(parents=True)
    wheel = build_wheel(folder / "wheel")
    found: dict[str, Any] = {}
    with PostgresServer() as server:
        database = server.first
        address = f"127.0.0.1:{server.port}:{database.user}:{database.password}"
        for cell in chosen:
            found[cell.name] = run_cell(cell, wheel, folder / cell.name, options.checks.split(","), address)
            print("  ".join(describe(cell, found[cell.name])), flush=True)  # noqa: T201 (the tool's output)
            shutil.rmtree(folder / cell.name, ignore_errors=True)
            if options.record:
                RESULTS.write_text(json.dumps({**results(), **found}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return int(any("FAILED" in verdict(cell, found[cell.name]) for cell in chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
