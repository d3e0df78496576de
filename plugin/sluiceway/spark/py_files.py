"""The package as a zip for ``--py-files``, so that it reaches executors by itself (Spark refuses wheels)."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

import sluiceway
from sluiceway.folders import cache_home


def package_zip(folder: Path | None = None) -> Path:
    """Return a zip of the installed package, made anew when a source file changed.

    It holds what executors need; operators and sensors stay with Airflow. ``folder`` defaults to the user's cache folder.
    The name holds a hash of the contents, so executors never see an old copy under a known name.
    """
    root = Path(sluiceway.__file__).parent
    sources = sorted(root.rglob("*.py"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(str(source.relative_to(root)).encode())
        digest.update(source.read_bytes())
    folder = folder or cache_home()
    target = folder / f"sluiceway-{digest.hexdigest()[:16]}.zip"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.NamedTemporaryFile(dir=folder, suffix=".tmp", delete=False) as scratch,
        zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for source in sources:
            archive.write(source, Path("sluiceway") / source.relative_to(root))
    Path(scratch.name).replace(target)  # atomic: another process making the same zip does no harm
    return target
