"""The client of nats-py as the connectors need it: TLS that is demanded, and headers as they were sent."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from nats.aio.client import Client

_LINE = b"\r\n"
_VERSION = b"NATS/1.0"


class NoTlsError(ConnectionError):
    """TLS is demanded, and the server has none."""


class NoCertificateError(ConnectionError):
    """The server demands a certificate of the client, which has none."""


class MessageHeaders(dict[str, str]):
    """The headers of a message by name, of which the last one counts if a name is there several times.

    Attributes:
        pairs: all names and values, in their order. A value that is not UTF-8 is bytes.
        status: the number that the server puts before the headers of its own answers, such as 404; empty in other messages.
        description: what the status means.
    """

    pairs: list[tuple[str, str | bytes]]
    status: str = ""
    description: str = ""


def parsed_headers(raw: bytes) -> MessageHeaders:
    """Return the headers of a message (ADR-4 of NATS)."""
    first, _, rest = raw.partition(_LINE)
    found = MessageHeaders()
    code, _, description = first[len(_VERSION) :].strip().partition(b" ")
    found.pairs = []
    for line in rest.split(_LINE):
        name, colon, value = line.partition(b":")
        if not colon:
            continue
        key, value = name.strip().decode("utf-8", "replace"), value.strip()
        found[key] = value.decode("utf-8", "replace")
        try:
            found.pairs.append((key, value.decode()))
        except UnicodeDecodeError:
            found.pairs.append((key, value))
    if code:
        found.status, found.description = code.decode("utf-8", "replace"), description.strip().decode("utf-8", "replace")
        found["Status"] = found.status  # where nats-py looks for it
    return found


@functools.cache
def client_class() -> type[Client]:
    """Return nats-py's client with the changes of this module. Raises MissingToolError without the package."""
    try:
        from nats.aio.client import Client
    except ImportError as error:
        raise MissingToolError(
            f"NATS needs a Python package that is not installed ({error}). Run: {install_command('nats')} in the Python "
            "environment of the tasks."
        ) from error
    logging.getLogger("nats").setLevel(logging.CRITICAL)  # the tasks say what matters

    class StrictClient(Client):
        demands_tls = False
        has_certificate = False

        async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
            """Demand TLS before the login is sent: nats-py has TLS only where the server demands it."""
            if initial_connection:
                if info.get("tls_verify") and not self.has_certificate:
                    raise NoCertificateError("it demands a certificate")
                if self.demands_tls and not (info.get("tls_required") or info.get("tls_available")):
                    raise NoTlsError("it has no TLS")
                info["tls_required"] = self.demands_tls or info.get("tls_required", False)
            await super()._process_info(info, initial_connection)

        async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
            """Keep all headers: nats-py has one of each name."""
            return parsed_headers(headers) if headers else None

        def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None) -> Any:
            """Take a subject that is not UTF-8, at which nats-py stops reading."""
            return self.msg_class(
                subject=subject.decode(errors="surrogateescape"),
                reply=reply.decode(errors="surrogateescape"),
                data=data,
                headers=headers,
                _client=self,
                _sid=sid,
            )

    return StrictClient
