"""A server with S3's protocol (moto) for tests, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.moto_server import MotoServer


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


@contextmanager
def s3_server(bucket: str = "lake") -> Iterator[S3Server]:
    """Start a server with an empty bucket. Skips the test if moto is not installed."""
    pytest.importorskip("s3fs")
    with MotoServer() as started:
        server = S3Server(started.url, bucket, started.log)
        server.files().mkdir(bucket)
        yield server
