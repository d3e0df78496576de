"""Maps Java's ``sasl.*`` client properties to librdkafka's. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.errors import ConfigError
from sluiceway.java.jaas import KEY as JAAS
from sluiceway.java.jaas import LoginModule, parse_jaas

MECHANISM = "sasl.mechanism"

_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 (a key's name)
_LOGIN_HANDLER = "sasl.login.callback.handler.class"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_UNSECURED = "unsecuredLoginStringClaim_"
_EXTENSION = "extension_"
_OAUTH_OPTIONS = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
_OAUTH_KEYS = {
    "sasl.oauthbearer.client.credentials.client.id": "client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "client.secret",
    "sasl.oauthbearer.scope": "scope",
}
_ASSERTION = "sasl.oauthbearer.assertion."
_JAVA_CODE = "Java code cannot run here"


def sasl_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings for Java's. Raises ConfigError for a login method that librdkafka does not have."""
    mechanism = (properties.get(MECHANISM) or properties.get("sasl.mechanisms") or "GSSAPI").strip().upper()
    jaas = properties.get(JAAS)
    module = parse_jaas(jaas) if jaas else None
    settings = {MECHANISM: mechanism}
    if mechanism == "OAUTHBEARER":
        return {**settings, **_oauth(properties, module)}
    if mechanism == "GSSAPI":
        return {**settings, **_kerberos(properties, module)}
    if mechanism != "PLAIN" and not mechanism.startswith("SCRAM-"):
        raise ConfigError(MECHANISM, mechanism, "Here it is one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER and GSSAPI.")
    return {**settings, **(_password(module) if module else {})}


def _password(module: LoginModule) -> dict[str, str]:
    if module.options.get("tokenauth", "").lower() == "true":
        raise ConfigError("Delegation tokens (tokenauth in sasl.jaas.config) cannot be used here; name a user and a password.")
    missing = [option for option in ("username", "password") if option not in module.options]
    if missing:
        raise ConfigError(f"{JAAS} lacks {' and '.join(missing)} for {module.simple_name}.")
    return {"sasl.username": module.options["username"], "sasl.password": module.options["password"]}


def _kerberos(properties: Mapping[str, str], module: LoginModule | None) -> dict[str, str]:
    options = module.options if module else {}
    found = {
        "sasl.kerberos.service.name": properties.get("sasl.kerberos.service.name") or options.get("serviceName"),
        "sasl.kerberos.principal": options.get("principal"),
        "sasl.kerberos.keytab": options.get("keyTab"),
        "sasl.kerberos.min.time.before.relogin": properties.get("sasl.kerberos.min.time.before.relogin"),
    }
    return {key: value for key, value in found.items() if value}


def _oauth(properties: Mapping[str, str], module: LoginModule | None) -> dict[str, str]:
    handler = properties.get(_LOGIN_HANDLER, "").strip()
    if handler and not handler.endswith(".OAuthBearerLoginCallbackHandler"):
        raise ConfigError(_LOGIN_HANDLER, handler, f"{_JAVA_CODE}; a token endpoint in {_TOKEN_URL} can be used instead.")
    options = dict(module.options) if module else {}
    extensions = [f"{key[len(_EXTENSION) :]}={value}" for key, value in options.items() if key.startswith(_EXTENSION)]
    settings = {"sasl.oauthbearer.extensions": ",".join(extensions)} if extensions else {}
    url = properties.get(_TOKEN_URL, "").strip()
    if url:
        return {**settings, **_token_endpoint(properties, options, url)}
    principal = options.get(f"{_UNSECURED}sub")
    if principal:
        return {**settings, "enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={principal}"}
    return settings


def _token_endpoint(properties: Mapping[str, str], options: Mapping[str, str], url: str) -> dict[str, str]:
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError(_TOKEN_URL, url, "Only http and https addresses can be used here.")
    settings = {"sasl.oauthbearer.method": "oidc", _TOKEN_URL: url}
    settings |= {f"sasl.oauthbearer.{name}": options[key] for key, name in _OAUTH_OPTIONS.items() if key in options}
    settings |= {f"sasl.oauthbearer.{name}": properties[key] for key, name in _OAUTH_KEYS.items() if properties.get(key)}
    retriever = properties.get(_RETRIEVER, "").strip().rpartition(".")[2]
    if retriever == "JwtBearerJwtRetriever":
        settings["sasl.oauthbearer.grant.type"] = _JWT_BEARER
        for key, value in properties.items():
            if key.startswith(_ASSERTION):
                settings[key.replace("assertion.template.file", "assertion.jwt.template.file")] = value
    elif retriever not in ("", "DefaultJwtRetriever", "ClientCredentialsJwtRetriever"):
        raise ConfigError(
            _RETRIEVER, retriever, f"{_JAVA_CODE}; known are ClientCredentialsJwtRetriever and JwtBearerJwtRetriever."
        )
    return settings
