"""Names that have broken out of folders."""

from __future__ import annotations

PIECES = [
    "..",
    ".",
    "/",
    "\\",
    "%2e",
    "%2F",
    "%5c",
    "%00",
    "\x00",
    "%",
    "~",
    "file:",
    "//host",
    "?",
    "#",
    "\ud83d",
    "\n",
    "a",
    "_delta_log",
    "ü",
]
"""Such names as a whole, and their pieces."""

WRITABLE_PIECES = [each for each in PIECES if each not in ("\ud83d", "\x00")]
"""Those that a file system and UTF-8 can hold as they are."""
