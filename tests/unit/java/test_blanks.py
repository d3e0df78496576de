"""Java's blanks."""

from __future__ import annotations

import pytest

from sluiceway.config.parsing import Type, parse_value
from sluiceway.herder.validation import trimmed
from sluiceway.java.blanks import has_white_space_property, is_blank, is_whitespace, trim
from sluiceway.java.numbers import parse_double
from sluiceway.java.regex import compile_java

# What each of Java's rules says of a character: String.trim, Character.isWhitespace, Unicode's White_Space.
CHARACTERS = [
    (" ", True, True, True),
    ("\t", True, True, True),
    ("\0", True, False, False),
    ("\x1b", True, False, False),
    ("\x1c", True, True, False),
    ("\x1f", True, True, False),
    ("\x7f", False, False, False),
    ("\x85", False, False, True),
    ("\xa0", False, False, True),
    ("\u2007", False, False, True),
    ("\u202f", False, False, True),
    ("\u2003", False, True, True),
    ("\u3000", False, True, True),
    ("\u200b", False, False, False),
]


@pytest.mark.parametrize(("character", "trimmed_off", "whitespace", "white_space"), CHARACTERS)
def test_each_rule_has_its_own_set(character: str, trimmed_off: bool, whitespace: bool, white_space: bool) -> None:
    assert (trim(f"{character}a") == "a", is_blank(character)) == (trimmed_off, trimmed_off)
    assert (is_whitespace(character), has_white_space_property(character)) == (whitespace, white_space)


@pytest.mark.parametrize(("character", "trimmed_off", "whitespace", "white_space"), CHARACTERS)
def test_regular_expressions_go_by_the_same_sets(character: str, trimmed_off: bool, whitespace: bool, white_space: bool) -> None:
    assert bool(compile_java(r"\p{javaWhitespace}").matches(character)) == whitespace
    assert bool(compile_java(r"\p{IsWhite_Space}").matches(character)) == white_space


def test_config_values_names_and_numbers_are_trimmed_alike() -> None:
    text = "\x01 7\x1f"
    assert (parse_value("k", text, Type.INT), trimmed(text), parse_double(text)) == (7, "7", 7.0)
