"""What the pages say about installing, against the package: the wheel's name, extras, and versions."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

import sluiceway
from sluiceway.java_runtime import NEWEST_JAVA, OLDEST_JAVA

ROOT = Path(__file__).parents[3]
INSTALL = ROOT / "docs/how-to/install.md"
WHEEL = f"dist/sluiceway-{sluiceway.__version__}-py3-none-any.whl"
FOR_DEVELOPERS = {"test", "test-s3", "test-gcs", "docs", "lint"}
# Decisions tell of their time, and the changelog of versions.
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions")]
_COMMAND = re.compile(r"pip install [^\n`]*sluiceway[^\n`]*")
_OF_THE_WHEEL = re.compile(
    rf"pip install (?:-c constraints\.txt )?'{re.escape(WHEEL)}\[([a-z0-9,-]+)\]'(?: \"apache-airflow==[^\n]*)?(?: +# [^\n]*)?"
)


def setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def extras() -> set[str]:
    return set(setup()["options.extras_require"]) - FOR_DEVELOPERS


def commands() -> list[tuple[str, str]]:
    """Return each command that installs Sluiceway, with its page."""
    return [(page.name, found) for page in PAGES for found in _COMMAND.findall(page.read_text(encoding="utf-8"))]


def test_the_page_has_each_extra() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", INSTALL.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) == extras()
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize(("page", "command"), commands(), ids=str)
def test_a_printed_command_installs_the_wheel_of_this_version(page: str, command: str) -> None:
    found = _OF_THE_WHEEL.fullmatch(command)
    assert found, f"{page}: {command!r} does not install {WHEEL} as docs/how-to/install.md does"
    assert set(found[1].split(",")) <= extras(), page


def test_a_page_with_such_a_command_links_to_the_page() -> None:
    with_command = {page for page in PAGES if _COMMAND.search(page.read_text(encoding="utf-8"))} - {INSTALL}
    assert [page.name for page in with_command if "install.md" not in page.read_text(encoding="utf-8")] == []
    assert len(with_command) > 4


def test_the_versions_are_those_of_the_package() -> None:
    text, metadata = INSTALL.read_text(encoding="utf-8"), setup()
    pythons = re.findall(r"Python :: (3\.\d+)", metadata["metadata"]["classifiers"])
    assert f"Python {pythons[0]} to {pythons[-1]}, and Java {OLDEST_JAVA} to {NEWEST_JAVA}" in text
    assert f"sluiceway {sluiceway.__version__}" in text
