"""Decides which client settings a connector may override: ``connector.client.config.override.policy`` (KIP-458). No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.parsing import parse_list
from sluiceway.errors import ConfigError

POLICY = "connector.client.config.override.policy"
ALLOWLIST = "connector.client.config.override.allowlist"

_PRINCIPAL = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
_CLASS_SUFFIX = "ConnectorClientConfigOverridePolicy"


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    """A policy and the settings it allows. None allows every setting."""

    name: str = "All"
    allowed: frozenset[str] | None = None

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> OverridePolicy:
        """Return the policy that worker properties name by short name or Java class. Raises ConfigError."""
        given = raw.get(POLICY, "All").strip()
        name = given.rpartition(".")[2].removesuffix(_CLASS_SUFFIX)
        policies = {
            "All": None,
            "None": frozenset[str](),
            "Principal": _PRINCIPAL,
            "Allowlist": frozenset(parse_list(raw.get(ALLOWLIST))),
        }
        if name not in policies:
            raise ConfigError(POLICY, given, f"Must be one of {', '.join(policies)}")
        return cls(name, policies[name])

    def refusal(self, key: str) -> str | None:
        """Return Connect's error for a setting that must not be overridden, or None."""
        if self.allowed is None or key in self.allowed:
            return None
        return f"The '{self.name}' policy does not allow '{key}' to be overridden in the connector configuration."
