"""What a request may see and do beyond its own path, where whoever mounts the app knows about permissions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.requests import Request


class Guard(Protocol):
    """Set as ``request.state.guard`` by a dependency of the app; without one everything is allowed."""

    def visible(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        """Return the names of those connectors that the user may see, in the order given."""

    def check_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Raise HTTPException (403) if the user may not give a connector this config."""


class Everything:
    """The guard of an app without permissions."""

    def visible(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        return list(configs)

    def check_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Anything may be configured."""


_EVERYTHING = Everything()


def guard_of(request: Request) -> Guard:
    """Return the request's guard."""
    guard: Guard = getattr(request.state, "guard", _EVERYTHING)
    return guard
