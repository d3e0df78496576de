"""Checks pages for accessibility with axe-core, which npm installs into build/axe."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Frame, Page

_FOLDER = Path(__file__).parents[2] / "build" / "axe"
_SCRIPT = _FOLDER / "node_modules" / "axe-core" / "axe.min.js"
_SERIOUS = {"serious", "critical"}


def axe_script() -> str:
    """Return axe-core; install it, or skip the test with the reason."""
    if not _SCRIPT.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("there is no npm to install axe-core with")
        command = [npm, "install", "--silent", "--no-save", "--prefix", str(_FOLDER), "axe-core@4"]
        _FOLDER.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install axe-core: {(done.stderr or done.stdout)[-300:]}")
    return _SCRIPT.read_text()


def violations(page: Page | Frame, script: str) -> list[str]:
    """Return the serious and critical findings on a page, with the elements."""
    page.evaluate(script)
    found: dict[str, Any] = page.evaluate("() => axe.run(document)")
    return [
        f"{each['id']}: {each['help']}: {'; '.join(node['html'] for node in each['nodes'][:5])}"
        for each in found["violations"]
        if each["impact"] in _SERIOUS
    ]
