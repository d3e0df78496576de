from __future__ import annotations

import pytest

from sluiceway.errors import ConfigError, ConnectError
from sluiceway.runtime.transforms.transformation_chain import chain_of
from unit.runtime.chains import JAVA, chain_config

FILTER = {"type": "Filter"}
HEADER = {"type": "HasHeaderKey", "name": "h"}
TIMESTAMPS = "org.apache.kafka.connect.transforms.TimestampConverter$Value"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"transforms": "a"}, "Invalid value null for configuration transforms.a.type: Not a Transformation"),
        (
            {"transforms": "a,", "transforms.a.type": "Filter"},
            "Invalid value null for configuration transforms..type: Not a Transformation",
        ),
        (
            {"transforms": "a", "transforms.a.type": "Nope"},
            "Invalid value Nope for configuration transforms.a.type: Class Nope could not be found.",
        ),
        (
            {"transforms": "a", "transforms.a.type": ""},
            "Invalid value  for configuration transforms.a.type: Class  could not be found.",
        ),
        (
            {"transforms": "a", "transforms.a.type": " Filter "},
            (
                "Invalid value  Filter  for configuration transforms.a.type: "
                "Error getting config definition from Transformation:  Filter "
            ),
        ),
        (
            {"transforms": "a", "transforms.a.type": "HoistField$Value"},
            "Invalid value HoistField$Value for configuration transforms.a.type: Class HoistField$Value could not be found.",
        ),
        (
            {"transforms": "a", "transforms.a.type": f"{JAVA}HoistField"},
            f"This class is abstract and cannot be created. Did you mean {JAVA}HoistField$Key, {JAVA}HoistField$Value?",
        ),
        ({"transforms": "a", "transforms.a.type": f"{JAVA}Transformation"}, "This class is abstract and cannot be created."),
        (
            {"transforms": "a", "transforms.a.type": f"{JAVA}predicates.HasHeaderKey"},
            f"Class class {JAVA}predicates.HasHeaderKey does not implement the Transformation interface",
        ),
        (
            {"transforms": "a, a", "transforms.a.type": "x"},
            "Invalid value [a, a] for configuration transforms: Duplicate alias provided.",
        ),
        ({"predicates": "p,p"}, "Invalid value [p, p] for configuration predicates: Duplicate alias provided."),
        ({"predicates": "p"}, "Invalid value null for configuration predicates.p.type: Not a Predicate"),
        (
            {"predicates": "p", "predicates.p.type": "HasHeaderKey"},
            'Missing required configuration "predicates.p.name" which has no default value.',
        ),
        (
            {"predicates": "p", "predicates.p.type": "HasHeaderKey", "predicates.p.name": " "},
            "Invalid value  for configuration name: String must be non-empty",
        ),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "false"},
            (
                "Config 'transforms.a.negate' was provided but there is no config 'transforms.a.predicate' "
                "defining a predicate to be negated."
            ),
        ),
        (
            chain_config({**FILTER, "predicate": "p", "negate": "junk"}, p=HEADER),
            "Invalid value junk for configuration transforms.t0.negate: Expected value to be either true or false",
        ),
        (
            chain_config({"type": "DropHeaders", "predicate": "p", "negate": "junk"}, p=HEADER),
            'Missing required configuration "transforms.t0.headers" which has no default value.',
        ),
        (
            chain_config({"type": TIMESTAMPS, "target.type": "unix", "unix.precision": "x", "replace.null.with.default": "junk"}),
            (
                "Invalid value junk for configuration transforms.t0.replace.null.with.default: "
                "Expected value to be either true or false"
            ),
        ),
        (
            chain_config(
                {"type": TIMESTAMPS, "target.type": "x", "field.syntax.version": "x", "replace.null.with.default": "junk"}
            ),
            "Invalid value x for configuration target.type: String must be one of: string, unix, Date, Time, Timestamp",
        ),
        (
            chain_config({"type": "RegexRouter", "regex": "["}),
            "Invalid value [ for configuration regex: Invalid regex: Unclosed character class near index 0\n[\n^",
        ),
        (
            chain_config({"type": "RegexRouter"}, {"type": "Nope.x"}),
            "Invalid value Nope.x for configuration transforms.t1.type: Class Nope.x could not be found.",
        ),
    ],
)
def test_an_invalid_config_is_rejected_with_connects_message(config: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        chain_of(config)
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["missing", "", " p "])
def test_an_undefined_predicate_is_rejected(name: str) -> None:
    with pytest.raises(ConnectError) as caught:
        chain_of(chain_config({**FILTER, "predicate": name}, p=HEADER))
    assert str(caught.value) == (
        "org.apache.kafka.connect.errors.ConnectException: org.apache.kafka.common.config.ConfigException: "
        f"Unknown configuration 'predicates.{name}.plugin.version'"
    )


def test_an_error_in_configure_is_wrapped_and_earlier_transforms_are_closed() -> None:
    from unit.runtime.chains import Closing

    Closing.closed = 0
    with pytest.raises(ConnectError, match=r"^java.lang.IllegalArgumentException: no such thing$"):
        chain_of(
            chain_config({"type": "unit.runtime.chains.Closing"}, {"type": "unit.runtime.chains.Broken", "fail": "configure"})
        )
    assert Closing.closed == 1


@pytest.mark.parametrize("name", ["Filter", f"{JAVA}Filter", "sluiceway.transforms.filter_.Filter"])
def test_a_transform_is_found_by_alias_java_name_and_dotted_name(name: str) -> None:
    (stage,) = chain_of({"transforms": " a ", "transforms.a.type": name, "transforms.a.unknown": "1"}).stages
    assert (stage.alias, stage.predicate, type(stage.transform).__name__) == ("a", None, "Filter")


@pytest.mark.parametrize(("negate", "expected"), [("TRUE", True), ("false", False), (" True ", False)])
def test_negate_is_parsed_like_connect(negate: str, expected: bool) -> None:
    (stage,) = chain_of(chain_config({**FILTER, "predicate": "p", "negate": negate}, p=HEADER)).stages
    assert stage.negate is expected


@pytest.mark.parametrize("config", [{}, {"transforms": ""}, {"transforms": " "}])
def test_a_config_without_transforms_is_an_empty_chain(config: dict[str, str]) -> None:
    assert chain_of(config).stages == ()
