"""The keys of connections to HTTP servers, which the sink and the source share, and their values."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, EnumText, NonEmptyString, OrNull
from sluiceway.connectors.https import Tls, stores_of, tls_keys
from sluiceway.connectors.keys import secret, text, whole
from sluiceway.errors import ConfigError

AUTHORIZATION, STATIC = "http.authorization.type", "http.headers.authorization"
USER, PASSWORD, TOKEN = "http.auth.user", "http.auth.password", "http.auth.token"
API_KEY, API_KEY_HEADER = "http.api.key", "http.api.key.header"
TOKEN_URL, CLIENT_ID, CLIENT_SECRET = "oauth2.access.token.url", "oauth2.client.id", "oauth2.client.secret"
CLIENT_MODE, SCOPE, TOKEN_PROPERTY = "oauth2.client.authorization.mode", "oauth2.client.scope", "oauth2.response.token.property"
SECRET_HEADERS, PROXY, TIMEOUT = "http.headers.secret", "http.proxy.url", "http.timeout"
TLS_PREFIX = "http."
TRUST = f"{TLS_PREFIX}ssl.truststore.location"
CONNECTION, SECURITY = "Connection", "Security"

_NEEDS = {
    "static": (STATIC,),
    "basic": (USER, PASSWORD),
    "bearer": (TOKEN,),
    "api-key": (API_KEY,),
    "oauth2": (TOKEN_URL, CLIENT_ID, CLIENT_SECRET),
}
"""The keys that each kind of authorization needs, and no other has."""
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


def check_url(name: str, value: ConfigValue) -> None:
    """Refuse what is no URL of HTTP, and one with a login. Its host must not depend on a record."""
    url = str(value)
    told = None if "@" in url else shown_url(url)  # it may be a password
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or re.search(r"\s", url.strip()):
        raise ConfigError(name, told, "needs a URL such as https://api.example.com/items")
    if "@" in parts.netloc:
        raise ConfigError(name, None, f"must not have a login: set {AUTHORIZATION}=basic, {USER}, and {PASSWORD}")
    if "$" in parts.netloc:
        raise ConfigError(name, told, "must not have a placeholder in its host: credentials are for one host")


def shown_url(url: str) -> str:
    """Return a URL for logs and errors: without a login, and without the query's values, which may be secrets."""
    begin, separator, query = url.partition("?")
    scheme, marker, rest = begin.partition("://")
    host, slash, path = rest.partition("/")
    begin = f"{scheme}{marker}{host.rpartition('@')[2]}{slash}{path}"
    names = "&".join(f"{each.partition('=')[0]}=..." for each in query.split("&")) if query else ""
    return f"{begin}{separator}{names}"


def origin_of(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host, and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def header_pairs(items: Sequence[str]) -> list[tuple[str, str]]:
    """Return ``name:value`` items as headers. Raises ValueError, whose text has no value."""
    pairs: list[tuple[str, str]] = []
    for item in items:
        name, colon, value = (each.strip() for each in item.partition(":"))
        if not colon or not _HEADER_NAME.fullmatch(name):
            raise ValueError("must be headers in the form name:value, separated by commas")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"must not have {name}, which belongs to the connection")
        if not value.isprintable():
            raise ValueError(f"has a value of {name} with control characters")
        if name.lower() in (each.lower() for each, _value in pairs):
            raise ValueError(f"has {name} twice")
        pairs.append((name, value))
    return pairs


def check_headers(name: str, value: ConfigValue) -> None:
    """Refuse what are no headers, without showing secret ones."""
    try:
        header_pairs(value if isinstance(value, list) else _items(revealed(value)))
    except ValueError as error:
        raise ConfigError(name, None, str(error)) from None


def _items(value: str | None) -> list[str]:
    return [each for each in (value or "").split(",") if each.strip()]


