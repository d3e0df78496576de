from collections.abc import Sequence

class VenvPackException(Exception): ...

def pack(
    prefix: str | None = ...,
    output: str | None = ...,
    format: str = ...,
    python_prefix: str | None = ...,
    verbose: bool = ...,
    force: bool = ...,
    compress_level: int = ...,
    zip_symlinks: bool = ...,
    zip_64: bool = ...,
    filters: Sequence[tuple[str, str]] | None = ...,
) -> str: ...
