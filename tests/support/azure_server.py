"""A server with the protocol of Azure Blob Storage (Azurite) for tests, in a process of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sluiceway.stack.ports import free_port
from support.eventually import LIMIT, eventually

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has."""


@contextmanager
def azure_server(container: str) -> Iterator[Any]:
    """Start a server with an empty container, to which adlfs connects; yields its file system. Skips without Azurite."""
    executable = shutil.which("azurite-blob")
    if executable is None:
        pytest.skip("needs azurite-blob, which `npm install azurite` installs")
    adlfs = pytest.importorskip("adlfs")
    port = free_port()
    command = [executable, "--blobPort", str(port), "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    try:
        with pytest.MonkeyPatch.context() as patch:
            text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url};"
            patch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
            eventually(lambda: _listens(port), what="Azurite")
            files = adlfs.AzureBlobFileSystem(connection_string=text, use_listings_cache=False)
            files.mkdir(container)
            yield files
    finally:
        process.terminate()
        process.wait(LIMIT)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 2):
            return True
    except OSError:
        return False
