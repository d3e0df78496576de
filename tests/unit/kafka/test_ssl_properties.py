"""``ssl.*`` properties and Java's key stores as librdkafka's settings."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from sluiceway.errors import ConfigError
from sluiceway.kafka.client_properties import to_librdkafka
from sluiceway.kafka.clients import producer
from sluiceway.stack import truststore
from support.certificates import Authority

PASSWORD = "hunter2"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("Test CA")


def mapped(**properties: str) -> dict[str, str]:
    found = to_librdkafka({"security.protocol": "SSL", **{key.replace("_", "."): value for key, value in properties.items()}})
    assert found.pop("security.protocol") == "SSL"
    return found


def test_a_pem_file_is_passed_by_path_and_pem_text_by_value(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "ca.jks"  # what it is called does not matter
    file.write_text(authority.pem)
    assert mapped(ssl_truststore_location=str(file)) == {"ssl.ca.location": str(file)}
    assert mapped(ssl_truststore_type="PEM", ssl_truststore_certificates=authority.pem) == {"ssl.ca.pem": authority.pem}


def test_line_breaks_of_pem_text_are_restored(authority: Authority) -> None:
    joined = authority.pem.replace("\n", "")
    found = mapped(ssl_truststore_certificates=joined + joined)
    assert found["ssl.ca.pem"] == authority.pem + authority.pem
    producer({"security.protocol": "SSL", **found})  # OpenSSL reads it now


def test_a_pkcs12_trust_store_becomes_pem(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "trust.p12"
    file.write_bytes(authority.java_truststore(PASSWORD))
    assert mapped(ssl_truststore_location=str(file), ssl_truststore_password=PASSWORD) == {"ssl.ca.pem": authority.pem}


def test_a_jks_trust_store_becomes_pem(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    der = ssl.PEM_cert_to_DER_cert(authority.pem)
    monkeypatch.setattr(truststore, "_system_certificates", lambda: [der, der])
    file = tmp_path / "trust.jks"
    truststore.write_system_truststore(file)
    for password in ({"ssl_truststore_password": truststore.PASSWORD}, {}):
        assert mapped(ssl_truststore_location=str(file), **password) == {"ssl.ca.pem": authority.pem * 2}
    monkeypatch.setattr(truststore, "_system_certificates", list)
    truststore.write_system_truststore(file)
    with pytest.raises(ConfigError, match="no certificate is in it"):
        mapped(ssl_truststore_location=str(file))


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_the_error_for_a_wrong_password_or_damaged_store_has_advice_and_no_password(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(truststore, "_system_certificates", lambda: [ssl.PEM_cert_to_DER_cert(authority.pem)])
    file = tmp_path / f"trust.{kind}"
    truststore.write_system_truststore(file) if kind == "jks" else file.write_bytes(authority.java_truststore("right"))
    whole = file.read_bytes()
    for content in (whole, whole[:30], whole[:-30]):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match="keytool -exportcert -rfc") as caught:
            mapped(ssl_truststore_location=str(file), ssl_truststore_password=PASSWORD)
        assert PASSWORD not in str(caught.value)


def test_the_error_for_an_unreadable_store_names_its_key(tmp_path: Path) -> None:
    for key in ("ssl.truststore.location", "ssl.keystore.location"):
        with pytest.raises(ConfigError, match=f"for configuration {key}: The file cannot be read"):
            to_librdkafka({"security.protocol": "SSL", key: str(tmp_path / "missing")})


def test_a_pkcs12_key_store_goes_to_librdkafka_with_its_password(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "mine.jks"
    file.write_bytes(authority.keystore("me", PASSWORD))
    found = mapped(ssl_keystore_location=str(file), ssl_keystore_password=PASSWORD, ssl_key_password=PASSWORD)
    assert found == {"ssl.keystore.location": str(file), "ssl.keystore.password": PASSWORD}
    producer({"security.protocol": "SSL", **found})


def test_a_pem_key_store_is_key_and_certificate_in_one(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "mine.pem"
    chain, key = authority.issue("me", password=PASSWORD)
    file.write_text(key + chain)
    found = mapped(ssl_keystore_location=str(file), ssl_key_password=PASSWORD)
    assert found == {"ssl.key.password": PASSWORD, "ssl.certificate.location": str(file), "ssl.key.location": str(file)}
    producer({"security.protocol": "SSL", **found})
    inline = mapped(
        ssl_keystore_certificate_chain=chain.replace("\n", ""), ssl_keystore_key=key.replace("\n", ""), ssl_key_password=PASSWORD
    )
    assert inline == {"ssl.key.password": PASSWORD, "ssl.certificate.pem": chain, "ssl.key.pem": key}
    producer({"security.protocol": "SSL", **inline})


@pytest.mark.parametrize("key_password", [None, "another"])
def test_a_jks_key_store_becomes_pem(authority: Authority, tmp_path: Path, key_password: str | None) -> None:
    file = tmp_path / "mine.jks"
    file.write_bytes(authority.jks_keystore("me", PASSWORD, key_password or PASSWORD))
    own = {"ssl_key_password": key_password} if key_password else {}
    found = mapped(ssl_keystore_location=str(file), ssl_keystore_password=PASSWORD, **own)
    assert found.keys() == {"ssl.certificate.pem", "ssl.key.pem"}
    assert found["ssl.certificate.pem"].endswith(authority.pem)
    producer({"security.protocol": "SSL", **found})


def test_the_error_for_an_unusable_jks_key_store_has_no_password(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "mine.jks"
    whole = authority.jks_keystore("me", PASSWORD, "another")
    for content, key_password in ((whole, PASSWORD), (whole[:200], "another"), (whole[:8] + bytes(40), "another")):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match="The key store cannot be used") as caught:
            mapped(ssl_keystore_location=str(file), ssl_keystore_password=PASSWORD, ssl_key_password=key_password)
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(("java", "here"), [("", "none"), (" ", "none"), ("HTTPS", "https"), ("https", "https")])
def test_an_empty_identification_algorithm_disables_hostname_verification(java: str, here: str) -> None:
    assert mapped(ssl_endpoint_identification_algorithm=java) == {"ssl.endpoint.identification.algorithm": here}


def test_java_cipher_names_are_refused_and_openssl_names_passed_on() -> None:
    with pytest.raises(ConfigError, match="OpenSSL's names"):
        mapped(ssl_cipher_suites="ECDHE-RSA-AES256-GCM-SHA384, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
    assert mapped(ssl_cipher_suites="ECDHE-RSA-AES256-GCM-SHA384")
