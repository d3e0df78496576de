"""What importing the package costs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pyspark", "airflow", "confluent_kafka", "fastapi")


def loaded_by(statement: str) -> list[str]:
    """Return which of the heavy packages a statement imports in a new interpreter."""
    code = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert loaded_by("import sluiceway") == []


def test_what_a_connector_author_imports_is_light() -> None:
    assert loaded_by("import sluiceway.api, sluiceway.config.definition, sluiceway.data") == []


def test_the_command_line_and_the_provider_info_are_light() -> None:
    assert loaded_by("import sluiceway.cli.main") == []
    assert loaded_by("import sluiceway.provider.provider_info") == []
