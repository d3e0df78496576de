"""Checks the credentials of requests to the standalone REST server: passwords and bearer tokens from files.

The password file is that of Kafka Connect's ``BasicAuthSecurityRestExtension`` and is found the same way:
``rest.extension.classes`` names the extension, a JAAS file names the properties file, which has a line ``user=password`` for each
user.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from sluiceway.config.parsing import parse_list
from sluiceway.config.properties import read_properties
from sluiceway.errors import ConfigError

EXTENSIONS = "rest.extension.classes"
BASIC_FILE = "sluiceway.rest.basic.auth.file"
TOKEN_FILE = "sluiceway.rest.bearer.token.file"  # noqa: S105 (a key)
JAAS = "java.security.auth.login.config"

_EXTENSION = "BasicAuthSecurityRestExtension"
_LOGIN_MODULE = "PropertyFileLoginModule"
_SECTION = "KafkaConnect"


class CredentialsFile:
    """Names and secrets in a .properties file. A changed file is read again, so secrets can be rotated without a restart."""

    def __init__(self, key: str, path: Path) -> None:
        self._key = key
        self._path = path
        self._version: tuple[int, int] | None = None
        self._known: dict[str, bytes] = {}
        self.secrets()

    def secrets(self) -> Mapping[str, bytes]:
        """Return the secrets by name. Raises ConfigError, without any secret, if the file cannot be read."""
        try:
            found = self._path.stat()
            version = (found.st_mtime_ns, found.st_size)
            if version != self._version:
                self._known = {name: secret.encode() for name, secret in read_properties(self._path).items()}
                self._version = version
        except OSError as error:
            raise ConfigError(self._key, self._path, f"Cannot read the credentials file: {error.strerror}") from error
        return self._known


class Authenticator:
    """Checks a request's ``Authorization`` header. Without a credentials file none is required, as in Kafka Connect."""

    def __init__(self, users: CredentialsFile | None = None, tokens: CredentialsFile | None = None) -> None:
        self._users = users
        self._tokens = tokens

    @classmethod
    def of(cls, raw: Mapping[str, str], environment: Mapping[str, str]) -> Authenticator:
        """Read the worker's keys and their files. ``environment`` provides ``KAFKA_OPTS``. Raises ConfigError."""
        users = raw.get(BASIC_FILE) or _file_of_extension(raw, environment)
        tokens = raw.get(TOKEN_FILE)
        return cls(
            CredentialsFile(BASIC_FILE, Path(users).expanduser()) if users else None,
            CredentialsFile(TOKEN_FILE, Path(tokens).expanduser()) if tokens else None,
        )

    @property
    def challenges(self) -> list[str]:
        """The ``WWW-Authenticate`` headers of a 401 response; empty if no credentials are required."""
        schemes = {'Basic realm="Connect"': self._users, 'Bearer realm="Connect"': self._tokens}
        return [challenge for challenge, file in schemes.items() if file is not None]

    def user(self, authorization: str | None) -> str | None:
        """Return the name of the user or token of a valid header, else None. Blocks briefly to read a changed file."""
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() == "basic" and self._users is not None:
            return _user_with_password(self._users.secrets(), given.strip())
        if scheme.lower() == "bearer" and self._tokens is not None:
            token = given.strip().encode()
            # Compare with every token, so that the response time reveals nothing.
            found = [name for name, known in self._tokens.secrets().items() if known and hmac.compare_digest(token, known)]
            return found[0] if found else None
        return None


def _user_with_password(users: Mapping[str, bytes], credentials: str) -> str | None:
    try:
        name, colon, password = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    expected = users.get(name)
    valid = hmac.compare_digest(password.encode(), expected or b"\0") and expected is not None and bool(colon)
    return name if valid else None


def _file_of_extension(raw: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    names = parse_list(raw.get(EXTENSIONS))
    others = [name for name in names if name.rpartition(".")[2] != _EXTENSION]
    if others:
        raise ConfigError(EXTENSIONS, others[0], f"Java extensions cannot be loaded. The only supported one is {_EXTENSION}")
    if not names:
        return None
    jaas = raw.get(JAAS) or _java_property(environment.get("KAFKA_OPTS", ""), JAAS)
    if not jaas:
        raise ConfigError(
            EXTENSIONS,
            names[0],
            f"The users' file is missing. Set {BASIC_FILE}, or {JAAS} here or in KAFKA_OPTS as for Kafka Connect",
        )
    return jaas_users_file(Path(jaas))


def jaas_users_file(path: Path) -> str:
    """Return the ``file`` option of the section ``KafkaConnect`` in a JAAS file. Raises ConfigError."""
    try:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    except OSError as error:
        raise ConfigError(JAAS, path, f"Cannot read the file: {error.strerror}") from error
    section = re.search(rf"\b{_SECTION}\s*\{{(.*?)\}}", text, re.DOTALL)
    module = re.search(rf"[\w.]*{_LOGIN_MODULE}\s+\w+\s*([^;]*);", section.group(1)) if section else None
    options = re.search(r'\bfile\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;]+)', module.group(1)) if module else None
    if options is None:
        raise ConfigError(JAAS, path, f"The file has no section {_SECTION} with a {_LOGIN_MODULE} and its option file")
    found = options.group(1)
    return re.sub(r"\\(.)", r"\1", found[1:-1]) if found.startswith('"') else found


def _java_property(options: str, name: str) -> str | None:
    flag = f"-D{name}="
    try:
        words = shlex.split(options)
    except ValueError:
        words = options.split()
    return next((word[len(flag) :] for word in words if word.startswith(flag)), None)
