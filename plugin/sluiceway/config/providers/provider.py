"""Defines the base class of config providers.

Providers are found by entry point (group ``sluiceway.config_providers``) or dotted name.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ConfigData:
    """Values by key and their time to live in milliseconds, None for no limit. Its repr does not show the values."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    ttl: int | None = None


class ConfigProvider(abc.ABC):
    """Provides the values, mostly secrets, that configs refer to.

    Runs wherever a config is used or validated: on the driver, on executors and in the REST API. Airflow's API server calls
    ``check`` only.
    """

    java_class: ClassVar[str | None] = None

    of_machine: ClassVar[bool] = False
    """Whether the values are those of the machine: of its files, or of the process's environment."""

    def configure(self, params: Mapping[str, str]) -> None:  # noqa: B027
        """Configure the provider with ``config.providers.<name>.param.*`` without the prefix. Raises ConfigError."""

    @abc.abstractmethod
    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Return the existing values of these keys at a path. Raises ConfigError, whose message must not contain a value."""

    def check(self, path: str, key: str) -> None:  # noqa: B027
        """Raise ConfigError for a reference that cannot be resolved anywhere, such as one without a path. No I/O."""

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` acquired."""
