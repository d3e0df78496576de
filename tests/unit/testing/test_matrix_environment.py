"""The environments of ``make test-matrix``: the oldest versions that they install, and what an installer's failure is told as."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
from matrix_cells import CELLS, Cell
from matrix_environment import UNREACHABLE, constraints, floors, said

METADATA = """Metadata-Version: 2.1
Name: sluiceway
Version: 1
Requires-Dist: psutil>=6.1
Requires-Dist: certifi
Provides-Extra: airflow
Requires-Dist: apache-airflow<4,>=3.0.6; extra == "airflow"
Requires-Dist: sluiceway[standalone]; extra == "airflow"
Provides-Extra: standalone
Requires-Dist: Fast_API>=0.116; extra == "standalone"
Requires-Dist: pyspark<5,>=3.5.2; python_version < "3.12" and extra == "standalone"
Requires-Dist: pyspark<5,>=4.0; python_version >= "3.12" and extra == "standalone"
"""


@pytest.mark.parametrize(
    ("python", "extras", "oldest"),
    [
        ("3.10", (), {"psutil": "6.1"}),
        ("3.10", ("standalone",), {"psutil": "6.1", "fast-api": "0.116", "pyspark": "3.5.2"}),
        ("3.12", ("airflow",), {"psutil": "6.1", "apache-airflow": "3.0.6", "fast-api": "0.116", "pyspark": "4.0"}),
    ],
)
def test_floors_are_of_all_direct_requirements(
    python: str, extras: tuple[str, ...], oldest: dict[str, str], tmp_path: Path
) -> None:
    wheel = tmp_path / "sluiceway-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("sluiceway-1.dist-info/METADATA", METADATA)
    assert floors(wheel, Cell("old", python, extras=extras)) == oldest


UV = """  No solution found when resolving dependencies:
  ╰─▶ Because a==1 depends on b>=2 and b==1, we can conclude that a==1 cannot be
      used.
      And because you require a==1, we can conclude that your requirements are unsatisfiable.
"""


@pytest.mark.parametrize(
    ("code", "printed", "told"),
    [
        (0, "warning: anything", ""),
        (1, UV, "a==1 depends on b>=2 and b==1"),
        (1, "ERROR: No matching distribution found for a==3", "ERROR: No matching distribution found for a==3"),
        (1, "cause: Failed to fetch: `http://index/simple/a/`\ncause: dns error", f"{UNREACHABLE}: cause: Failed to fetch"),
        (1, "WARNING: Retrying after connection broken by 'NameResolutionError'\nERROR: No match", f"{UNREACHABLE}: WARNING"),
    ],
)
def test_a_failed_installation_is_told_in_a_line(code: int, printed: str, told: str) -> None:
    problem = said(subprocess.CompletedProcess([], code, "", printed))
    assert problem.startswith(told)
    assert "\n" not in problem
    assert bool(problem) == bool(code)


def test_cells_beside_airflow_have_its_own_versions() -> None:
    for cell in CELLS:
        held = constraints(cell)
        assert bool(held) == bool(cell.beside)
        assert not held or {"fastapi", "uvicorn", "pydantic", "confluent-kafka"} <= set(held)
