"""Checks who has sent a request: by a login, a secret, or a signature of its body. No I/O."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from email.message import Message

from sluiceway.connectors.listening.login import has_login, is_secret

NONE, BASIC, SECRET, GITHUB, STRIPE, HMAC = "none", "basic", "secret", "github", "stripe", "hmac"
SIGNED = (GITHUB, STRIPE, HMAC)
ALGORITHMS = ("sha1", "sha256", "sha512")
DEFAULT_HEADERS = {SECRET: "X-Webhook-Secret", GITHUB: "X-Hub-Signature-256", STRIPE: "Stripe-Signature", HMAC: "X-Signature"}


@dataclass(frozen=True, slots=True)
class Guard:
    """The proof that clients must show. ``secrets`` are all that are taken. ``tolerance`` is in seconds."""

    kind: str = NONE
    secrets: Sequence[str] = field(default=(), repr=False)
    header: str = ""
    login: tuple[str, str] | None = field(default=None, repr=False)
    algorithm: str = "sha256"
    in_base64: bool = False
    prefix: str = "sha256="
    tolerance: float = 300.0
    clock: Callable[[], float] = time.time

    @property
    def signs(self) -> bool:
        """Whether the body decides."""
        return self.kind in SIGNED

    def knows(self, headers: Message) -> bool:
        """Return whether the head of a request may be from a client. A signature is checked with the body."""
        if self.kind == BASIC:
            return self.login is not None and has_login(headers, *self.login)
        if self.kind == NONE:
            return True
        given = headers.get_all(self.header, [])
        if len(given) != 1:
            return False
        return self.signs or _any(is_secret(str(given[0]).strip(), each) for each in self.secrets)

    def has_signed(self, headers: Message, body: bytes) -> bool:
        """Return whether the body is one that a client has signed."""
        if not self.signs:
            return True
        given = str(headers.get(self.header, "")).strip()
        if self.kind == STRIPE:
            return self._has_signed_with_time(given, body)
        if not given.startswith(self.prefix):
            return False
        return self._is_signature(given[len(self.prefix) :], body)

    def _has_signed_with_time(self, given: str, body: bytes) -> bool:
        """Check a signature such as ``t=1700000000,v1=5257...``, of the time and the body."""
        parts = [each.strip().partition("=") for each in given.split(",")]
        at = next((value for name, _, value in parts if name == "t"), "")
        if not (at.isascii() and at.isdigit() and len(at) < 16) or abs(self.clock() - int(at)) > self.tolerance:
            return False
        signed = at.encode() + b"." + body
        return _any(self._is_signature(value, signed) for name, _, value in parts if name == "v1")

    def _is_signature(self, given: str, signed: bytes) -> bool:
        digests = [hmac.new(each.encode(), signed, getattr(hashlib, self.algorithm)).digest() for each in self.secrets]
        if self.in_base64:
            return _any(is_secret(given, base64.b64encode(each).decode()) for each in digests)
        return _any(is_secret(given.lower(), each.hex()) for each in digests)


def _any(results: Iterable[bool]) -> bool:
    """Return whether one is true, having looked at all, so that the time does not tell which."""
    return any(list(results))
