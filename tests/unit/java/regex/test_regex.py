"""Patterns and replacements mean what they mean to Java 17; the expectations are its own answers."""

from __future__ import annotations

import re

import pytest

from sluiceway.config.definition import ConfigValue
from sluiceway.config.validators import valid_regex
from sluiceway.errors import ConfigError
from sluiceway.java.regex import RegexError, compile_java


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a{2,3}?", "aaa", True),
        ("x++y*", "xxyy", True),
        (".*+x", "ax", False),
        ("(?>a|ab)c", "abc", False),
        (r"\w+", "é", False),
        (r"(?U)\w+", "é", True),
        (r"(?u)\w+", "é", False),
        (r"\d", "٣", False),
        (r"(?U)\d", "٣", True),
        (r"\p{Lu}+.*", "ÄBc", True),
        (r"\P{L}", "1", True),
        (r"\pL+", "öß", True),
        (r"\p{Alpha}", "é", False),
        (r"\p{IsAlphabetic}", "é", True),
        (r"\p{IsGreek}", "\u0391", True),
        (r"\p{javaLowerCase}", "é", True),
        (r"\p{gc=Nd}", "5", True),
        (r"\p{LC}", "x", True),
        (r"\p{InGreek}", "\u0391", True),
        (r"(?i)\p{javaLowerCase}", "É", True),
        (r"(?iu)[\u03c3]", "\u03c2", True),
        (r"(?iu)[^\W_]", "s", True),
        (r"(?i)\p{Lu}", "a", True),
        ("(?i)ORD", "ord", True),
        ("(?i)É", "é", False),
        ("(?iu)É", "é", True),
        ("(?i)[a-c&&[^b]]", "B", False),
        ("(?i:a)B", "ab", False),
        ("(?i:a)B", "AB", True),
        ("a(?i)b|C", "c", True),
        ("(?-i)a", "A", False),
        ("[a-z&&[^bc]]+", "ad", True),
        ("[a-c[x-z]&&[b-y]]+", "bcxy", True),
        ("[a-c[x-z]&&[b-y]]", "a", False),
        ("[^[^a]]", "a", True),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        (r"[\w.-]+", "a.b-c_d", True),
        (r"[\Qor.\E]+", "o.r", True),
        (r"\Qa.b\E+", "a.bbb", True),
        (r"\Qa.b", "axb", False),
        (r"[^\x00-\x7f]", "é", True),
        (".", "\n", False),
        (".", "\u2028", False),
        ("(?s).", "\n", True),
        ("(?d).", "\r", True),
        (r"\R", "\r\n", True),
        (r"\R\n", "\r\n", True),
        (r"\R{2}", "\r\n", False),
        (r"\h\v", "\u00a0\u2028", True),
        (r"\H\V", "ab", True),
        ("(?x) o r # rest", "or", True),
        ("(?x)[a b]", " ", False),
        (r"(?x)a\ b", "a b", True),
        (r"\x{6f}\x6f\u006f\0157\cA", "oooo\x01", True),
        (r"\N{DIGIT ONE}", "1", True),
        (r"\t\e", "\t\x1b", True),
        (r"(?<a>x)\k<a>", "xx", True),
        (r"(\d)(\d)\2\1", "1221", True),
        (r"(?i)(a)\1", "aA", True),
        (r"(a)\2", "aa", False),
        (r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10\11", "abcdefghijja1", True),
        ("(?<=x|yy)ab", "ab", False),
        ("(?=or)o.*", "orders", True),
        ("(?!x).*", "x", False),
        (r"^orders$", "orders", True),
        (r"\Aorders\z", "orders", True),
        (r"o.*\B.", "orders", True),
        (r"\bé", "é", True),
        ("(?m)a$.^b", "a\nb", False),
        ("(?ms)a$.^b", "a\nb", True),
        ("a{2}{3}", "aa", True),
        ("", "", True),
        ("|a", "a", True),
    ],
)
def test_patterns_match_as_in_java(pattern: str, text: str, expected: bool) -> None:
    assert compile_java(pattern).matches(text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "replacement", "expected"),
    [
        ("a{2,3}?", "aaa", "R[$0]", "R[aa]a"),
        ("o.*?", "orders", r"\$1", "$1rders"),
        ("(a)?b", "b", "[$1]", "[]"),
        ("(o|x)+rders", "oxorders", "$1", "o"),
        ("(a)(b)", "ab", "$2$1$10$0", "baa0ab"),
        ("(?<n>o)r", "orders", "${n}-", "o-ders"),
        ("zz", "orders", "$", "orders"),
        ("(?<=x|yy)ab", "yyab", "-", "yy-"),
        (r"\bé?", "é1", "[$0]", "[é]1"),
        ("a++b|a", "aac", "<$0>", "<a>ac"),
        ("$", "x\n", "!", "x!\n"),
        ("^", "x", r"\\", r"\x"),
    ],
)
def test_the_first_match_is_replaced_as_java_does(pattern: str, text: str, replacement: str, expected: str) -> None:
    assert compile_java(pattern).replace_first(text, replacement) == expected


