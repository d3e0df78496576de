"""The suite itself: every required row of the matrix has a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_each_required_row_has_a_test() -> None:
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", str(Path(__file__).parent)]
    listed = subprocess.run(collect, capture_output=True, text=True, check=True, timeout=120)
    assert "rows without a test: none" in listed.stdout.splitlines(), listed.stdout
