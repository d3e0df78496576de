"""Permissions beyond a request's path, for an app mounted in a server that has users. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.requests import Request

from sluiceway.herder import Herder


class Guard(Protocol):
    """The permissions of a request. A dependency of the app sets ``request.state.guard``; without one, all is allowed."""

    def visible(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        """Return the names of the connectors that the user may see, in the given order."""

    def editable(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        """Return the names of the connectors that the user may edit, in the given order. Others are shown with discretion."""

    def check_config(self, name: str, config: Mapping[str, str | None], stored: Mapping[str, str] | None) -> None:
        """Raise HTTPException (403) if the user may not set this config, or these keys of it, for the connector.

        ``stored`` is the connector's config; None for a new one.
        """

    def check_preview(self, name: str, config: Mapping[str, str] | None) -> None:
        """Raise HTTPException (403) if the user may not run this connector. ``config`` is the stored one; None for a new one."""


class AllowAll:
    """The guard of an app without permissions."""

    def visible(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        return list(configs)

    def editable(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        return list(configs)

    def check_config(self, name: str, config: Mapping[str, str | None], stored: Mapping[str, str] | None) -> None:
        """Allow every config."""

    def check_preview(self, name: str, config: Mapping[str, str] | None) -> None:
        """Allow every preview."""


_ALLOW_ALL = AllowAll()


def guard_of(request: Request) -> Guard:
    """Return the guard of a request."""
    guard: Guard = getattr(request.state, "guard", _ALLOW_ALL)
    return guard


def check_config(request: Request, herder: Herder, name: str, config: Mapping[str, str | None]) -> None:
    """Raise HTTPException (403) if the user of a request may not set this config, or these keys of it, for a connector."""
    entry = herder.overview().state.entry(name)
    guard_of(request).check_config(name, config, None if entry is None else entry.config)


def may_edit(request: Request, name: str, config: Mapping[str, str]) -> bool:
    """Return whether the user of a request may edit a connector, and so see its secrets and the messages of its errors."""
    return name in guard_of(request).editable({name: config})
