"""Runs the tests of operators, sensors, provider, and example DAGs against each minor version of Airflow that is supported.

``make test-airflow-versions`` runs it. Each version gets an environment of its own in build/, with what the package index had at
a day after the version's release: as with Airflow's constraints, nothing in it is newer than what Airflow was tested with.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[1]
_TESTS = ("operators", "sensors", "provider", "dags")


class Version(NamedTuple):
    """A version of Airflow, and the day whose package index it is installed from."""

    airflow: str
    day: str
    extras: str = "columns,files,jdbc"
    without: tuple[str, ...] = ()
    """Names of tests of what this version lacks. A test that fails because of the product does not belong here."""


VERSIONS = (
    Version(
        "3.0.6",
        "2025-09-05",
        "columns,files",
        # They run the JDBC connectors, which need SQLAlchemy 2.0; this version needs 1.4.
        ("test_nightly_changes", "test_each_run_copies_the_new_rows", "test_upserts_and_tombstones_change_the_table"),
    ),
    Version("3.1.8", "2026-03-25"),
    Version("3.2.2", "2026-06-10"),
    Version("3.3.2", ""),
)


def main(arguments: list[str]) -> int:
    """Test the chosen versions, print a table, and return 1 if a test has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", help="for example 3.1.8; default is all")
    chosen = parser.parse_args(arguments).versions
    rows = [(version.airflow, *_tested(version)) for version in VERSIONS if not chosen or version.airflow in chosen]
    for airflow, passed, summary in rows:
        sys.stdout.write(f"Airflow {airflow:6}  {'passed' if passed else 'FAILED'}  {summary}\n")
    return 0 if all(passed for _, passed, _ in rows) else 1


def _tested(version: Version) -> tuple[bool, str]:
    """Return whether the tests pass with a version, and pytest's last line."""
    folder = _ROOT / "build" / f"airflow-{version.airflow}"
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        _install(version, folder, python)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "AIRFLOW_HOME": str(home), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = [str(python), "-m", "pytest", *(f"tests/unit/{each}" for each in _TESTS), "-q", "-p", "no:cacheprovider"]
    command += ["-k", " and ".join(f"not {each}" for each in version.without)] if version.without else []
    with (folder / "tests.log").open("w") as log:
        done = subprocess.run(command, cwd=_ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
    lines = (folder / "tests.log").read_text(errors="replace").splitlines()
    summary = next((line for line in reversed(lines) if re.search(r"\d+ (passed|failed|error)", line)), "no summary")
    return done.returncode == 0, f"{summary.strip('= ')} ({folder / 'tests.log'})"


def _install(version: Version, folder: Path, python: Path) -> None:
    at = ["--exclude-newer", version.day] if version.day else []
    _run("uv", "venv", "--quiet", "--python", sys.executable, str(folder))
    install = ["uv", "pip", "install", "--quiet", "--python", str(python)]
    _run(*install, *at, f"apache-airflow=={version.airflow}", "apache-airflow-providers-apache-spark")
    # What the tests need besides may be newer; what Airflow pins stays.
    _run(*install, f"apache-airflow=={version.airflow}", "-e", f".[{version.extras},test]")
    (folder / ".ready").touch()


def _run(*command: str) -> None:
    subprocess.run(command, cwd=_ROOT, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
