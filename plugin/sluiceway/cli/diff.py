"""What applying connectors' files would change. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sluiceway.cli.secrets import shown
from sluiceway.config.connector_files import ConnectorFile
from sluiceway.config.password import HIDDEN
from sluiceway.errors import ConfigError

Action = Literal["create", "change", "keep", "delete"]
_SIGNS = {"create": "+", "change": "~", "keep": "=", "delete": "-"}


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done with one connector; ``before`` and ``after`` are its configs, None where there is none."""

    action: Action
    name: str
    before: Mapping[str, str] | None = field(repr=False)
    after: Mapping[str, str] | None = field(repr=False)
    initial_state: str | None = None

    def lines(self) -> Iterator[str]:
        """Yield the step as a diff, without secrets; a connector that stays as it is has one line."""
        yield f"{_SIGNS[self.action]} {self.name}"
        if self.action in ("create", "change"):
            before, after = self.before or {}, self.after or {}
            for key in sorted({*before, *after}):
                yield from _key_lines(key, before.get(key), after.get(key))


def steps(files: Sequence[ConnectorFile], configs: Mapping[str, Mapping[str, str]], *, prune: bool) -> list[Step]:
    """Return what leads from the connectors that there are, by their configs, to those of the files.

    ``prune``: connectors in none of the files are deleted. Raises ConfigError for a name that is there twice, for a secret that
    was copied from masked output, and for ``prune`` without any connector.
    """
    _check(files)
    if prune and not files:
        raise ConfigError("The files hold no connector: with --prune every connector would be deleted.")
    found = [_step(file, configs.get(file.name)) for file in files]
    gone = sorted(set(configs) - {file.name for file in files}) if prune else []
    return [*found, *(Step("delete", name, configs[name], None) for name in gone)]


def config_lines(before: Mapping[str, str], changes: Mapping[str, str | None], name: str) -> list[str]:
    """Return the diff of changing some keys of a connector, None removing one; empty if nothing changes."""
    after = {key: value for key, value in {**before, **changes}.items() if value is not None}
    return [] if after == dict(before) else list(Step("change", name, before, after).lines())


def summary(found: Collection[Step]) -> str:
    """Return ``1 to create, 2 unchanged``."""
    words = {"create": "to create", "change": "to change", "delete": "to delete", "keep": "unchanged"}
    counts = {action: sum(step.action == action for step in found) for action in words}
    return ", ".join(f"{count} {words[action]}" for action, count in counts.items() if count) or "nothing to do"


def _step(file: ConnectorFile, before: Mapping[str, str] | None) -> Step:
    if before is None:
        return Step("create", file.name, None, file.config, file.initial_state)
    return Step("keep" if dict(before) == file.config else "change", file.name, before, file.config)


def _key_lines(key: str, before: str | None, after: str | None) -> Iterator[str]:
    if before == after:
        return
    if before is not None:
        yield f"  - {key}: {shown(key, before)}"
    if after is not None:
        yield f"  + {key}: {shown(key, after)}"


def _check(files: Sequence[ConnectorFile]) -> None:
    places: dict[str, str] = {}
    for file in files:
        if file.name in places:
            raise ConfigError(f"Connector {file.name} is in {places[file.name]} and again in {file.where}; keep one of them.")
        places[file.name] = file.where
        for key, value in file.config.items():
            if value == HIDDEN:
                raise ConfigError(
                    f"{file.where}: {key} is {HIDDEN}, as the secret was shown instead of its value. Put the value there, "
                    "or a reference such as ${file:/path:key}."
                )
