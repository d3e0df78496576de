"""Makes a Python function out of lines of code, for work that is done for each record and known from its schema.

The code consists of what the callers here write, and of constants: names out of schemas only ever enter it as ``repr`` of a
text or as bound objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

DEEPEST_EXPRESSION = 10
"""How deep callers nest expressions before they put the rest into a function: Python takes no more than 200 brackets."""


class Code:
    """The names that generated functions share."""

    def __init__(self, **names: Any) -> None:
        self._names: dict[str, Any] = dict(names)

    def bind(self, value: Any) -> str:
        """Return a name that stands for an object."""
        name = f"bound{len(self._names)}"
        self._names[name] = value
        return name

    def function(self, argument: str, body: Sequence[str]) -> str:
        """Define a function of one argument and return its name."""
        name = f"function{len(self._names)}"
        source = "\n    ".join([f"def {name}({argument}):", *body])
        exec(compile(source, f"<generated {name}>", "exec"), self._names)  # noqa: S102 (nothing but our own code, see above)
        return name

    def callable(self, name: str) -> Callable[[Any], Any]:
        """Return a function by its name."""
        found: Callable[[Any], Any] = self._names[name]
        return found