@pytest.mark.parametrize(
    ("replacement", "error", "text"),
    [
        ("$2", IndexError, "No group 2"),
        ("$", ValueError, "Illegal group reference: group index is missing"),
        ("$x", ValueError, "Illegal group reference"),
        ("a\\", ValueError, "character to be escaped is missing"),
        ("${n", ValueError, "named capturing group is missing trailing '}'"),
        ("${}", ValueError, "named capturing group has 0 length name"),
        ("${1}", ValueError, "capturing group name {1} starts with digit character"),
        ("${zz}", ValueError, "No group with name {zz}"),
    ],
)
def test_malformed_replacements_are_refused_with_javas_message(replacement: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        compile_java("(a)").replace_first("a", replacement)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[", "Unclosed character class near index 0\n[\n^"),
        ("(", "Unclosed group near index 1\n("),
        ("a)", "Unmatched closing ')' near index 0\na)\n^"),
        ("*", "Dangling meta character '*' near index 0\n*\n^"),
        ("a**", "Dangling meta character '*' near index 2\na**\n  ^"),
        ("x{,3}", "Illegal repetition near index 2\nx{,3}\n  ^"),
        ("x{2", "Unclosed counted closure near index 3\nx{2"),
        ("[b-a]", "Illegal character range near index 3\n[b-a]\n   ^"),
        ("a{2,1}", "Illegal repetition range near index 5\na{2,1}\n     ^"),
        ("\\q", "Illegal/unsupported escape sequence near index 1\n\\q\n ^"),
        ("(?P<n>x)", "Unknown inline modifier near index 2\n(?P<n>x)\n  ^"),
        ("(?<n>a)(?<n>b)", "Named capturing group <n> is already defined near index 11\n(?<n>a)(?<n>b)\n           ^"),
        (r"\k<zz>", "named capturing group <zz> does not exist near index 5\n\\k<zz>\n     ^"),
        (r"\p{Foo}", "Unknown character property name {Foo} near index 6\n\\p{Foo}\n      ^"),
    ],
)
def test_malformed_patterns_are_refused_with_javas_message(pattern: str, text: str) -> None:
    with pytest.raises(RegexError) as caught:
        compile_java(pattern)
    assert str(caught.value) == text


def test_a_look_behind_may_match_texts_of_any_length() -> None:
    assert compile_java("(?<=xa+)b").replace_first("xaab", "-") == "xaa-"


@pytest.mark.parametrize("pattern", ["a{e<=1}", "(?R)", "(?|a)", "(?#a)", r"\K", r"\m", r"\g<1>", r"\L<a>", "(*FAIL)"])
def test_syntax_of_the_regex_package_alone_is_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        compile_java(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"), [("[[:alpha:]]", ":"), ("[a||b]", "|"), ("[+--]", ","), ("[~~]", "~"), ("(?i)k", "\u212a")]
)
def test_set_operators_of_the_regex_package_are_characters(pattern: str, text: str) -> None:
    assert compile_java(pattern).matches(text) is (text != "\u212a")


@pytest.mark.parametrize("value", ["a(b", None])
def test_a_config_key_takes_only_a_pattern(value: ConfigValue) -> None:
    if value is None:
        valid_regex("regex", "a.*")
        return
    with pytest.raises(ConfigError, match=r"^Invalid value a\(b for configuration regex: Invalid regex: Unclosed group"):
        valid_regex("regex", value)


def test_the_caret_is_below_the_character_after_tabs() -> None:
    with pytest.raises(ValueError, match="Illegal repetition") as caught:
        compile_java('x\ta{"')
    assert str(caught.value) == 'Illegal repetition near index 4\nx\ta{"\n \t  ^'
