"""docs/connect-map.md against the checkout: every path that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/connect-map.md").read_text(encoding="utf-8")
_PATH = re.compile(r"`((?:plugin|operators|sensors|dags|tests|tools|docker)(?:/[^`]*)?)`")


def test_every_path_exists() -> None:
    paths = _PATH.findall(PAGE)
    assert len(paths) > 100
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_twelve_questions_are_answered_by_paths() -> None:
    section = PAGE.split("## Twelve questions\n")[1].split("\n## ")[0]
    answers = [line.split(" | ")[1] for line in section.splitlines() if line.startswith("| ") and "?" in line]
    assert len(answers) == 12
    assert all(_PATH.search(answer) for answer in answers)
