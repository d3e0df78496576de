"""Imports of several threads, each case in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

IMPORTS = """
import sys, threading, time
sys.path.insert(0, {folder!r})
{first}
errors = []

def load(module, after):
    time.sleep(after)
    try:
        __import__(module)
    except BaseException as error:
        errors.append(f"{{module}}: {{type(error).__name__}}")

threads = [threading.Thread(target=load, args=each) for each in (("parts.low", 0), ("parts.high", 0.3))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(300)
print(errors)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package that imports ``high`` first, which imports ``low``."""
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "__init__.py").write_text("import time\ntime.sleep(1)\nfrom parts.high import VALUE\n")
    (parts / "high.py").write_text("import time\ntime.sleep(1)\nfrom parts.low import VALUE\n")
    (parts / "low.py").write_text("VALUE = 1\n")
    return tmp_path


def imported(package: Path, first: str) -> str:
    code = textwrap.dedent(IMPORTS).format(folder=str(package), first=first)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout


def test_threads_import_parts_of_one_package_at_the_same_time(package: Path) -> None:
    first = "from sluiceway.package_imports import import_packages_first\nimport_packages_first()\nimport_packages_first()"
    assert imported(package, first) == "[]\n"


def test_otherwise_python_lets_one_of_them_fail(package: Path) -> None:
    assert "Error" in imported(package, "")
