"""Maps each mutant to the files of unit tests that reach its place, by coverage's contexts.

``reach.json`` is the map. Recording it takes as long as the unit tests several times over, so it is committed:

    make mutants-map
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mutants.catalog import ALL
from mutants.mutant import ROOT, Mutant

MAP = Path(__file__).with_name("reach.json")
_MOST_FILES = 12

DATA = Path("build/mutants/coverage")
"""The start of the names of coverage's files, relative to the source tree."""

MODULES = "MUTANTS_MODULES"
"""The environment variable with the paths of the modules to record."""


def reaching(mutant: Mutant) -> list[str]:
    """Return the tests to run on a mutant: those that it names, then the files of unit tests that reach its place."""
    return [*mutant.tests, *_read().get(mutant.id, ())]


def _read() -> dict[str, list[str]]:
    known: dict[str, list[str]] = json.loads(MAP.read_text(encoding="utf-8"))
    return known


def _record(modules: Iterable[str]) -> None:
    """Run the unit tests and record which lines of these modules they execute."""
    folder = ROOT / DATA.parent
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{DATA.name}*"):
        old.unlink()
    environment = {**os.environ, "PYTHONPATH": "tests", "COVERAGE_CORE": "ctrace", MODULES: os.pathsep.join(modules)}
    command = ["-m", "pytest", "-p", "mutants.reach_plugin", "tests/unit", "-n", "2", "--dist", "loadfile", "-q"]
    # Failures, which a busy machine may cause, take nothing from the map.
    subprocess.run([sys.executable, *command, "-p", "no:cacheprovider"], cwd=ROOT, env=environment, check=False)


def _derive(mutants: Iterable[Mutant]) -> dict[str, list[str]]:
    """Return the files of tests that reach each mutant's place, first those that are named like its module."""
    from coverage import CoverageData

    data = CoverageData(str(ROOT / DATA))
    for part in (ROOT / DATA.parent).glob(f"{DATA.name}.*"):
        measured = CoverageData(str(part))
        measured.read()
        data.update(measured)
    contexts = {Path(name).resolve(): data.contexts_by_lineno(name) for name in data.measured_files()}
    return {mutant.id: _files(mutant, contexts.get((ROOT / mutant.path).resolve(), {})) for mutant in mutants}


def _files(mutant: Mutant, contexts: dict[int, list[str]]) -> list[str]:
    lines = mutant.span((ROOT / mutant.path).read_text(encoding="utf-8"))
    found = {_file(test) for line in lines for test in contexts.get(line, ()) if test}
    shares = Counter(file for tests in contexts.values() for file in {_file(test) for test in tests if test})
    words = _words(mutant.module)
    return sorted(found, key=lambda file: (-len(words & _words(file)), -shares[file], file))[:_MOST_FILES]


def _words(path: str) -> set[str]:
    return set(re.findall("[a-z]+", path.lower()))


def _file(test: str) -> str:
    return test.partition("::")[0]


def main() -> None:
    """Record the map again, or with ``--derive`` make it of the last record."""
    if "--derive" not in sys.argv:
        _record(sorted({mutant.path for mutant in ALL}))
    MAP.write_text(json.dumps(_derive(ALL), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
