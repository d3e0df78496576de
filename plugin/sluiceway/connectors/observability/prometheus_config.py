"""Defines the keys of PrometheusSource, and its options. No I/O."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, NonEmptyString, OneOf, Range
from sluiceway.connectors.https import Tls, stores_of, tls_keys
from sluiceway.errors import ConfigError
from sluiceway.java.regex import JavaRegex, RegexError, compile_java

TARGETS = "targets"
FILES = "file.sd.files"
SD_URL = "http.sd.url"
SD_PREFIX = "http.sd."
SD_INTERVAL_MS = "sd.refresh.interval.ms"
INTERVAL_MS = "scrape.interval.ms"
TIMEOUT_MS = "scrape.timeout.ms"
BODY_LIMIT = "scrape.body.size.limit"
OPENMETRICS = "scrape.openmetrics"
PATH = "metrics.path"
SCHEME = "scheme"
USER = "connection.username"
PASSWORD = "connection.password"  # noqa: S105 (a key's name)
TOKEN = "connection.bearer.token"  # noqa: S105
JOB = "job"
LABELS = "labels."
HONOR_LABELS = "honor.labels"
HONOR_TIMESTAMPS = "honor.timestamps"
INCLUDE = "metric.names.include"
EXCLUDE = "metric.names.exclude"
WITH_HELP = "metric.help"
TOPIC = "topic"
TASK_INDEX = "sluiceway.task.index"
TASK_COUNT = "sluiceway.task.count"

_TARGETS, _SCRAPING, _SECURITY, _RECORDS = "Targets", "Scraping", "Security", "Records"
_MOST = 2**31 - 1
_SCHEMES = ("http", "https")


def _check_regex(name: str, value: ConfigValue) -> None:
    if value:
        try:
            compile_java(str(value))
        except RegexError as error:
            raise ConfigError(name, value, f"is not a regular expression: {error}") from error


def _check_addresses(name: str, value: ConfigValue) -> None:
    for address in value if isinstance(value, list) else []:
        check_url(name, address if "://" in address else f"http://{address}")


def _check_sd_url(name: str, value: ConfigValue) -> None:
    if value:
        check_url(name, str(value))


def check_url(name: str, url: str) -> None:
    """Raise ConfigError unless a URL has a host, and no login. The error shows none."""
    if "@" in url:
        raise ConfigError(name, None, f"must not have a login: set {USER} and {PASSWORD}, or {TOKEN}")
    try:
        parts = urlsplit(url)
        known = parts.scheme in _SCHEMES and bool(parts.hostname) and (parts.port or True)
    except ValueError:
        known = False
    if not known or any(each.isspace() or not each.isprintable() for each in url):
        raise ConfigError(name, url, "must be a host with a port, such as shop:8000, or a URL, such as https://shop/metrics")


_text = functools.partial(ConfigKey, type=Type.STRING, importance=Importance.MEDIUM)
_secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM, group=_SECURITY)
_flag = functools.partial(ConfigKey, type=Type.BOOLEAN, importance=Importance.LOW)
_list = functools.partial(ConfigKey, type=Type.LIST, default=[], importance=Importance.HIGH, group=_TARGETS)
_number = functools.partial(ConfigKey, type=Type.LONG, importance=Importance.MEDIUM, group=_SCRAPING)


def _login(prefix: str, what: str) -> list[ConfigKey]:
    return [
        _text(name=f"{prefix}username", default=None, group=_SECURITY, doc=f"The user, with basic authentication, {what}."),
        _secret(name=f"{prefix}password", doc=f"The password of {prefix}username."),
        _secret(name=f"{prefix}bearer.token", doc=f"The token, with bearer authentication, {what}."),
    ]


PROMETHEUS = ConfigDef(
    [
        _list(
            name=TARGETS,
            validator=Check(_check_addresses, "hosts with ports, or URLs"),
            doc="What to scrape: hosts with ports, such as shop:8000, or URLs, such as https://shop/metrics.",
        ),
        _list(
            name=FILES,
            doc="Files of targets in the JSON or YAML of Prometheus's file_sd_config. * and ? in a name match any. "
            "Each task reads them.",
        ),
        _text(
            name=SD_URL,
            default=None,
            importance=Importance.HIGH,
            group=_TARGETS,
            validator=Check(_check_sd_url, "URL"),
            doc="A URL that returns targets in the JSON of Prometheus's http_sd_config. Each task asks it.",
        ),
        _number(
            name=SD_INTERVAL_MS,
            default=30_000,
            validator=Range(100, _MOST),
            group=_TARGETS,
            doc="Milliseconds between two readings of the files and the URL of targets.",
        ),
        _text(
            name=SCHEME,
            default="http",
            group=_TARGETS,
            validator=OneOf(_SCHEMES),
            doc="http or https, for targets without a URL.",
        ),
        _text(
            name=PATH,
            default="/metrics",
            group=_TARGETS,
            validator=NonEmptyString(),
            doc="The path of targets without one, with a query if it needs one.",
        ),
        _number(
            name=INTERVAL_MS, default=15_000, validator=Range(100, _MOST), doc="Milliseconds between two scrapes of a target."
        ),
        _number(
            name=TIMEOUT_MS,
            default=10_000,
            validator=Range(10, _MOST),
            doc=f"Milliseconds after which a scrape has failed. At most {INTERVAL_MS}.",
        ),
        _number(
            name=BODY_LIMIT,
            default=64 * 1024 * 1024,
            validator=Range(1, _MOST),
            doc="The most bytes of an answer, unpacked. A scrape with more has failed.",
        ),
        _flag(
            name=OPENMETRICS,
            default=True,
            group=_SCRAPING,
            doc="Whether to ask targets for OpenMetrics, which has units, start times, and exemplars. "
            "Otherwise they are asked for the text format.",
        ),
        *_login("connection.", "for targets"),
        *_login(SD_PREFIX, f"for {SD_URL}"),
        *tls_keys("", _SECURITY),
        _text(
            name=TOPIC, importance=Importance.HIGH, group=_RECORDS, validator=NonEmptyString(), doc="The topic of the records."
        ),
        _text(name=JOB, default=None, group=_RECORDS, doc="The label job of all series. By default the connector's name."),
        _flag(
            name=HONOR_LABELS,
            default=False,
            group=_RECORDS,
            doc="Whether a label that a target exposes wins over the target's own of the same name. "
            "Otherwise the exposed one is renamed: exported_job.",
        ),
        _flag(
            name=HONOR_TIMESTAMPS,
            default=True,
            group=_RECORDS,
            doc="Whether the times that a target exposes are used. Series with such times get no staleness markers.",
        ),
        _text(
            name=INCLUDE,
            default="",
            group=_RECORDS,
            validator=Check(_check_regex, "regular expression"),
            doc="A regular expression. Only metrics whose whole name matches are read; empty: all.",
        ),
        _text(
            name=EXCLUDE,
            default="",
            group=_RECORDS,
            validator=Check(_check_regex, "regular expression"),
            doc="A regular expression. Metrics whose whole name matches are left out.",
        ),
        _flag(name=WITH_HELP, default=False, group=_RECORDS, doc="Whether each record has the help text of its metric."),
        ConfigKey(name=TASK_INDEX, type=Type.INT, default=0, importance=Importance.LOW, internal=True, doc="The task's number."),
        ConfigKey(name=TASK_COUNT, type=Type.INT, default=1, importance=Importance.LOW, internal=True, doc="How many tasks run."),
    ]
)


@dataclass(frozen=True, slots=True)
class Login:
    """The credentials of requests. The repr shows no secret."""

    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """The values of a config. ``interval`` is in milliseconds, the other times are in seconds."""

    topic: str
    targets: tuple[str, ...]
    files: tuple[str, ...]
    sd_url: str | None
    sd_interval: float
    scheme: str
    path: str
    interval: int
    timeout: float
    body_limit: int
    openmetrics: bool
    login: Login
    sd_login: Login
    tls: Tls
    labels: Mapping[str, str]
    """The labels of all targets, with ``job``."""
    honor_labels: bool
    honor_timestamps: bool
    include: JavaRegex | None
    exclude: JavaRegex | None
    with_help: bool
    index: int = 0
    count: int = 1

    def keeps(self, name: str) -> bool:
        """Return whether metrics with this name are read."""
        if self.include is not None and not self.include.matches(name):
            return False
        return self.exclude is None or not self.exclude.matches(name)


def prometheus_options(config: Mapping[str, str]) -> PrometheusOptions:
    """Return the options of a config. Raises ConfigError."""
    values = PROMETHEUS.parse(config)
    for name, message in prometheus_conflicts(values, config).items():
        raise ConfigError(name, None, message)
    labels = {key.removeprefix(LABELS): value for key, value in config.items() if key.startswith(LABELS)}
    job = values[JOB] or config.get("name") or "sluiceway"
    tls = stores_of(values, "")
    return PrometheusOptions(
        topic=str(values[TOPIC]),
        targets=_items(values[TARGETS]),
        files=_items(values[FILES]),
        sd_url=revealed(values[SD_URL]) or None,
        sd_interval=_whole(values, SD_INTERVAL_MS) / 1000,
        scheme=str(values[SCHEME]),
        path=str(values[PATH]),
        interval=_whole(values, INTERVAL_MS),
        timeout=_whole(values, TIMEOUT_MS) / 1000,
        body_limit=_whole(values, BODY_LIMIT),
        openmetrics=bool(values[OPENMETRICS]),
        login=_login_of(values, "connection."),
        sd_login=_login_of(values, SD_PREFIX),
        tls=Tls(tls),
        labels={"job": str(job), **labels},
        honor_labels=bool(values[HONOR_LABELS]),
        honor_timestamps=bool(values[HONOR_TIMESTAMPS]),
        include=_regex(values[INCLUDE]),
        exclude=_regex(values[EXCLUDE]),
        with_help=bool(values[WITH_HELP]),
        index=_whole(values, TASK_INDEX),
        count=_whole(values, TASK_COUNT),
    )


def prometheus_conflicts(values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    problems: dict[str, str] = {}
    if not (values[TARGETS] or values[FILES] or values[SD_URL]):
        problems[TARGETS] = f"nothing to scrape: set {TARGETS}, {FILES}, or {SD_URL}"
    if _whole(values, TIMEOUT_MS) > _whole(values, INTERVAL_MS):
        problems[TIMEOUT_MS] = f"must be at most {INTERVAL_MS}, which is {_whole(values, INTERVAL_MS)}"
    for prefix in ("connection.", SD_PREFIX):
        user, password, token = (values[f"{prefix}{name}"] for name in ("username", "password", "bearer.token"))
        if (user is None) != (password is None):
            problems[f"{prefix}{'username' if user is None else 'password'}"] = (
                f"{prefix}username and {prefix}password are a login together: set both, or neither"
            )
        elif user is not None and token is not None:
            problems[f"{prefix}bearer.token"] = f"cannot be combined with {prefix}username"
    names = [key.removeprefix(LABELS) for key in config if key.startswith(LABELS)]
    bad = [name for name in names if not _is_label(name)]
    if bad:
        problems[JOB] = f"{LABELS}{bad[0]} is no name of a label: use letters, digits, and _, and no __ at the start"
    return problems


def _is_label(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not name.startswith("__")


def _login_of(values: Mapping[str, ConfigValue], prefix: str) -> Login:
    return Login(*(revealed(values[f"{prefix}{name}"]) for name in ("username", "password", "bearer.token")))


def _regex(value: ConfigValue) -> JavaRegex | None:
    return compile_java(str(value)) if value else None


def _items(value: ConfigValue) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else ()


def _whole(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)  # noqa: S101 (parsed as such)
    return value
