from __future__ import annotations

import pytest

from sluiceway.config.definition import Type
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.transforms.debezium.options import Options, one_of, option, regular_expressions, required

DEFINITIONS = (
    option("flag", Type.BOOLEAN, "", "", default="true"),
    option("count", Type.INT, "", "", default="16"),
    option("list", Type.LIST, "", ""),
    option("mode", Type.STRING, "", "", checks=(required, one_of("none", "avro"))),
)


def options(**config: str) -> Options:
    return Options(DEFINITIONS, config)


def test_what_is_no_boolean_or_integer_means_the_default() -> None:
    assert [options(flag=text).flag("flag") for text in (" FALSE ", "true", "maybe")] == [False, True, True]
    assert [options(count=text).integer("count") for text in ("5", " 5", "x")] == [5, 16, 16]
    assert (options().flag("flag"), options().integer("count")) == (True, 16)


def test_lists_are_split_as_in_java() -> None:
    assert options(list=" a , b,,c,,").items("list") == ["a", "b", "", "c"]
    assert (options(list="").items("list"), options(list=",").items("list"), options().items("list")) == ([""], [], [])


def test_the_first_problem_is_raised() -> None:
    with pytest.raises(ConfigError) as raised:
        options().require_valid()
    assert str(raised.value) == "Invalid value null for configuration mode: The 'mode' value is invalid: A value is required"
    options(mode=" Avro ").require_valid()
    with pytest.raises(ConfigError, match="An integer is expected"):
        options(mode="avro", count="x").require_valid()


def test_all_problems_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectError, match=r"^Unable to validate config\.$"):
        options(mode="x", flag="y").require_all_valid()
    assert [record.getMessage() for record in caplog.records] == [
        "The 'flag' value 'y' is invalid: Either 'true' or 'false' is expected",
        "The 'mode' value 'x' is invalid: Value must be one of none, avro",
    ]


def test_commas_in_expressions_can_be_escaped() -> None:
    definitions = (option("list", Type.LIST, "", "", checks=(regular_expressions,)),)
    Options(definitions, {"list": r"a{1\,2},b"}).require_valid()
    with pytest.raises(ConfigError, match="A comma-separated list of valid regular expressions is expected"):
        Options(definitions, {"list": "a,("}).require_valid()
