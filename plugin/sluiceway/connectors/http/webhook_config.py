"""Defines the keys of WebhookSource, and its options. No I/O."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, EnumText, NonEmptyList, OneOf, OrNull
from sluiceway.connectors.http.connection import check_header_name
from sluiceway.connectors.http.pointers import PLACEHOLDER, check_pointer
from sluiceway.connectors.http.signatures import ALGORITHMS, BASIC, DEFAULT_HEADERS, NONE, SIGNED, Guard
from sluiceway.connectors.listening.keys import TOPIC, Listening, listening_keys, listening_of, number, secret, text, whole
from sluiceway.connectors.listening.login import basic_login, server_context
from sluiceway.errors import ConfigError

PREFIX, REQUESTS = "webhook.", "requests"
PORT, BUFFER = "webhook.port", "webhook.buffer.requests"
PATHS, VALUES, STATUS, BODY_BYTES = "webhook.paths", "webhook.values", "webhook.status", "webhook.max.body.bytes"
TIMEOUT, HEADERS = "webhook.acknowledge.timeout.ms", "webhook.headers"
KEY_POINTER, KEY_HEADER, ID_HEADER, IDS = "webhook.key.pointer", "webhook.key.header", "webhook.id.header", "webhook.ids.kept"
AUTHORIZATION, USER, PASSWORD = "webhook.authorization", "webhook.username", "webhook.password"
SECRET, PREVIOUS, SECRET_HEADER = "webhook.secret", "webhook.secret.previous", "webhook.secret.header"
ALGORITHM, ENCODING = "webhook.signature.algorithm", "webhook.signature.encoding"
SIGNATURE_PREFIX, TOLERANCE = "webhook.signature.prefix", "webhook.signature.tolerance.ms"
CERTIFICATE, KEY = "webhook.ssl.certificate.location", "webhook.ssl.key.location"
KEY_PASSWORD = "webhook.ssl.key.password"  # noqa: S105 (a key's name)
PATH_PLACEHOLDER = "${path}"

_SECURITY, _RECORDS, _DELIVERY = "Security", "Records", "Delivery"
_SECRET_NAMES = frozenset({"authorization", "cookie", "proxy-authorization"})
_PATH = re.compile(r"/[A-Za-z0-9._~/-]*")
_MEBIBYTE = 1024 * 1024


def _check_paths(name: str, value: ConfigValue) -> None:
    NonEmptyList()(name, value)
    for each in value if isinstance(value, list) else []:
        if not _PATH.fullmatch(each) or ".." in each or "//" in each:
            raise ConfigError(name, each, "must be a path such as /webhook, of ASCII letters, digits, and . _ ~ - /")


def _check_names(name: str, value: ConfigValue) -> None:
    for each in value if isinstance(value, list) else []:
        check_header_name(name, each)
        if each.lower() in _SECRET_NAMES:
            raise ConfigError(name, each, "has secrets, and cannot be a header of records")


CONFIG = ConfigDef(
    [
        *listening_keys(PREFIX, 8090, REQUESTS, "clients are asked to send again: HTTP 503 with Retry-After"),
        ConfigKey(
            name=PATHS,
            type=Type.LIST,
            default="/webhook",
            validator=Check(_check_paths, "paths"),
            importance=Importance.HIGH,
            group="Listening",
            doc=f"The paths that requests are sent to; others are answered with 404. {PATH_PLACEHOLDER} in the topic is the "
            "path, with a dot for each slash within it.",
        ),
        number(BODY_BYTES, _MEBIBYTE, 1, "Listening", "The most bytes of a request, packed and unpacked: else HTTP 413."),
        text(
            name=AUTHORIZATION,
            default=NONE,
            validator=EnumText(NONE, BASIC, "secret", *SIGNED),
            importance=Importance.HIGH,
            group=_SECURITY,
            doc="How clients show who they are: basic by a user and a password, secret by a header with the secret, github by "
            "X-Hub-Signature-256, stripe by Stripe-Signature with a time, hmac by a signature of the body in any header.",
        ),
        text(name=USER, default=None, group=_SECURITY, doc="The user, for basic."),
        secret(name=PASSWORD, group=_SECURITY, doc="The user's password, for basic."),
        secret(name=SECRET, group=_SECURITY, doc="The secret, for secret and for signatures."),
        secret(name=PREVIOUS, group=_SECURITY, doc="Another secret that is taken, too, while clients change to the new one."),
        text(
            name=SECRET_HEADER,
            default=None,
            validator=OrNull(Check(check_header_name, "the name of a header")),
            group=_SECURITY,
            doc="The header with the secret or the signature. By default X-Webhook-Secret, X-Hub-Signature-256, "
            "Stripe-Signature, or X-Signature.",
        ),
        text(
            name=ALGORITHM,
            default="sha256",
            validator=OneOf(ALGORITHMS),
            importance=Importance.LOW,
            group=_SECURITY,
            doc="The hash of the signature, for hmac.",
        ),
        text(
            name=ENCODING,
            default="hex",
            validator=EnumText("hex", "base64"),
            importance=Importance.LOW,
            group=_SECURITY,
            doc="The form of the signature, for hmac.",
        ),
        text(
            name=SIGNATURE_PREFIX,
            default="",
            importance=Importance.LOW,
            group=_SECURITY,
            doc="What comes before the signature in its header, such as sha256=, for hmac.",
        ),
        number(TOLERANCE, 300_000, 1, _SECURITY, "The most milliseconds between a signature's time and now, for stripe."),
        text(
            name=CERTIFICATE,
            default=None,
            group=_SECURITY,
            doc="A PEM file of the certificate, and its chain, for https. By default http, which shows secrets to the network.",
        ),
        text(name=KEY, default=None, group=_SECURITY, doc=f"A PEM file of the key of {CERTIFICATE}."),
        secret(name=KEY_PASSWORD, group=_SECURITY, doc=f"The password of {KEY}, if it has one."),
        text(
            name=VALUES,
            default="json",
            validator=EnumText("json", "string", "bytes"),
            group=_RECORDS,
            doc="The form of values: json is data without a schema, string text, bytes the body as it is. A body that is no JSON "
            "or no UTF-8 is answered with 400.",
        ),
        text(
            name=KEY_POINTER,
            default=None,
            validator=OrNull(Check(check_pointer, "a JSON pointer")),
            group=_RECORDS,
            doc="The JSON pointer to the record's key in the body, such as /repository/id.",
        ),
        text(
            name=KEY_HEADER,
            default=None,
            validator=OrNull(Check(check_header_name, "the name of a header")),
            group=_RECORDS,
            doc="The header that has the record's key.",
        ),
        ConfigKey(
            name=HEADERS,
            type=Type.LIST,
            default="",
            validator=Check(_check_names, "names of headers"),
            importance=Importance.MEDIUM,
            group=_RECORDS,
            doc="The headers of requests that records have, such as X-GitHub-Event. None that has a secret can be one.",
        ),
        text(
            name=ID_HEADER,
            default=None,
            validator=OrNull(Check(check_header_name, "the name of a header")),
            group=_DELIVERY,
            doc="The header with the id of a delivery, such as X-GitHub-Delivery. One whose record Kafka has is answered with "
            "success, and not produced again, as long as the task remembers its id.",
        ),
        number(IDS, 10_000, 1, _DELIVERY, "The ids that are remembered. A task that starts knows none."),
        number(
            TIMEOUT,
            8_000,
            1,
            _DELIVERY,
            "Milliseconds that a request waits for Kafka. Then the answer is HTTP 503. Set it below the client's own timeout.",
        ),
        number(STATUS, 200, 200, _DELIVERY, "The status of success, such as 202.", 204),
    ]
)


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """The values of a config. ``timeout`` is in seconds; ``topics`` has the topic of each path."""

    listening: Listening
    topics: Mapping[str, str]
    body_bytes: int
    values: str
    key_pointer: str | None
    key_header: str | None
    headers: Sequence[str]
    id_header: str | None
    ids: int
    timeout: float
    status: int
    guard: Guard = field(repr=False)
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)

    def tls(self) -> ssl.SSLContext | None:
        """Return the context of https; None for http. Reads the files. Raises ConfigError."""
        if self.certificate is None or self.key is None:
            return None
        return server_context((CERTIFICATE, self.certificate), (KEY, self.key), self.key_password)


def webhook_options(config: Mapping[str, str]) -> WebhookOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    listening, headers = listening_of(values, PREFIX, REQUESTS), values[HEADERS]
    paths = values[PATHS]
    return WebhookOptions(
        listening=listening,
        topics={path: topic_of(listening.topic, path) for path in (paths if isinstance(paths, list) else [])},
        body_bytes=whole(values, BODY_BYTES),
        values=str(values[VALUES]).lower(),
        key_pointer=revealed(values[KEY_POINTER]),
        key_header=revealed(values[KEY_HEADER]),
        headers=headers if isinstance(headers, list) else [],
        id_header=revealed(values[ID_HEADER]),
        ids=whole(values, IDS),
        timeout=whole(values, TIMEOUT) / 1000,
        status=whole(values, STATUS),
        guard=_guard(values),
        certificate=revealed(values[CERTIFICATE]),
        key=revealed(values[KEY]),
        key_password=revealed(values[KEY_PASSWORD]),
    )


def topic_of(template: str, path: str) -> str:
    """Return the topic of a path."""
    return template.replace(PATH_PLACEHOLDER, path.strip("/").replace("/", ".").replace("~", "_"))


def _guard(values: Mapping[str, ConfigValue]) -> Guard:
    kind = str(values[AUTHORIZATION]).lower()
    secrets = [found for name in (SECRET, PREVIOUS) if (found := revealed(values[name])) is not None]
    is_own = kind == "hmac"
    return Guard(
        kind=kind,
        secrets=secrets,
        header=_secret_header(values),
        login=basic_login(str(values[USER]), revealed(values[PASSWORD])) if kind == BASIC else None,
        algorithm=str(values[ALGORITHM]) if is_own else "sha256",
        in_base64=is_own and str(values[ENCODING]).lower() == "base64",
        prefix=str(values[SIGNATURE_PREFIX] or "") if is_own else "sha256=",
        tolerance=whole(values, TOLERANCE) / 1000,
    )


def _secret_header(values: Mapping[str, ConfigValue]) -> str:
    return str(values[SECRET_HEADER] or DEFAULT_HEADERS.get(str(values[AUTHORIZATION]).lower(), ""))


def webhook_conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    kind, problems = str(values[AUTHORIZATION]).lower(), {}
    for name in (USER, PASSWORD):
        if (values[name] is not None) != (kind == BASIC):
            problems[name] = f"{'is needed' if kind == BASIC else 'cannot be set'} with {AUTHORIZATION}={kind}"
    needs_secret = kind not in (NONE, BASIC)
    if (values[SECRET] is not None) != needs_secret:
        problems[SECRET] = f"{'is needed' if needs_secret else 'cannot be set'} with {AUTHORIZATION}={kind}"
    for name in (SECRET, PREVIOUS):
        if values[name] is not None and not revealed(values[name]):
            problems[name] = "must not be empty, or anybody could sign"
    if values[PREVIOUS] is not None and values[SECRET] is None:
        problems[PREVIOUS] = f"needs {SECRET}"
    if ":" in str(values[USER]):
        problems[USER] = "must not have a colon"
    if (values[CERTIFICATE] is None) != (values[KEY] is None):
        missing, given = (CERTIFICATE, KEY) if values[CERTIFICATE] is None else (KEY, CERTIFICATE)
        problems[missing] = f"is needed with {given}"
    if values[STATUS] == 203:
        problems[STATUS] = "must be 200, 201, 202, or 204"
    return problems | _record_problems(values)


def _record_problems(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    problems, headers, kept_secret = {}, values[HEADERS], _secret_header(values).lower()
    if values[KEY_POINTER] is not None and values[KEY_HEADER] is not None:
        problems[KEY_HEADER] = f"cannot be set together with {KEY_POINTER}: a record has one key"
    if values[KEY_POINTER] is not None and str(values[VALUES]).lower() != "json":
        problems[KEY_POINTER] = f"needs {VALUES}=json"
    for name, given in ((HEADERS, headers if isinstance(headers, list) else []), (KEY_HEADER, [str(values[KEY_HEADER])])):
        if kept_secret and kept_secret in (each.lower() for each in given):
            problems[name] = f"cannot have {_secret_header(values)}, which shows who may send"
    if set(PLACEHOLDER.findall(str(values[TOPIC]))) - {"path"}:
        problems[TOPIC] = f"may have {PATH_PLACEHOLDER} only"
    paths = values[PATHS]
    for path in paths if isinstance(paths, list) else []:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic_of(str(values[TOPIC]), path)) and TOPIC not in problems:
            problems[TOPIC] = f"is no topic for the path {path}"
    return problems
