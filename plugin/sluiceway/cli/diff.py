"""Computes the changes that make connectors match files. Asks the server for types of keys only; no other I/O."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sluiceway.cli.secrets import DeclaredPasswords, shown
from sluiceway.config.connector_files import ConnectorFile
from sluiceway.config.password import HIDDEN
from sluiceway.errors import ConfigError

Action = Literal["create", "change", "keep", "delete"]
_SIGNS = {"create": "+", "change": "~", "keep": "=", "delete": "-"}


@dataclass(frozen=True, slots=True)
class ConnectorChange:
    """The change of one connector. ``before`` is None for a new connector, ``after`` for one to delete."""

    action: Action
    name: str
    before: Mapping[str, str] | None = field(repr=False)
    after: Mapping[str, str] | None = field(repr=False)
    initial_state: str | None = None

    def lines(self, passwords: Container[str]) -> Iterator[str]:
        """Yield the change as a diff with secrets masked; an unchanged connector has one line.

        ``passwords`` are the keys of type password.
        """
        yield f"{_SIGNS[self.action]} {self.name}"
        if self.action in ("create", "change"):
            before, after = self.before or {}, self.after or {}
            for key in sorted({*before, *after}):
                yield from _key_lines(key, before.get(key), after.get(key), passwords)


def changes(files: Sequence[ConnectorFile], configs: Mapping[str, Mapping[str, str]], *, prune: bool) -> list[ConnectorChange]:
    """Return the changes that turn the existing connectors (``configs`` by name) into those of the files.

    With ``prune``, connectors that no file contains are deleted. Raises ConfigError for a name that occurs twice, for a secret
    copied from masked output, and for ``prune`` with no connector in the files.
    """
    _check(files)
    if prune and not files:
        raise ConfigError("The files contain no connector, so --prune would delete every connector. Check the files.")
    found = [_change(file, configs.get(file.name)) for file in files]
    gone = sorted(set(configs) - {file.name for file in files}) if prune else []
    return [*found, *(ConnectorChange("delete", name, configs[name], None) for name in gone)]


def config_lines(before: Mapping[str, str], edits: Mapping[str, str | None], name: str, declared: DeclaredPasswords) -> list[str]:
    """Return the diff of setting keys of a connector's config (None removes a key); empty if nothing changes."""
    after = {key: value for key, value in {**before, **edits}.items() if value is not None}
    if after == dict(before):
        return []
    return list(ConnectorChange("change", name, before, after).lines(declared.keys(before, after)))


def summary(found: Collection[ConnectorChange]) -> str:
    """Return ``1 to create, 2 unchanged``."""
    words = {"create": "to create", "change": "to change", "delete": "to delete", "keep": "unchanged"}
    counts = {action: sum(change.action == action for change in found) for action in words}
    return ", ".join(f"{count} {words[action]}" for action, count in counts.items() if count) or "nothing to do"


def _change(file: ConnectorFile, before: Mapping[str, str] | None) -> ConnectorChange:
    if before is None:
        return ConnectorChange("create", file.name, None, file.config, file.initial_state)
    return ConnectorChange("keep" if dict(before) == file.config else "change", file.name, before, file.config)


def _key_lines(key: str, before: str | None, after: str | None, passwords: Container[str]) -> Iterator[str]:
    if before == after:
        return
    if before is not None:
        yield f"  - {key}: {shown(key, before, passwords)}"
    if after is not None:
        yield f"  + {key}: {shown(key, after, passwords)}"


def _check(files: Sequence[ConnectorFile]) -> None:
    files_by_name: dict[str, str] = {}
    for file in files:
        if file.name in files_by_name:
            raise ConfigError(f"Connector {file.name} is in {files_by_name[file.name]} and in {file.where}. Remove one of them.")
        files_by_name[file.name] = file.where
        for key, value in file.config.items():
            if value == HIDDEN:
                raise ConfigError(
                    f"{file.where}: {key} is {HIDDEN}, the mask that output shows for secrets. Replace it with the value "
                    "or a reference such as ${file:/path:key}."
                )
