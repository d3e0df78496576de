"""Named REST APIs in one file of the user's. Credentials are not in it, but the files and variables that they are read from."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sluiceway.errors import ConfigError
from sluiceway.folders import write_atomically


@dataclass(frozen=True)
class Context:
    """Where a REST API is, and where to find what it asks for. Paths are files', ``*_env`` are variables' names."""

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
        """Return the password, read now; raises ConfigError."""
        return _secret(self.password_file, self.password_env)

    def token(self) -> str | None:
        """Return the bearer token, read now; raises ConfigError."""
        return _secret(self.token_file, self.token_env)


@dataclass(frozen=True)
class Contexts:
    """All contexts, and the name of the one in use."""

    by_name: dict[str, Context] = field(default_factory=dict)
    current: str | None = None

    def get(self, name: str) -> Context:
        """Return a context; raises ConfigError."""
        if name not in self.by_name:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise ConfigError(f"There is no context {name!r} in {context_path()}; there are: {known}.")
        return self.by_name[name]


def context_path() -> Path:
    """Return ``$XDG_CONFIG_HOME/sluiceway/contexts.json``, by default under ``~/.config``."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".config") / "sluiceway" / "contexts.json"


def load() -> Contexts:
    """Read the file; without one there are no contexts. Raises ConfigError."""
    path = context_path()
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = {name: Context(**{**each, "servers": tuple(each["servers"])}) for name, each in document["contexts"].items()}
        return Contexts(found, document.get("current"))
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"The file of contexts {path} cannot be used: {error}. Mend it, or remove it.") from error


def save(contexts: Contexts) -> None:
    """Write the file, readable for its owner only. Raises ConfigError."""
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
            raise ConfigError(f"The context takes a secret from the variable {variable}, which is not set.")
        return value
    if not file:
        return None
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"The context takes a secret from the file {file}, which cannot be read: {error.strerror}.") from error
