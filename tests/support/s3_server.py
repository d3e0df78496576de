"""A server with S3's protocol (moto) for tests, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from sluiceway.stack.ports import free_port
from support.eventually import LIMIT, eventually

_SERVE = "import sys; from moto.server import main; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"


@dataclass(frozen=True)
class S3Server:
    """The server and one bucket in it."""

    url: str
    bucket: str
    log: Path
    """The output of the server, a line for each request."""

    @property
    def config(self) -> dict[str, str]:
        return {
            "s3.bucket.name": self.bucket,
            "s3.region": "us-east-1",
            "store.url": self.url,
            "aws.access.key.id": "key",
            "aws.secret.access.key": "secret",
        }

    def requests(self) -> list[str]:
        """Return the requests so far, such as ``GET /lake?list-type=2 HTTP/1.1``."""
        lines = (line.split('"') for line in self.log.read_text(errors="replace").splitlines())
        return [parts[1] for parts in lines if len(parts) == 3]

    def files(self) -> Any:
        """Return the file system of fsspec."""
        s3fs = pytest.importorskip("s3fs")
        return s3fs.S3FileSystem(key="key", secret="secret", endpoint_url=self.url, use_listings_cache=False)

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        process.wait(LIMIT)


@contextmanager
def s3_server(bucket: str = "lake") -> Iterator[S3Server]:
    """Start a server with an empty bucket. Skips the test if moto is not installed."""
    pytest.importorskip("moto")
    pytest.importorskip("s3fs")
    port = free_port()
    with tempfile.NamedTemporaryFile(prefix="s3-server-", suffix=".log") as log:
        server = S3Server(f"http://127.0.0.1:{port}", bucket, Path(log.name))
        process = subprocess.Popen([sys.executable, "-c", _SERVE, str(port)], stdout=subprocess.DEVNULL, stderr=log)
        try:
            eventually(lambda: answers(server.url), what="moto")
            server.files().mkdir(bucket)
            yield server
        finally:
            server.stop(process)


def answers(url: str) -> bool:
    """Return whether a server answers a request."""
    try:
        with urlopen(url, timeout=2):  # noqa: S310 (our own server)
            return True
    except OSError:
        return False
