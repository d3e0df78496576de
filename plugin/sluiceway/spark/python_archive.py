"""Packs a Python environment into an archive for Spark's ``--archives``.

Unless it is given one, it makes a small environment: an Airflow environment is more than ten times as large as what a driver and
its tasks import. Spark itself brings PySpark, and ``--py-files`` brings Sluiceway.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distributions, requires
from pathlib import Path

from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.folders import scratch_folder
from sluiceway.installation import install_command, is_editable, origin

REQUIREMENTS = ("confluent-kafka", "cryptography", "javaproperties", "orjson", "prometheus-client", "regex")
"""The distributions that a driver and its tasks import."""

_PACKAGE = "sluiceway"
_PLUGIN_GROUPS = "sluiceway."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TAIL_LINES = 8
_INFO = "import json,sys;print(json.dumps(['%d.%d.%d'%sys.version_info[:3],sys.base_prefix]))"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PythonArchive:
    """A packed environment."""

    path: Path
    python_version: str
    python_prefix: str
    """The folder in which each machine must have this Python, because the archive has only a link to it."""
    distributions: tuple[str, ...]
    """Name and version of each distribution in it."""
    editable: tuple[str, ...]
    """Distributions whose modules are not in it, because they are installed in editable mode."""


def pack_new(
    requirements: Sequence[str],
    *,
    extras: Sequence[str] = (),
    python: str = sys.executable,
    python_prefix: str | None = None,
    output: Path | None = None,
    progress: Progress = lambda line: None,
) -> PythonArchive:
    """Make an environment with what executors need and pack it.

    Distributions that are installed here get the same version there, unless a requirement says otherwise.

    Args:
        requirements: further requirements in pip's form: names, wheels, folders, URLs.
        extras: Sluiceway's extras to include, such as ``jdbc``.
        python: the Python for which the environment is made. Its minor version must be that of the driver's Python.
        python_prefix: see ``PythonArchive``; default is that Python's own.
        output: the archive's path; the default name, in the current folder, contains a hash of the contents.
        progress: called with a line before each step.

    Raises:
        ConfigError: an extra does not exist, or the output has an unknown suffix.
        MissingToolError: pip, venv or venv-pack is missing or fails.
    """
    wanted = [*REQUIREMENTS, *(each for extra in extras for each in _extra(extra)), *requirements]
    _require_venv_pack()
    with scratch_folder("package") as work:
        environment, constraints = work / "environment", work / "constraints.txt"
        constraints.write_text("\n".join(_constraints(requirements)) + "\n", encoding="utf-8")
        progress(f"Installing {', '.join(wanted)} ...")
        _run([python, "-m", "venv", "--without-pip", str(environment)])
        pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "install", "--quiet"]
        _run([*pip, "--no-warn-script-location", "--constraint", str(constraints), *wanted])
        return pack_venv(environment, python_prefix=python_prefix, output=output, progress=progress)


def pack_venv(
    environment: Path, *, python_prefix: str | None = None, output: Path | None = None, progress: Progress = lambda line: None
) -> PythonArchive:
    """Pack an existing virtual environment as it is; see ``pack_new``."""
    _require_venv_pack()
    from venv_pack import VenvPackException, pack

    python = environment / "bin" / "python"
    if not (environment / "pyvenv.cfg").is_file():
        raise ConfigError("--venv", str(environment), "is not a virtual environment (it has no pyvenv.cfg)")
    version, prefix = json.loads(_run([str(python), "-c", _INFO]))
    installed = sorted(_installed(environment), key=_name)
    path = (output or Path(f"sluiceway-env-{_digest(installed, version, python_prefix or prefix)}.tar.gz")).absolute()
    progress(f"Packing {path.name} ...")
    try:
        pack(str(environment), output=str(path), python_prefix=python_prefix, force=True)
    except (VenvPackException, OSError) as error:
        raise ConfigError("--output", str(path), f"cannot be written: {error}") from error
    path.chmod(0o644)  # venv-pack leaves it to its owner only, who need not be the user that submits
    return PythonArchive(
        path,
        version,
        python_prefix or prefix,
        tuple(f"{_name(each)} {each.version}" for each in installed),
        tuple(_name(each) for each in installed if is_editable(each) and _name(each) != _PACKAGE),
    )


def plugin_distributions() -> list[str]:
    """Return the distributions installed here that register plugins of Sluiceway, except Sluiceway itself."""
    return sorted(
        _name(each)
        for each in distributions()
        if _name(each) != _PACKAGE and any(point.group.startswith(_PLUGIN_GROUPS) for point in each.entry_points)
    )


def _extra(name: str) -> list[str]:
    """Return the requirements of one of Sluiceway's extras."""
    try:
        lines = requires(_PACKAGE) or []
    except PackageNotFoundError:
        raise MissingToolError("Sluiceway is not installed here, so its extras are unknown. Install its wheel.") from None
    found = [line.partition(";") for line in lines if re.search(rf"""extra == ['"]{re.escape(name)}['"]""", line)]
    if not found:
        raise ConfigError("--extra", name, "is not one of Sluiceway's extras")
    return [requirement.strip() for requirement, _, _ in found]


def _constraints(requirements: Iterable[str]) -> Iterator[str]:
    """Yield ``name==version`` of the distributions installed here, except those for which a requirement has its own version."""
    free = {_PACKAGE, *filter(None, map(_own_version, requirements))}
    for each in distributions():
        if _name(each) not in free and not origin(each):  # one from a folder or URL is not in the index
            yield f"{_name(each)}=={each.version}"


def _own_version(requirement: str) -> str | None:
    """Return the name in a requirement that states a version or a file; None if the installed version applies."""
    stated, at, _ = requirement.partition("@")
    if not at and requirement.endswith(".whl"):
        return _normalized(Path(requirement).name.partition("-")[0])
    name = _NAME.match(stated)
    return _normalized(name[0]) if name and (at or re.search(r"[=<>!~]", requirement)) else None


def _installed(environment: Path) -> list[Distribution]:
    folders = [str(folder) for folder in environment.glob("lib/python*/site-packages")]
    return list(distributions(path=folders))


def _digest(installed: Iterable[Distribution], version: str, prefix: str) -> str:
    """Return a hash of the modules, which is the same for the same requirements on each machine."""
    digest = hashlib.sha256(f"{version} {prefix}".encode())
    for each in installed:
        digest.update(f"\n{_name(each)} {each.version}".encode())
        for file in sorted(each.files or (), key=str):
            # Scripts contain the environment's path, and some metadata the time or place of the installation.
            if file.hash is not None and file.parts[0] != ".." and ".dist-info" not in file.parts[0]:
                digest.update(f"{file} {file.hash.value}".encode())
    return digest.hexdigest()[:12]


def _name(distribution: Distribution) -> str:
    return _normalized(distribution.metadata["Name"] or "")


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _require_venv_pack() -> None:
    try:
        import venv_pack  # noqa: F401 (only whether it is installed)
    except ImportError:
        raise MissingToolError(f"venv-pack was not found. Install it: {install_command('package')}") from None


def _run(command: Sequence[str]) -> str:
    """Run a command and return its output; raise MissingToolError with its last lines if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise MissingToolError(f"{command[0]} cannot be started: {error.strerror}. Name a Python with --python.") from error
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_TAIL_LINES:])
        raise MissingToolError(f"'{' '.join(command[:5])} ...' ended with exit code {done.returncode}:\n{tail}")
    return done.stdout
