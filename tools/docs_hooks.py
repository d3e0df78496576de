"""MkDocs hooks: add the pages at the repository's root to the site, and check that the site loads nothing from other hosts.

They also give each cell of a table the name of its column, which phones show, and keep short values in cells on one line.
"""

from __future__ import annotations

import html
import itertools
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
ROOT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

_REFERENCE_BOOST = 2  # who searches a key wants its definition before the pages that use it

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_MARKUP = re.compile(r"<[^>]+>")
_SHORT_CODE = re.compile(r"<code>(?=(?:[^<&]|&\w+;){1,10}</code>)")

_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
_TAG = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*>")
_EXTERNAL = re.compile(r"""\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
_EXTERNAL_STYLE = re.compile(r"""(?:@import\s+|url\()["']?((?:https?:)?//[^"')\s]+)""")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the root pages. They link to docs/..., which is the site's root."""
    for name in ROOT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rank the reference first in searches, and rewrite links that leave docs/.

    Those to root pages get these pages' place in the site; others of the checkout become plain text.
    """
    folder = posixpath.dirname(page.file.src_uri)
    if folder.startswith("reference"):
        page.meta.setdefault("search", {"boost": _REFERENCE_BOOST})

    def rewritten(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[2]))
        if target in ROOT_PAGES:
            return f"{link[1]}{posixpath.relpath(target, folder or '.')}{link[3] or ''}{link[4]}"
        return link[0]

    return _LINK.sub(rewritten, markdown)


def on_page_content(content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name the column in each cell of a table, since on a phone cells are one below the other, and mark short values.

    assets/site.css uses both.
    """
    return _TABLE.sub(_with_columns, content)


def _with_columns(table: re.Match[str]) -> str:
    names = [html.escape(html.unescape(_MARKUP.sub("", each))) for each in _HEADING.findall(table[0])]

    def named(row: re.Match[str]) -> str:
        columns = itertools.chain(names, itertools.repeat(""))
        cells = re.sub("<td", lambda _: f'<td data-column="{next(columns)}"', row[0])
        return _SHORT_CODE.sub('<code class="short">', cells)

    return _ROW.sub(named, table[0])


def on_post_build(*, config: MkDocsConfig) -> None:
    """Fail the build if a page or style sheet loads something from another host, or if the search index is missing."""
    site = Path(config.site_dir)
    found = [f"{path.relative_to(site)}: {url}" for path in sorted(site.rglob("*")) for url in _external(path)]
    if found:
        raise PluginError("The site must work offline, but it loads from other hosts: " + "; ".join(found))
    if not (site / "search/search_index.json").is_file():
        raise PluginError("The site has no search index: is the search plugin on in mkdocs.yml?")


def _external(path: Path) -> list[str]:
    """Return the URLs on other hosts that a built file makes browsers fetch; links that a reader may follow are not."""
    if path.suffix == ".html":
        text = path.read_text(encoding="utf-8")
        tags = [tag for tag in _TAG.findall(text) if 'rel="canonical"' not in tag]
        return [url for tag in tags for url in _EXTERNAL.findall(tag)]
    return _EXTERNAL_STYLE.findall(path.read_text(encoding="utf-8")) if path.suffix == ".css" else []
