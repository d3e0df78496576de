"""What the author of a config provider subclasses; found by entry point (group ``sluiceway.config_providers``) or dotted name."""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ConfigData:
    """Values by key, and for how many milliseconds they hold (None: until somebody asks again). Never prints the values."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    ttl: int | None = None


class ConfigProvider(abc.ABC):
    """Looks values up, most of them secrets, that configs only refer to.

    Runs wherever a config is put to use: on the driver and on executors; and where one is checked, by the REST API.
    """

    java_class: ClassVar[str | None] = None

    def configure(self, params: Mapping[str, str]) -> None:  # noqa: B027
        """Take the worker's ``config.providers.<name>.param.*``, prefix removed. Raises ConfigError."""

    @abc.abstractmethod
    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Return the values of these keys at a path, as far as they exist. Raises ConfigError, which never shows a value."""

    def close(self) -> None:  # noqa: B027
        """Release what ``configure`` took."""
