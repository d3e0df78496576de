"""Compares ``sluiceway.java.regex`` with ``java.util.regex`` over random patterns, texts and replacements.

Run: python tests/conformance/oracle/compare_regexes.py [count] [seed]

Prints how many answers differ, and the first of them. A JDK 17 is needed: later ones have another definition of word
boundaries. About 0.02 % of the results differ, all of them look-behinds of unlimited length, combining characters, and
characters beyond 16 bits, which Java divides. Java refuses some look-behinds of unlimited length that are accepted here.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from sluiceway.java.regex import compile_java
from sluiceway.java_runtime import find_java

Question = tuple[str, str, str]
"""A pattern, a text and a replacement."""

_ELEMENTS = r"""
a b c A B é É ß K s ſ k 1 ٣ . ^ $ - _ # \d \D \w \W \s \S \h \v \R \b \B \A \z \Z \G \t \n \e \a \x41 \u00e9 \x{1F600} \0101 \cA
\. \- \Qa.b\E \Q*\E \p{L} \pN \p{Lu} \P{Ll} \p{LC} \p{Lower} \p{Upper} \p{Alpha} \p{Punct} \p{Space} \p{IsAlphabetic}
\p{IsUppercase} \p{IsGreek} \p{IsWhite_Space} \p{InGreek} \p{sc=Latin} \p{javaLowerCase} \N{HYPHEN-MINUS} \1 \2 \k<n> é{2}
[abc] [a-c] [^a-c] [a-z&&[^bc]] [a-c[x-z]] [^[^a]] []a] [a-] [\w.-] [^\W_] [&&a] [a&&b&&a] [a&&] [\d&&[1-3]] [--a] [a||b]
[[:alpha:]] [~~] [\Qa-\E] [^\x00-\x7f] [é-ü] [A-Z&&[^\p{Lu}]] [^\n] [\p{Lu}\d] [^\p{L}\s] (?i) (?u) (?iu) (?U) (?s) (?m) (?x)
(?d) (?-i)
"""  # noqa: RUF001
_MISTAKES = r"""
( ) [ ] { } * + ? | \ \q (?P<n>a) (?R) (?|a) (?#c) a{e<=1} (?<1>a) \p{Foo} \pX [b-a] {2 {,3} (?<=a+) \k<zz> \K \m \g<1> a{2,1}
(?<n>a)(?<n>b) [[a] [a&&[b] \x4 \u12 \c \0 \08 \p{ (?<=a{1,3}) \L<a> (*FAIL) \y \p{gc=Zz} \8 a{99999} (?~a) (?i-s
"""
ELEMENTS, MISTAKES = _ELEMENTS.split(), _MISTAKES.split()
QUANTIFIERS = ["", "", "", "", "*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "+?", "??", "*+", "++", "?+", "{0}", "{1,2}+"]
OPENINGS = ["(", "(", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?iu:", "(?-i:", "(?s:"]
CHARACTERS = [*"abcABéÉßKks1 \n\r\t_-.*:&#\x85\xa0", "\r\n", "\u0301", "\u0391", "\u03b1", "\u0663", "\u017f"]
CHARACTERS += ["\u2028", "\u212a", "\U0001f600"]
REPLACEMENTS = ["x", "", "[$0]", "$1", "$2$1", "${n}", r"\$", "$12", "$", "a\\", "$x"]


def random_pattern(source: random.Random, depth: int = 0) -> str:
    """Return a random pattern, now and then one that Java refuses."""
    parts = [_element(source, depth) + source.choice(QUANTIFIERS) for _ in range(source.choice((1, 1, 2, 2, 3)))]
    if source.random() < 0.15:
        parts.insert(source.randrange(len(parts) + 1), "|")
    return "".join(parts)


def _element(source: random.Random, depth: int) -> str:
    if depth < 3 and source.random() < 0.25:
        return source.choice(OPENINGS) + random_pattern(source, depth + 1) + ")"
    return source.choice(MISTAKES if source.random() < 0.02 else ELEMENTS)


def java_answers(questions: list[Question]) -> list[str]:
    """Return whether Java matches each text, and the text after the replacement of the first match; or Java's error."""
    lines = "\n".join(",".join(part.encode("utf-8").hex() for part in question) for question in questions)
    command = [str(find_java().executable), str(Path(__file__).with_name("Regexes.java"))]
    done = subprocess.run(command, input=lines.encode("ascii"), capture_output=True, check=True)
    return [bytes.fromhex(line.decode("ascii")).decode("utf-8") for line in done.stdout.splitlines()]


def own_answer(question: Question) -> str:
    """Return our answer to a question, in the form of Java's."""
    pattern, text, replacement = question
    try:
        regex = compile_java(pattern)
        return f"{str(regex.matches(text)).lower()} {regex.replace_first(text, replacement)}"
    except (ValueError, IndexError) as error:
        return f"error {error}"


def main(count: int = 20_000, seed: int = 1) -> None:
    """Ask both and print where they differ."""
    source = random.Random(seed)  # noqa: S311 (no secret)
    questions = [
        (random_pattern(source), "".join(source.choices(CHARACTERS, k=source.randrange(5))), source.choice(REPLACEMENTS))
        for _ in range(count)
    ]
    answers = zip(questions, java_answers(questions), map(own_answer, questions), strict=True)
    differing = [(question, java, own) for question, java, own in answers if java != own]
    refused = [java.startswith("error") + own.startswith("error") for _question, java, own in differing]
    results, verdicts, messages = (refused.count(each) for each in range(3))
    print(f"{count} asked: {results} results differ, {verdicts} are refused by one, {messages} messages differ")
    for (question, java, own), _count in sorted(zip(differing, refused, strict=True), key=lambda each: each[1])[:40]:
        print(f"{question!r}\n  Java: {java!r}\n  here: {own!r}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
