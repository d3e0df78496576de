"""Downloads files by HTTP and checks them with the checksums that are published beside them."""

from __future__ import annotations

import hashlib
import http.client
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from sluiceway.errors import ConfigError, ConnectError
from sluiceway.folders import sha256_of

_SCHEMES = ("http", "https")
_TIMEOUT_SECONDS = 60
_MOST_BYTES = 2 << 30
_CHUNK = 1 << 20
_CHECKSUM = re.compile(r"^\s*(?:SHA(?:256|1)\s*\([^)]*\)\s*=\s*)?([0-9a-fA-F]+)\b")  # as sha256sum and openssl print it
_DIGITS = {"sha256": 64, "sha1": 40}
_FAILED = (OSError, http.client.HTTPException)  # urllib's errors are OSErrors


def is_url(text: str) -> bool:
    """Return whether a text is an address of a file, by HTTP or else."""
    return "://" in text


def shown_url(url: str) -> str:
    """Return a URL without what may be secret in it: user, password, and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def download(url: str, folder: Path) -> Path:
    """Download a file into a folder, check it with ``URL.sha256`` or ``URL.sha1`` if the server has it, and return its path.

    Raises:
        ConfigError: the URL is none of a file by HTTP.
        ConnectError: the server does not answer or refuses, the file is too large, or the checksum is another one.
    """
    parts = urlsplit(url)
    name = unquote(parts.path).rpartition("/")[2]
    if parts.scheme not in _SCHEMES or not parts.hostname or name in ("", ".", "..") or "\0" in name:
        raise ConfigError(
            f"{shown_url(url)} is no URL of a file. It must begin with https:// or http:// and end with the file's name."
        )
    if parts.username is not None:
        raise ConfigError(f"The URL {shown_url(url)} has a user or a password. Download the file yourself, and name it instead.")
    target = folder / name
    try:
        with _opened(url) as answer, target.open("wb") as file:
            left = _MOST_BYTES
            while chunk := answer.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise ConnectError(f"{shown_url(url)} has more than {_MOST_BYTES >> 30} GiB. It is not downloaded.")
                file.write(chunk)
        _check(url, target)
    except _FAILED as error:
        raise ConnectError(f"The download of {shown_url(url)} failed: {error}. Check the address and the network.") from error
    return target


def _opened(url: str) -> IO[bytes]:
    opened: IO[bytes] = urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS)  # noqa: S310 (its scheme is checked)
    return opened


def _check(url: str, file: Path) -> None:
    """Compare a file with its published checksum, if there is one. Raises ConnectError."""
    address = urlsplit(url)
    for algorithm, digits in _DIGITS.items():
        try:
            with _opened(address._replace(path=f"{address.path}.{algorithm}").geturl()) as answer:
                text = answer.read(1024).decode("ascii", "replace")
        except urllib.error.HTTPError:
            continue
        match = _CHECKSUM.match(text)
        if match is None or len(match[1]) != digits:
            continue  # a page in place of the file
        found = sha256_of(file) if algorithm == "sha256" else hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()
        if found != match[1].lower():
            raise ConnectError(
                f"{shown_url(url)} is damaged: its {algorithm} is {found}, but {match[1].lower()} is published beside it. "
                "Try again later, or ask who published it."
            )
        return
