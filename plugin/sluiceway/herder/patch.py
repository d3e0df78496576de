"""Changes some keys of a connector's config (KIP-477). Pure."""

from __future__ import annotations

from collections.abc import Mapping


def patched(config: Mapping[str, str | None], patch: Mapping[str, str | None]) -> dict[str, str]:
    """Return a config with the patch's keys: new ones come last, and those that the patch has as None are gone."""
    return {key: value for key, value in {**config, **patch}.items() if value is not None}
