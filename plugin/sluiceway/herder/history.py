"""Restores configs from a connector's history. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.config.masking import shown
from sluiceway.config.password import HIDDEN
from sluiceway.errors import BadRequestError, NotFoundError
from sluiceway.storage.history import ChangeKind, HistoryChange


def config_of(name: str, changes: Sequence[HistoryChange], version: int, current: Mapping[str, str]) -> dict[str, str]:
    """Return the config that a connector had in a version. Its secrets are those of the ``current`` config.

    Raises NotFoundError if there is no such version, and BadRequestError if the connector did not exist in it or the current
    config lacks one of its secrets.
    """
    if all(each.version != version for each in changes):
        known = f"It has {changes[0].version} to {changes[-1].version}." if changes else "No change of it is recorded."
        raise NotFoundError(f"Connector {name} has no version {version}. {known}")
    configs = [each for each in changes if each.kind is ChangeKind.CONFIG and each.version <= version]
    if not configs:
        raise BadRequestError(
            f"The config that connector {name} had in version {version} is not in its history any more. Choose a later version."
        )
    stored = configs[-1].config
    if stored is None:
        raise BadRequestError(f"Connector {name} was deleted in version {configs[-1].version}. Choose an earlier version.")
    restored = {key: _restored(key, value, current.get(key)) for key, value in stored.items()}
    missing = [key for key, value in restored.items() if value is None]
    if missing:
        raise BadRequestError(
            f"The history keeps no secrets, and the current config of connector {name} has none for {', '.join(missing)}. Put "
            f"the config of version {version} with these values instead."
        )
    return {key: value for key, value in restored.items() if value is not None}


def _restored(key: str, stored: str, current: str | None) -> str | None:
    """Return a value whose masked form is ``stored``; None if that needs a secret which ``current`` does not have."""
    if HIDDEN not in stored:
        return stored
    if current is not None and (stored == HIDDEN or shown(key, current) == stored):
        return current
    return None
