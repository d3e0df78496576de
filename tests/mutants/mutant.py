"""One broken place of the product."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = "plugin/sluiceway"


class StaleError(Exception):
    """The text that a mutant replaces is not in its module exactly once."""


@dataclass(frozen=True)
class Mutant:
    """A replacement of text in one module that breaks one public behavior."""

    id: str
    module: str
    """Relative to ``plugin/sluiceway``."""

    original: str
    """The text that is replaced. It must be in the module exactly once."""

    replacement: str
    breaks: str
    """What a user would see."""

    tests: tuple[str, ...] = ()
    """Tests outside tests/unit that reach the place, and unit tests of lines that run when their module is imported."""

    @property
    def path(self) -> str:
        """The module's path in the source tree."""
        return f"{PRODUCT}/{self.module}"

    def span(self, text: str) -> range:
        """Return the numbers of the lines, from 1, that the replaced text is in. Raises StaleError."""
        found = text.count(self.original)
        if found != 1:
            raise StaleError(
                f"Mutant {self.id} is stale: the text it replaces is {found} times in {self.path}. "
                f"Adapt or replace the mutant in tests/mutants/catalog:\n{self.original}"
            )
        first = text[: text.index(self.original)].count("\n") + 1
        return range(first, first + self.original.count("\n") + 1)

    def applied(self, text: str) -> str:
        """Return the module's broken text. Raises StaleError."""
        self.span(text)
        return text.replace(self.original, self.replacement)
