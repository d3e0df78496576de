"""Imports of the package that must stay fast, because they load no heavy dependency."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pyspark", "airflow", "confluent_kafka", "fastapi")


def loaded_by(statement: str) -> list[str]:
    """Return the heavy packages that a statement imports in a new interpreter."""
    code = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import sluiceway") == []


def test_the_connector_api_loads_nothing_heavy() -> None:
    assert loaded_by("import sluiceway.api, sluiceway.config.definition, sluiceway.data") == []


def test_the_command_line_and_the_provider_info_load_nothing_heavy() -> None:
    assert loaded_by("import sluiceway.cli.main") == []
    assert loaded_by("import sluiceway.provider.provider_info") == []


def test_the_format_for_spark_jobs_needs_no_pytest_and_the_contracts_do() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "import sluiceway.spark.data_source, sluiceway.testing\n"
        "from sluiceway.testing import MemorySinkContext, ConverterContract\n"
        "try: from sluiceway.testing import SinkConnectorContract\n"
        "except ModuleNotFoundError as error: print(error.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "pytest\n"


def test_an_executor_without_the_regex_package_fails_only_where_a_pattern_is_used() -> None:
    code = (
        "import sys; sys.modules['regex'] = None\n"
        "import sluiceway.worker.executor, sluiceway.transforms.regex_router\n"
        "from sluiceway.errors import MissingToolError\n"
        "from sluiceway.java.regex import compile_java\n"
        "try: compile_java('a.*')\n"
        "except MissingToolError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install regex" in done.stdout
