"""Runs a contract without pytest and returns its failing tests."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any


def breaches(
    contract: type[Any], config: Mapping[str, str] | None = None, only: str = "test_", **attributes: Any
) -> dict[str, str]:
    """Return the failing tests of a contract with these class attributes, each with its message.

    ``only`` is how the names of the tests to run begin.
    """
    failed: dict[str, str] = {}
    tests = [name for name in dir(contract) if name.startswith(only)]
    for name in tests:
        test = getattr(type("Contract", (contract,), dict(attributes))(), name)
        arguments = [dict(config or {})] if "config" in inspect.signature(test).parameters else []
        try:
            test(*arguments)
        except Exception as error:  # noqa: BLE001 (any failure counts, as in pytest)
            failed[name] = f"{type(error).__name__}: {error}"
    return failed