def connection_keys() -> list[ConfigKey]:
    """Return the keys of a connection."""
    return [
        text(
            name=AUTHORIZATION,
            default="none",
            validator=EnumText("none", *_NEEDS),
            importance=Importance.HIGH,
            group=SECURITY,
            doc=f"none; static: the Authorization header of {STATIC}; basic: a user and a password; bearer: a token; api-key: a "
            "header with a key; oauth2: client credentials, whose token is renewed before it expires and after an answer of 401.",
        ),
        secret(name=STATIC, group=SECURITY, doc="The whole Authorization header, for static."),
        text(name=USER, default=None, validator=OrNull(NonEmptyString()), group=SECURITY, doc="The user, for basic."),
        secret(name=PASSWORD, group=SECURITY, doc="The user's password, for basic."),
        secret(name=TOKEN, group=SECURITY, doc="The token, for bearer."),
        secret(name=API_KEY, group=SECURITY, doc="The key, for api-key."),
        text(
            name=API_KEY_HEADER,
            default="X-API-Key",
            validator=Check(check_header_name, "the name of a header"),
            group=SECURITY,
            doc="The header that has the key, for api-key.",
        ),
        text(name=TOKEN_URL, default=None, validator=OrNull(Check(check_url, "a URL")), group=SECURITY, doc="Gives tokens."),
        text(name=CLIENT_ID, default=None, validator=OrNull(NonEmptyString()), group=SECURITY, doc="The client's id."),
        secret(name=CLIENT_SECRET, group=SECURITY, doc="The client's secret."),
        text(
            name=CLIENT_MODE,
            default="HEADER",
            validator=EnumText("HEADER", "URL"),
            importance=Importance.LOW,
            group=SECURITY,
            doc="How the client's id and secret are sent: HEADER by basic authentication, URL as fields of the form.",
        ),
        text(name=SCOPE, default=None, importance=Importance.LOW, group=SECURITY, doc="The scope to ask for."),
        text(
            name=TOKEN_PROPERTY,
            default="access_token",
            validator=NonEmptyString(),
            importance=Importance.LOW,
            group=SECURITY,
            doc="The field of the answer that has the token.",
        ),
        secret(
            name=SECRET_HEADERS,
            validator=OrNull(Check(check_headers, "headers")),
            group=SECURITY,
            doc="Headers of all requests whose values must not be shown, in the form name:value, separated by commas.",
        ),
        secret(
            name=PROXY,
            validator=OrNull(Check(_check_proxy, "the URL of a proxy")),
            group=CONNECTION,
            doc="The proxy to connect by, such as http://user:password@proxy:3128.",
        ),
        whole(TIMEOUT, 30, 1, CONNECTION, "Seconds to wait for a connection, and for data of an answer."),
        *tls_keys(TLS_PREFIX, SECURITY),
    ]


def check_header_name(name: str, value: ConfigValue) -> None:
    """Refuse what is no name of a header, or that of one of the connection."""
    if not _HEADER_NAME.fullmatch(str(value)) or str(value).lower() in _OWN_HEADERS:
        raise ConfigError(name, value, "cannot be the name of a header")


def _check_proxy(name: str, value: ConfigValue) -> None:
    try:
        parts = urlsplit(revealed(value) or "")
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise ConfigError(name, None, "needs the URL of a proxy, such as http://proxy:3128")


class OAuth2(NamedTuple):
    """The client credentials. The repr shows no secret."""

    url: str
    client_id: str
    client_secret: str
    in_header: bool
    scope: str | None
    token_property: str

    def __repr__(self) -> str:
        return f"OAuth2({shown_url(self.url)}, {self.client_id})"


@dataclass(frozen=True, slots=True)
class Server:
    """The form of a connection. ``headers`` has those that log in, and other secret ones. ``timeout`` is in seconds."""

    url_key: str
    authorization: str = "none"
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    oauth2: OAuth2 | None = None
    proxy: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    tls: Tls = field(default_factory=Tls, repr=False)

    @property
    def login_key(self) -> str:
        """The config key to look at when the login is refused."""
        return _NEEDS.get(self.authorization, (AUTHORIZATION,))[-1]


def connection_conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys of a connection that conflict, by the key to change."""
    kind = str(values[AUTHORIZATION]).lower()
    problems = {key: f"is needed with {AUTHORIZATION}={kind}" for key in _NEEDS.get(kind, ()) if values[key] is None}
    for other, keys in _NEEDS.items():
        for key in keys:
            if other != kind and values[key] is not None:
                problems[key] = f"is for {AUTHORIZATION}={other}, and that is {kind}"
    if kind == "basic" and ":" in str(values[USER]):
        problems[USER] = "must not have a colon"
    for key in (STATIC, PASSWORD, TOKEN, API_KEY):
        if not (revealed(values[key]) or "").isprintable():
            problems[key] = "must not have line breaks or other control characters"
    return problems


def server_of(values: Mapping[str, ConfigValue], url_key: str) -> Server:
    """Return the connection of parsed values. ``url_key`` names the key of the URL, for errors."""
    kind = str(values[AUTHORIZATION]).lower()
    headers = header_pairs(_items(revealed(values[SECRET_HEADERS])))
    scope = values[SCOPE]
    if kind == "static":
        headers.append(("Authorization", revealed(values[STATIC]) or ""))
    elif kind == "basic":
        login = f"{values[USER]}:{revealed(values[PASSWORD])}".encode()
        headers.append(("Authorization", f"Basic {base64.b64encode(login).decode()}"))
    elif kind == "bearer":
        headers.append(("Authorization", f"Bearer {revealed(values[TOKEN])}"))
    elif kind == "api-key":
        headers.append((str(values[API_KEY_HEADER]), revealed(values[API_KEY]) or ""))
    return Server(
        url_key=url_key,
        authorization=kind,
        headers=headers,
        oauth2=None
        if kind != "oauth2"
        else OAuth2(
            str(values[TOKEN_URL]),
            str(values[CLIENT_ID]),
            revealed(values[CLIENT_SECRET]) or "",
            str(values[CLIENT_MODE]).upper() == "HEADER",
            None if scope is None else str(scope),
            str(values[TOKEN_PROPERTY]),
        ),
        proxy=revealed(values[PROXY]),
        timeout=float(str(values[TIMEOUT])),
        tls=Tls(stores_of(values, TLS_PREFIX), TLS_PREFIX),
    )
