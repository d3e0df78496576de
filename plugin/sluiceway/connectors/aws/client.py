"""Clients of AWS's services, and the meaning of their errors. The only module of the connectors that imports botocore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.errors import LoginError, RefusedError, UnreachableError
from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from sluiceway.connectors.aws.connection import Account

_MOST_CONNECTIONS = 50
_ROLE_SESSION = "sluiceway"
_MOST_TOLD = 300
_BUSY = {
    *("RequestThrottled", "ThrottlingException", "Throttling", "ThrottledException", "TooManyRequestsException"),
    *("ProvisionedThroughputExceededException", "LimitExceededException", "RequestLimitExceeded", "BandwidthLimitExceeded"),
    *("KMSThrottlingException", "KmsThrottled", "InternalFailure", "InternalFailureException", "InternalError"),
    *("ServiceUnavailable", "OverLimit", "ResourceInUseException", "RequestTimeout", "RequestTimeoutException", "SlowDown"),
}
_REFUSED_LOGINS = {
    *("InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "IncompleteSignature"),
    *("InvalidSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "ExpiredToken"),
    *("ExpiredTokenException", "InvalidSecurity", "InvalidAccessKeyId", "AuthFailure", "NotAuthorized", "OptInRequired"),
}
_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "KMSAccessDeniedException", "KmsAccessDenied"}
_TOO_MANY, _SERVER_FAULT = 429, 500


class ThrottledError(UnreachableError):
    """AWS answers that the request comes too often, or that it has a fault of its own that passes."""


def opened(account: Account) -> Any:
    """Return a client of the account's service, which any number of threads may use. Closed by the caller.

    It repeats nothing by itself: the tasks do that, and say so. Raises MissingToolError without the package, and LoginError
    for a profile or role that cannot be used, or without a region.
    """
    try:
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingToolError(
            f"AWS needs a Python package that is not installed ({error}). Run: {install_command('aws')} in the Python "
            "environment of the tasks."
        ) from error
    config = Config(
        connect_timeout=account.timeout,
        read_timeout=account.timeout + account.longest_wait,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=_MOST_CONNECTIONS,
    )

    def make(session: Any, service: str, endpoint: str | None, **credentials: str) -> Any:
        return session.create_client(service, region_name=account.region, endpoint_url=endpoint, config=config, **credentials)

    with aws_errors(account):
        session = Session(profile=account.profile)
        if account.access_key is not None:
            session.set_credentials(account.access_key, account.secret_key, account.session_token)
        if account.role is not None:
            session = _role_session(account, session, make)
        return make(session, account.service, account.endpoint)


def _role_session(account: Account, session: Any, make: Any) -> Any:
    """Return a session with the credentials of the role, which are renewed before they expire."""
    from botocore import credentials  # type: ignore[import-untyped]
    from botocore.session import Session

    source = session.get_credentials()
    if source is None:
        raise LoginError(_no_credentials(account), account.login_key)
    extra = {"RoleSessionName": _ROLE_SESSION}
    if account.external_id is not None:
        extra["ExternalId"] = account.external_id

    def client(service: str, **given: str) -> Any:
        return make(session, service, account.sts_endpoint, **given)

    fetcher = credentials.AssumeRoleCredentialFetcher(client, source, account.role, extra_args=extra)

    class Role(credentials.CredentialProvider):  # type: ignore[misc,no-any-unimported] # without types
        METHOD = "assume-role"

        def load(self) -> Any:
            return credentials.DeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)

    made = Session()
    made.register_component("credential_provider", credentials.CredentialResolver([Role()]))
    return made


def _no_credentials(account: Account) -> str:
    return (
        f"There are no credentials for {account.where}: set aws.access.key.id and aws.secret.access.key, or give the tasks those "
        "of the environment, of a profile, or of their machine's role."
    )


@contextmanager
def aws_errors(account: Account) -> Iterator[None]:
    """Raise the error that one of botocore means.

    That is UnreachableError for what passes, LoginError for credentials or a missing region, and RefusedError for the rest.
    """
    from botocore import exceptions as errors

    where = account.where
    no_login = (errors.NoCredentialsError, errors.PartialCredentialsError, errors.ProfileNotFound)
    try:
        yield
    except errors.ClientError as error:
        raise meaning_of(error.response, account) from None
    except errors.SSLError as error:
        raise ConnectError(f"{where}: the certificate is not trusted: {_short(error)}. AWS_CA_BUNDLE names others.") from None
    except no_login as error:
        told = _no_credentials(account) if isinstance(error, errors.NoCredentialsError) else f"{where}: {_short(error)}"
        raise LoginError(told, account.login_key) from None
    except errors.NoRegionError:
        key = f"{account.service}.region"
        raise LoginError(f"There is no region. Set {key}.", key) from None
    except (errors.ParamValidationError, errors.InvalidRegionError, ValueError) as error:
        raise RefusedError(f"{where}: {_short(error)}", "ValidationException") from None
    except (errors.BotoCoreError, errors.HTTPClientError) as error:
        raise UnreachableError(f"{where}: {_short(error)}") from None


def meaning_of(response: Mapping[str, Any], account: Account) -> ConnectError | UnreachableError:
    """Return the error for an answer that is one."""
    found = response.get("Error", {})
    code = code_of(found)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{account.where} answered {code}: {_short(found.get('Message', ''))}"
    if code in _BUSY or status >= _SERVER_FAULT or status == _TOO_MANY:
        return ThrottledError(text)
    if code in _REFUSED_LOGINS:
        return LoginError(f"{text}. Check {account.login_key}, and the clock of the machine.", account.login_key)
    if code in _DENIED:
        return LoginError(f"{text}. Give the credentials the right to it.", account.login_key)
    return RefusedError(text, code)


def code_of(error: Mapping[str, Any]) -> str:
    """Return the code of an error or of a failed entry, in the form of the JSON protocol, without a prefix."""
    code = str(error.get("QueryErrorCode") or error.get("Code") or "")
    return code.rpartition("#")[2].rpartition(".")[2]


def is_busy(code: str) -> bool:
    """Return whether a code says that the same is taken later."""
    return code in _BUSY


def answered_at(answer: Mapping[str, Any], otherwise: float) -> float:
    """Return the second in which a server answered, by its clock and since the epoch."""
    date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return otherwise


def _short(error: object) -> str:
    """Return the first line of a text: that of a refused signature has the session token in a later one."""
    return (str(error).strip().splitlines() or [""])[0][:_MOST_TOLD]
