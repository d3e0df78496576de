"""JDBC URLs."""

from __future__ import annotations

import pytest

from sluiceway.connectors.jdbc.dialects import parse_url
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.errors import ConfigError
from support.fuzz import PASSWORDS, fuzz


@pytest.mark.parametrize(
    ("url", "location", "user", "password"),
    [
        ("jdbc:postgresql://h:6000/d?user=u&password=p%26q", "h:6000/d", "u", "p&q"),
        ("jdbc:postgresql://u:secret@[::1]/d", "::1:5432/d", "u", "secret"),
        ("jdbc:postgresql:d", "localhost:5432/d", None, None),
        ("jdbc:mysql://h/d?useSSL=false", "h:3306/d", None, None),
        ("jdbc:mariadb://h:1/d", "h:1/d", None, None),
        ("jdbc:sqlite:/a/b.db", "/a/b.db", None, None),
    ],
)
def test_a_url_names_location_and_login(url: str, location: str, user: str | None, password: str | None) -> None:
    found = parse_url(url)
    assert (found.location, found.user, found.password) == (location, user, password)
    assert password is None or password not in repr(found)


def test_user_and_password_keys_take_precedence_over_the_url() -> None:
    found = parse_url("jdbc:mysql://h/d?user=a&password=b", "c", "d")
    assert (found.user, found.password) == ("c", "d")


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (
            "jdbc:postgresql://h/d?sslmode=require&currentSchema=s&prepareThreshold=0",
            {"sslmode": "require", "options": "-csearch_path=s"},
        ),
        ("jdbc:postgresql://h/d?ssl=true", {"sslmode": "verify-full"}),
        ("jdbc:mysql://h/d?sslMode=VERIFY_CA&connectTimeout=1500", {"ssl_verify_cert": True, "connect_timeout": 2}),
        ("jdbc:mysql://h/d?useSSL=false&rewriteBatchedStatements=true", {"ssl_disabled": True}),
    ],
)
def test_java_parameters_are_translated_or_ignored(url: str, options: dict[str, object]) -> None:
    assert parse_url(url).options == options


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("jdbc:oracle:thin:@//h/d", "not a JDBC URL of a database that is supported"),
        ("jdbc:postgresql://a,b/d", "several hosts"),
        ("jdbc:postgresql://h:x/d", "not a number"),
        ("jdbc:postgresql://h/d?sslfactory=x", "without a counterpart.*sslmode"),
        ("jdbc:postgresql://h/d?sslmode=maybe", "must be one of disable"),
        ("jdbc:mysql://h/d?serverTimezone=Europe/Berlin", "db.timezone"),
    ],
)
def test_urls_that_cannot_be_translated_are_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:oracle://user:hunter2@h/d?password=hunter2",
        "jdbc:sqlserver://h:1433;user=sa;password=hunter2;unknown=hunter2",
        "jdbc:sqlserver://sa:hunter2@h",
        "jdbc:db2://h:50000/d:user=sa;password=hunter2;",
        "jdbc:oracle:thin:scott/hunter2@h:1521:x",
        "scott/hunter2",
        "jdbc:mysql://user:hunter2/@h/d",
        "jdbc:postgresql://user:hunter2?@h/d",
        "jdbc:postgresql://user:?hunter2&@h/d",
        "jdbc:mysql://user:x?y&hunter2;z=@h/d",
        "jdbc:mysql://user:@/hunter2@h/d",
        "jdbc:mariadb://user:a@b/hunter2@h:1/d",
    ],
)
def test_the_error_of_a_refused_url_does_not_show_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_url(url)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in " ".join(JdbcSourceConnector.validate({"connection.url": url})["connection.url"].errors)


FORMS = [
    "jdbc:postgresql://user:{}@h/d",
    "jdbc:mysql://h/d?user=u&password={}",
    "jdbc:mariadb://user:{}@h:3306/d?connectTimeout=1",
    "jdbc:sqlserver://h:1433;user=sa;password={};databaseName=d",
    "jdbc:postgresql://user:{}@a,b/d",
    "jdbc:mysql://user:{}@h/d?sslMode=maybe",
]


@pytest.mark.parametrize("form", FORMS)
@fuzz("password", share=1 / len(FORMS), password=PASSWORDS)
def test_no_error_shows_a_part_of_a_password_with_separators(form: str, password: str) -> None:
    try:
        found = parse_url(form.format(password))
    except ConfigError as error:
        shown = str(error)
    else:
        shown = found.location
    assert "hunter2" not in shown
    assert "12345" not in shown
