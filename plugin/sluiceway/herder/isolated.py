"""Defines how a server calls what needs a connector's secrets or code. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sluiceway.config.worker import WorkerConfig


class Isolated(Protocol):
    """Calls a module's function with a connector's config as it is stored, the worker's, and arguments. Returns its result.

    The result is what JSON can hold. A server with secrets of its own calls it in a process that reaches what a driver reaches
    (``sluiceway.preview.isolated``). Raises the ConnectErrors of the function, and ConnectError if that process fails.
    """

    def __call__(self, function: Callable[..., Any], config: Mapping[str, str], worker: WorkerConfig, *arguments: Any) -> Any: ...


def here(function: Callable[..., Any], config: Mapping[str, str], worker: WorkerConfig, *arguments: Any) -> Any:
    """Call a function in this process, for a server with the rights of its connectors."""
    return function(config, worker, *arguments)
