"""The user's file of contexts: named REST APIs.

The file holds no credentials, only the names of the files and environment variables to read them from.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.folders import write_atomically


@dataclass(frozen=True)
class Context:
    """The servers of a REST API and the sources of its credentials: ``*_file`` are paths, ``*_env`` are variable names."""

    servers: tuple[str, ...] = ()
    username: str | None = None
    password_file: str | None = None
    password_env: str | None = None
    token_file: str | None = None
    token_env: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    def password(self) -> str | None:
        """Read the password. Raises ConfigError."""
        return _secret(self.password_file, self.password_env)

    def token(self) -> str | None:
        """Read the bearer token. Raises ConfigError."""
        return _secret(self.token_file, self.token_env)


@dataclass(frozen=True)
class Contexts:
    """All contexts and the name of the current one."""

    by_name: dict[str, Context] = field(default_factory=dict)
    current: str | None = None

    def get(self, name: str) -> Context:
        """Return a context by name. Raises NotFoundError."""
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise NotFoundError(f"Context {name!r} is not in {context_path()}. Known contexts: {known}.")
        return self.by_name[name]


def context_path() -> Path:
    """Return ``$XDG_CONFIG_HOME/sluiceway/contexts.json``; ``$XDG_CONFIG_HOME`` defaults to ``~/.config``."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".config") / "sluiceway" / "contexts.json"


def load() -> Contexts:
    """Read the file; a missing file means no contexts. Raises ConfigError."""
    path = context_path()
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = {name: Context(**{**each, "servers": tuple(each["servers"])}) for name, each in document["contexts"].items()}
        return Contexts(found, document.get("current"))
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"Cannot read contexts from {path}: {error}. Correct the file or delete it.") from error


def save(contexts: Contexts) -> None:
    """Write the file with permissions for its owner only. Raises ConfigError."""
    path = context_path()
    named = {name: {k: v for k, v in asdict(each).items() if v} for name, each in sorted(contexts.by_name.items())}
    try:
        write_atomically(path, json.dumps({"current": contexts.current, "contexts": named}, indent=2) + "\n", mode=0o600)
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}.") from error


def _secret(file: str | None, variable: str | None) -> str | None:
    if variable:
        value = os.environ.get(variable)
        if not value:
            raise ConfigError(f"The context reads a secret from the environment variable {variable}, which is not set. Set it.")
        return value
    if not file:
        return None
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"The context reads a secret from the file {file}, which cannot be read: {error.strerror}.") from error
