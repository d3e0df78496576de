"""Which pages of the documentation are run as printed, and how their output is compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.docs_pages import BLOCK, DOCS, NOT_RUN, ON_THE_DEMO, RUN, Shell, matches, run_page

MODULE = Path(__file__).parents[2] / "airflow/test_docs_pages.py"
#: What differs from one machine to the next.
_OF_ONE_MACHINE = re.compile(r"localhost:9092|127\.0\.0\.1:9092")


def commands(text: str) -> list[str]:
    """Return the blocks of commands, except those with a reason why no test runs them."""
    return [block for reason, kind, block in BLOCK.findall(text) if kind != "python" and not reason]


def with_commands() -> set[str]:
    pages = [*DOCS.glob("tutorial/*.md"), *DOCS.glob("how-to/*.md"), DOCS / "reference/cli.md"]
    return {str(page.relative_to(DOCS)) for page in pages if commands(page.read_text(encoding="utf-8"))}


def test_each_page_with_commands_is_run_or_says_why_not() -> None:
    assert with_commands() == {*RUN, *NOT_RUN}
    assert not set(RUN) & set(NOT_RUN)


def test_the_pages_that_are_run_have_a_test() -> None:
    assert set(re.findall(r'run_page\("([^"]+)"', MODULE.read_text(encoding="utf-8"))) == set(RUN) - set(ON_THE_DEMO)


@pytest.mark.parametrize("page", RUN)
def test_a_page_that_is_run_names_nothing_of_one_machine(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [block for block in commands(text) if _OF_ONE_MACHINE.search(block)] == []


@pytest.mark.parametrize(
    ("found", "shown", "equal"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\nb\n", "a", False),
        ("21 passed in 0.93s\n", "21 passed in ...s", True),
        ("20 passed in 0.93s\n", "21 passed in ...s", False),
        ("a (b) [c]\n", "a (b) [c]", True),
        ("a\nx\ny\nb\n", "a\n...\nb", True),
        ("a\nb\n", "a\n...\nb", True),
        ("ab\n", "a\n...\nb", False),
    ],
)
def test_output_is_compared_with_the_page(found: str, shown: str, equal: bool) -> None:
    assert matches(found, shown) is equal


def test_a_page_is_run_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nmake demo\necho 1 > file\nmkdir inner\ncd inner\n```\n```sh\ncd ..\n```\n"
        "```python\n# two.py\nprint(2)\n```\n```python\nnot = run\n```\n"
        "1. In a list:\n\n    ```sh\n    echo 3 >> file\n    ```\n\n<!-- not run: needs a cluster -->\n```sh\nfalse\n```\n"
        "```console\n$ cat file\n1\n3\n$ python code/two.py\n2\n```\n"
    )
    monkeypatch.setattr("support.docs_pages.DOCS", tmp_path)
    folder = tmp_path / "checkout"
    folder.mkdir()
    shell = Shell(folder, tmp_path / "home", "code")
    run_page("page.md", shell)
    page.write_text("```console\n$ echo 'sluiceway: no such topic' >&2; false\nsluiceway: no ...\n```\n")
    run_page("page.md", shell)
    page.write_text("```console\n$ echo sluiceway: no such topic\nsluiceway: no ...\n```\n")
    with pytest.raises(AssertionError, match="no such topic"):
        run_page("page.md", shell, within=0.0)
    page.write_text("```sh\nfalse\n```\n")
    with pytest.raises(AssertionError, match="false"):
        run_page("page.md", shell)
