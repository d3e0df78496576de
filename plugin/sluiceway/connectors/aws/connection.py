"""The keys of accounts of AWS, and the base of the connectors."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, NonEmptyString, OrNull
from sluiceway.connectors.aws.client import opened
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.keys import text, whole
from sluiceway.errors import ConfigError

ACCESS_KEY, SECRET_KEY, TOKEN = "aws.access.key.id", "aws.secret.access.key", "aws.session.token"
SECRET_KEY_OF_JAVA = "aws.secret.key.id"  # noqa: S105 (the name of a key)
PROFILE, ROLE, EXTERNAL_ID = "aws.profile", "aws.role.arn", "aws.role.external.id"
STS_ENDPOINT = "aws.sts.endpoint.url"
TIMEOUT, RECONNECT = "aws.timeout.ms", "aws.reconnect.max.ms"
CONNECTION = "Connection"
_CREDENTIALS = "without it, the tasks have those of the environment, of a profile, or of their machine's role"

secret = functools.partial(ConfigKey, type=Type.PASSWORD, default=None, importance=Importance.MEDIUM)
_optional = functools.partial(text, default=None, validator=OrNull(NonEmptyString()), group=CONNECTION)


def region_key(service: str) -> str:
    return f"{service}.region"


def endpoint_key(service: str) -> str:
    return f"{service}.endpoint.url"


def _check_url(name: str, value: ConfigValue) -> None:
    try:
        parts = urlsplit(str(value))
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        known = False
    if not known:
        raise ConfigError(name, None, "must be a URL such as https://vpce-1.sqs.eu-central-1.vpce.amazonaws.com, without a login")


def connection_keys(service: str) -> tuple[ConfigKey, ...]:
    """Return the keys of an account and of a service in it: ``sqs`` or ``kinesis``."""
    url = OrNull(Check(_check_url, "a URL"))
    return (
        _optional(
            name=region_key(service),
            importance=Importance.HIGH,
            doc="The region, such as eu-central-1; by default, that of the environment or the profile.",
        ),
        _optional(
            name=endpoint_key(service),
            validator=url,
            doc="The URL of the service, where it is not the region's public one: of a VPC endpoint, or of an imitation.",
        ),
        secret(name=ACCESS_KEY, group=CONNECTION, doc=f"The id of an access key; {_CREDENTIALS}."),
        secret(
            name=SECRET_KEY,
            group=CONNECTION,
            doc="The secret of the access key; preferably a reference such as ${file:/run/secrets/aws:secret}.",
        ),
        secret(
            name=SECRET_KEY_OF_JAVA,
            group=CONNECTION,
            importance=Importance.LOW,
            doc=f"The same as {SECRET_KEY}, by the name that Confluent's connectors for SQS and Kinesis have for it.",
        ),
        secret(name=TOKEN, group=CONNECTION, doc="The session token of a temporary access key. The key works until it expires."),
        _optional(name=PROFILE, doc="The profile of ~/.aws/config and ~/.aws/credentials, which must be on all executors."),
        _optional(name=ROLE, doc="The ARN of a role to assume with these credentials. Its own are renewed before they expire."),
        _optional(name=EXTERNAL_ID, importance=Importance.LOW, doc=f"The external id that {ROLE} demands."),
        _optional(
            name=STS_ENDPOINT,
            validator=url,
            importance=Importance.LOW,
            doc=f"The URL of the Security Token Service for {ROLE}, where it is not the region's public one.",
        ),
        whole(TIMEOUT, 10_000, 1, CONNECTION, "Milliseconds to wait for a connection, and for an answer."),
        whole(RECONNECT, 10_000, 1, CONNECTION, "The most milliseconds between two attempts."),
    )


@dataclass(frozen=True, slots=True)
class Account:
    """A service of an account, and the credentials. Times are in seconds. The repr shows no secret."""

    service: str
    region: str | None = None
    endpoint: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    profile: str | None = None
    role: str | None = None
    external_id: str | None = field(default=None, repr=False)
    sts_endpoint: str | None = None
    timeout: float = 10.0
    longest_pause: float = 10.0
    longest_wait: float = 0.0
    """Seconds for which the service may hold a request by intention."""

    @property
    def where(self) -> str:
        """The name of the service in messages."""
        name = {"sqs": "Amazon SQS", "kinesis": "Amazon Kinesis"}[self.service]
        return f"{name} at {self.endpoint}" if self.endpoint else f"{name} in {self.region or 'the default region'}"

    @property
    def login_key(self) -> str:
        """The config key to look at when the credentials are refused."""
        given = {ROLE: self.role, ACCESS_KEY: self.access_key, PROFILE: self.profile}
        return next((key for key, value in given.items() if value is not None), ACCESS_KEY)


def account_of(service: str, values: Mapping[str, ConfigValue], *, region: str | None = None, wait: float = 0.0) -> Account:
    """Return the account of parsed values. ``region`` is the one to take if they have none."""

    def shown(key: str) -> str | None:
        return revealed(values[key])

    return Account(
        service=service,
        region=shown(region_key(service)) or region,
        endpoint=shown(endpoint_key(service)),
        access_key=shown(ACCESS_KEY),
        secret_key=shown(SECRET_KEY) or shown(SECRET_KEY_OF_JAVA),
        session_token=shown(TOKEN),
        profile=shown(PROFILE),
        role=shown(ROLE),
        external_id=shown(EXTERNAL_ID),
        sts_endpoint=shown(STS_ENDPOINT),
        timeout=int(str(values[TIMEOUT])) / 1000,
        longest_pause=int(str(values[RECONNECT])) / 1000,
        longest_wait=wait,
    )


class AwsConnector(CheckedConnector):
    """Base of the connectors for services of AWS."""

    @classmethod
    def account(cls, values: Mapping[str, ConfigValue]) -> Account:
        """Return the account of parsed values."""
        raise NotImplementedError

    @classmethod
    def connection_conflicts(cls, values: Mapping[str, ConfigValue]) -> Mapping[str, str]:
        given = {name for name, value in values.items() if value is not None}
        if {SECRET_KEY, SECRET_KEY_OF_JAVA} <= given:
            return {SECRET_KEY_OF_JAVA: f"is the same as {SECRET_KEY}: set one of them"}
        has_secret = bool({SECRET_KEY, SECRET_KEY_OF_JAVA} & given)
        if has_secret != (ACCESS_KEY in given):
            missing, there = (ACCESS_KEY, "its secret") if has_secret else (SECRET_KEY, ACCESS_KEY)
            return {missing: f"is needed with {there}"}
        for key, needed in ((TOKEN, ACCESS_KEY), (EXTERNAL_ID, ROLE), (STS_ENDPOINT, ROLE)):
            if key in given and needed not in given:
                return {needed: f"is needed with {key}"}
        if {ACCESS_KEY, PROFILE} <= given:
            return {PROFILE: f"cannot be set together with {ACCESS_KEY}"}
        return {}

    @classmethod
    def try_service(cls, client: Any, account: Account, found: Mapping[str, ValidatedValue]) -> None:
        """Ask for what the config names. Changes nothing. Raises ConfigError with the key, and other ConnectErrors."""

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        account = cls.account(values)
        with closing(opened(account)) as client:
            cls.try_service(client, account, found)
