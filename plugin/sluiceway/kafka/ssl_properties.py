"""Maps Java's ``ssl.*`` client properties to librdkafka's. Reads key stores on the machine that creates the client."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sluiceway.config.parsing import parse_list
from sluiceway.errors import ConfigError
from sluiceway.java.keystores import private_identity, read_store, store_type, trusted_certificates

_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----")
_LINE = 64

KEYSTORE = "ssl.keystore.location"
TRUSTSTORE = "ssl.truststore.location"
CIPHERS = "ssl.cipher.suites"


def ssl_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings for Java's. Raises ConfigError for a store that cannot be used."""
    _check_ciphers(properties.get(CIPHERS, ""))
    settings = {**_trust(properties), **_identity(properties)}
    identification = properties.get("ssl.endpoint.identification.algorithm")
    if identification is not None:
        settings["ssl.endpoint.identification.algorithm"] = identification.strip().lower() or "none"
    return settings


def _check_ciphers(names: str) -> None:
    """Refuse Java's cipher names: dropping them would allow ciphers that the user excluded."""
    if any(name.startswith(("TLS_", "SSL_")) for name in parse_list(names)):
        why = "Here ciphers have OpenSSL's names, such as ECDHE-RSA-AES256-GCM-SHA384; see 'openssl ciphers -v -stdname'."
        raise ConfigError(CIPHERS, names, why)


def _trust(properties: Mapping[str, str]) -> dict[str, str]:
    inline, path = properties.get("ssl.truststore.certificates"), properties.get(TRUSTSTORE)
    if inline:
        return {"ssl.ca.pem": pem_lines(inline)}
    if not path:
        return {}
    content = read_store(path, TRUSTSTORE)
    if store_type(content) == "PEM":
        return {"ssl.ca.location": path}
    return {"ssl.ca.pem": trusted_certificates(content, properties.get("ssl.truststore.password"), path)}


def _identity(properties: Mapping[str, str]) -> dict[str, str]:
    chain, key, path = (properties.get(each) for each in ("ssl.keystore.certificate.chain", "ssl.keystore.key", KEYSTORE))
    password = properties.get("ssl.key.password")
    settings = {"ssl.key.password": password} if password else {}
    if chain and key:
        return {**settings, "ssl.certificate.pem": pem_lines(chain), "ssl.key.pem": pem_lines(key)}
    if not path:
        return {}
    content, store_password = read_store(path, KEYSTORE), properties.get("ssl.keystore.password")
    if store_type(content) == "PEM":
        return {**settings, "ssl.certificate.location": path, "ssl.key.location": path}
    if store_type(content) == "PKCS12":
        return {KEYSTORE: path, **({"ssl.keystore.password": store_password} if store_password else {})}
    found = private_identity(content, store_password, password, path)
    return {"ssl.certificate.pem": found.chain, "ssl.key.pem": found.key}


def pem_lines(text: str) -> str:
    """Restore the line breaks of PEM text, which .properties files lose and OpenSSL requires."""
    return "".join(map(_wrapped, _PEM_BLOCK.finditer(text))) or text


def _wrapped(found: re.Match[str]) -> str:
    body = "".join(found[2].split())
    lines = [body[at : at + _LINE] for at in range(0, len(body), _LINE)]
    return "\n".join((f"-----BEGIN {found[1]}-----", *lines, f"-----END {found[1]}-----", ""))
