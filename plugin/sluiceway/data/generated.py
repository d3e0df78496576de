"""Compiles generated Python code for per-record work that depends only on the schema.

The code contains only text of its callers in this package and constants: names from schemas enter it as ``repr`` of a string or
as bound objects, never as code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

DEEPEST_EXPRESSION = 10
"""Callers move deeper nesting to another function, because Python allows no more than 200 nested brackets."""


class Code:
    """A namespace of generated functions."""

    def __init__(self, **names: Any) -> None:
        self._names: dict[str, Any] = dict(names)

    def bind(self, value: Any) -> str:
        """Bind an object and return its name in the generated code."""
        name = f"bound{len(self._names)}"
        self._names[name] = value
        return name

    def function(self, argument: str, body: Sequence[str]) -> str:
        """Define a function of one argument and return its name."""
        name = f"function{len(self._names)}"
        source = "\n    ".join([f"def {name}({argument}):", *body])
        exec(compile(source, f"<generated {name}>", "exec"), self._names)  # noqa: S102 (no input reaches the code, see above)
        return name

    def callable(self, name: str) -> Callable[[Any], Any]:
        """Return a generated function by name."""
        found: Callable[[Any], Any] = self._names[name]
        return found
