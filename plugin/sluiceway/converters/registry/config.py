"""Declares and parses the options that all Schema Registry converters have, with Confluent's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import Password
from sluiceway.config.validators import OneOf, Range
from sluiceway.errors import ConfigError

URL = "schema.registry.url"
AUTO_REGISTER = "auto.register.schemas"
USE_LATEST = "use.latest.version"
USE_ID = "use.schema.id"
KEEP_NULLS = "ignore.default.for.nullables"
NORMALIZE = "normalize.schemas"
STRICT = "latest.compatibility.strict"
CREDENTIALS_SOURCE = "basic.auth.credentials.source"
USER_INFO = "basic.auth.user.info"
CACHE = "schemas.cache.config"
_PREFIX = "schema.registry."
_TRUSTSTORE = "schema.registry.ssl.truststore"
_KEYSTORE = "schema.registry.ssl.keystore"
_KEY_PASSWORD = "schema.registry.ssl.key.password"  # noqa: S105 (an option's name)
_TOKEN = "bearer.auth.token"  # noqa: S105 (an option's name)

TOPIC_NAME = "TopicNameStrategy"
RECORD_NAME = "RecordNameStrategy"
TOPIC_RECORD_NAME = "TopicRecordNameStrategy"
_STRATEGIES = (TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME)


def _strategy(name: str, value: ConfigValue) -> None:
    if str(value).rpartition(".")[2] not in _STRATEGIES:
        raise ConfigError(name, value, f"Class must be one of: {', '.join(_STRATEGIES)}")


def _pem(name: str, value: ConfigValue) -> None:
    if value is not None and str(value).upper() != "PEM":
        raise ConfigError(name, value, "Only PEM files are supported; convert the store with keytool and openssl")


def _static_token(name: str, value: ConfigValue) -> None:
    if value is not None and value != "STATIC_TOKEN":
        raise ConfigError(name, value, "Only STATIC_TOKEN is supported")


def _key(
    name: str,
    kind: Type,
    default: ConfigValue,
    importance: Importance,
    doc: str,
    validator: Callable[[str, ConfigValue], None] | None = None,
) -> ConfigKey:
    return ConfigKey(name=name, type=kind, default=default, importance=importance, doc=doc, validator=validator)


def flag(name: str, default: bool, doc: str, importance: Importance = Importance.MEDIUM) -> ConfigKey:
    """Return a boolean key."""
    return _key(name, Type.BOOLEAN, default, importance, doc)


_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW

COMMON = ConfigDef(
    [
        ConfigKey(
            name=URL,
            type=Type.LIST,
            importance=_HIGH,
            doc="Comma-separated URLs of the Schema Registry, tried in this order.",
        ),
        flag(AUTO_REGISTER, True, "Whether schemas that are not in the registry are registered."),
        flag(USE_LATEST, False, "With auto.register.schemas=false: write with the subject's latest schema.", _LOW),
        _key(USE_ID, Type.INT, -1, _LOW, "With auto.register.schemas=false: write with the schema of this id (0 or more)."),
        flag(
            STRICT,
            True,
            "Accepted for compatibility, without effect: writing an Avro record that does not match the latest schema always "
            "fails; JSON and Protobuf records are not compared with it.",
            _LOW,
        ),
        flag(KEEP_NULLS, False, "Whether null of an optional field stays null instead of becoming the field's default.", _LOW),
        flag(NORMALIZE, False, "Whether the registry normalizes schemas before it compares them."),
        _key(
            "key.subject.name.strategy",
            Type.CLASS,
            TOPIC_NAME,
            _MEDIUM,
            "Strategy for the subjects of key schemas: TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy.",
            _strategy,
        ),
        _key(
            "value.subject.name.strategy",
            Type.CLASS,
            TOPIC_NAME,
            _MEDIUM,
            "Strategy for the subjects of value schemas: TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy.",
            _strategy,
        ),
        _key(
            CREDENTIALS_SOURCE,
            Type.STRING,
            "URL",
            _MEDIUM,
            "Source of user and password for HTTP basic authentication: URL (the URL contains them) or USER_INFO.",
            OneOf(("URL", "USER_INFO")),
        ),
        _key(USER_INFO, Type.PASSWORD, None, _MEDIUM, "user:password, with basic.auth.credentials.source=USER_INFO."),
        _key(_PREFIX + USER_INFO, Type.PASSWORD, None, _MEDIUM, "Like basic.auth.user.info, over which it takes precedence."),
        _key("bearer.auth.credentials.source", Type.STRING, None, _MEDIUM, "STATIC_TOKEN, or not set.", _static_token),
        _key(_TOKEN, Type.PASSWORD, None, _MEDIUM, "Token, with bearer.auth.credentials.source=STATIC_TOKEN."),
        _key("bearer.auth.logical.cluster", Type.STRING, "", _LOW, "Logical cluster of the registry, sent with the token."),
        _key(_TRUSTSTORE + ".location", Type.STRING, None, _HIGH, "PEM file with trusted certificates."),
        _key(_TRUSTSTORE + ".type", Type.STRING, None, _MEDIUM, "PEM.", _pem),
        _key(_KEYSTORE + ".location", Type.STRING, None, _HIGH, "PEM file with the client's certificate and private key."),
        _key(_KEYSTORE + ".type", Type.STRING, None, _MEDIUM, "PEM.", _pem),
        _key(_KEY_PASSWORD, Type.PASSWORD, None, _HIGH, "Password of the private key."),
        _key("proxy.host", Type.STRING, "", _LOW, "Host of an HTTP proxy."),
        _key("proxy.port", Type.INT, -1, _LOW, "Port of the HTTP proxy."),
        _key("max.retries", Type.INT, 3, _LOW, "Maximum number of retries of a request.", Range(0)),
        _key("retries.wait.ms", Type.INT, 1000, _LOW, "Maximum backoff before the first retry, in milliseconds.", Range(0)),
        _key("retries.max.wait.ms", Type.INT, 20000, _LOW, "Maximum backoff before any retry, in milliseconds.", Range(0)),
        _key("http.read.timeout.ms", Type.INT, 60000, _LOW, "Timeout for a response, in milliseconds.", Range(1)),
        _key(CACHE, Type.INT, 1000, _LOW, "Maximum number of cached schemas.", Range(0)),
    ]
)


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """The parsed options. ``client`` is the config of the registry client; it contains secrets, so the repr omits it."""

    client: Mapping[str, object] = field(repr=False)
    strategy: str
    auto_register: bool
    use_latest: bool
    use_id: int | None
    normalize: bool
    cache_size: int

    @property
    def foreign_schema(self) -> bool:
        """True if records are written with a schema from the registry instead of their own."""
        return self.use_latest or self.use_id is not None

    @classmethod
    def of(cls, values: Mapping[str, ConfigValue], *, is_key: bool) -> RegistryOptions:
        """Return the options in the result of ``ConfigDef.parse``. Raises ConfigError for values that exclude each other."""
        registers = bool(values[AUTO_REGISTER])  # takes precedence over the other two, like in Confluent's serializers
        schema_id = int(str(values[USE_ID]))
        by_id = not registers and schema_id >= 0
        return cls(
            client=_client_options(values),
            strategy=str(values["key.subject.name.strategy" if is_key else "value.subject.name.strategy"]).rpartition(".")[2],
            auto_register=registers,
            use_latest=bool(values[USE_LATEST]) and not registers and not by_id,
            use_id=schema_id if by_id else None,
            normalize=bool(values[NORMALIZE]),
            cache_size=max(int(str(values[CACHE])), 1),
        )


def _client_options(values: Mapping[str, ConfigValue]) -> dict[str, object]:
    from_url = values[CREDENTIALS_SOURCE] == "URL"
    options: dict[str, object] = {
        "url": ",".join(_urls(values[URL], keep_user=from_url)),
        "timeout": int(str(values["http.read.timeout.ms"])) / 1000,
        "max.retries": values["max.retries"],
        "retries.wait.ms": values["retries.wait.ms"],
        "retries.max.wait.ms": values["retries.max.wait.ms"],
        "cache.capacity": int(str(values[CACHE])),
    }
    if not from_url:
        options["basic.auth.user.info"] = _user_info(values)
    if values["bearer.auth.credentials.source"] is not None:
        options |= _bearer(values)
    for option, name in (("ssl.ca.location", _TRUSTSTORE), ("ssl.certificate.location", _KEYSTORE)):
        if values[f"{name}.location"] is not None:
            options[option] = values[f"{name}.location"]
    if isinstance(password := values[_KEY_PASSWORD], Password):
        options["ssl.key.password"] = password.value
    if values["proxy.host"]:
        options["proxy"] = f"http://{values['proxy.host']}:{values['proxy.port']}"
    return options


def _urls(value: ConfigValue, *, keep_user: bool) -> list[str]:
    urls = [str(url).rstrip("/") for url in value] if isinstance(value, list) else []
    if not any(urls):
        raise ConfigError(f"{URL} must contain at least one URL.")
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            # the message omits the URL, because it may contain a password
            raise ConfigError(f"{URL} must contain URLs such as http://registry:8081, separated by commas.")
    if keep_user:
        return urls
    return [urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2]).geturl() for url in urls]


def _user_info(values: Mapping[str, ConfigValue]) -> str:
    password = values[_PREFIX + USER_INFO] or values[USER_INFO]
    if not isinstance(password, Password) or ":" not in password.value:
        raise ConfigError(f"{USER_INFO} must be user:password when {CREDENTIALS_SOURCE} is USER_INFO.")
    return password.value


def _bearer(values: Mapping[str, ConfigValue]) -> dict[str, object]:
    token = values[_TOKEN]
    if not isinstance(token, Password):
        raise ConfigError(f"{_TOKEN} must be given when bearer.auth.credentials.source is STATIC_TOKEN.")
    fields = {"bearer.auth.token": token.value, "bearer.auth.logical.cluster": str(values["bearer.auth.logical.cluster"])}
    # confluent-kafka's STATIC_TOKEN requires keys that are optional in Confluent's converters
    return {
        "bearer.auth.credentials.source": "CUSTOM",
        "bearer.auth.custom.provider.function": lambda _config: fields,
        "bearer.auth.custom.provider.config": {},
    }
