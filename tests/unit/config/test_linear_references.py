"""References are found as Kafka's pattern finds them, in linear time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.config.variables import Reference, Resolver, references
from support.fuzz import processor_time

KAFKAS = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
RESOLVER = Resolver.of({"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"})


@given(st.text("${}:ab", max_size=30))
def test_references_are_those_of_kafkas_pattern(text: str) -> None:
    assert list(references({"key": text})) == [Reference(found[1], found[2] or "", found[3]) for found in KAFKAS.finditer(text)]
    assert RESOLVER.resolve({"key": text}) == {"key": text}, "none of them has a value"


@pytest.mark.parametrize("piece", ["${", "${a:", "${a:b:", "${:", "$", "{", ":"])
@pytest.mark.parametrize("end", ["", "}", "}}", "x"])
def test_a_text_of_a_megabyte_takes_no_more_than_a_moment(piece: str, end: str) -> None:
    text = piece * (1_000_000 // len(piece)) + end
    with processor_time():
        list(references({"key": text}))
        RESOLVER.errors(text)
        RESOLVER.resolve({"key": text})
