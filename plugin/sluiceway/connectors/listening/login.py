"""The logins and certificates of servers that sources listen with."""

from __future__ import annotations

import base64
import hmac
import ssl
from email.message import Message

from sluiceway.errors import ConfigError


def basic_login(user: str, password: str | None) -> tuple[str, str]:
    """Return the scheme and the credentials of basic authentication."""
    return "basic", base64.b64encode(f"{user}:{password}".encode()).decode()


def has_login(headers: Message, scheme: str, credentials: str) -> bool:
    """Return whether a request has these credentials. The time for that does not depend on which."""
    given_scheme, _, given = str(headers.get("Authorization", "")).partition(" ")
    return is_secret(given.strip(), credentials) and given_scheme.lower() == scheme


def is_secret(given: str, secret: str) -> bool:
    """Return whether a text is a secret, in a time that does not depend on how far it is."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode())


def server_context(certificate: tuple[str, str], key: tuple[str, str], password: str | None) -> ssl.SSLContext:
    """Return the context of https with a certificate and a key, each with the name of its config key. Raises ConfigError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate[1], key[1], password or "")  # empty: OpenSSL would ask at a terminal
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(*certificate, f"The certificate and {key[0]} {key[1]} cannot be used: {error}") from error
    return context
