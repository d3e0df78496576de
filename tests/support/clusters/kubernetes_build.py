"""Builds etcd, kube-apiserver and helm from the Go module proxy into the cache folder: ``make build-kubernetes``.

Needs Go 1.24 or newer and nothing else: no container, no root. On two cores it takes 8 minutes, and 4 GB for modules and
build files, which are removed at the end; the programs need 190 MB.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from sluiceway.folders import cache_home, file_lock

KUBERNETES = "1.34.4"
ETCD = "3.6.5"
HELM = "3.19.0"
_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class Program:
    """One program in the Go module proxy."""

    name: str
    package: str
    module: str
    version: str
    flags: str = "-s -w"

    @property
    def path(self) -> Path:
        """Return the path of the built program."""
        return cache_home() / "kubernetes" / f"{self.name}-{self.version}"


APISERVER = Program(
    "kube-apiserver",
    "k8s.io/kubernetes/cmd/kube-apiserver",
    "k8s.io/kubernetes",
    KUBERNETES,
    f"-s -w -X {_VERSION}.gitVersion=v{KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor={KUBERNETES.split('.')[1]}",
)
ETCD_SERVER = Program("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", ETCD)
HELM_CLI = Program("helm", "helm.sh/helm/v3/cmd/helm", "helm.sh/helm/v3", HELM)
PROGRAMS = (APISERVER, ETCD_SERVER, HELM_CLI)


def missing() -> str | None:
    """Return why the programs cannot be used, or None if all are built."""
    absent = [program.name for program in PROGRAMS if not program.path.exists()]
    if not absent:
        return None
    how = "run make build-kubernetes" if shutil.which("go") else "install Go 1.24 or newer and run make build-kubernetes"
    return f"{', '.join(absent)} not built: {how}"


def build(program: Program) -> Path:
    """Build a program unless it has been built, and return its path.

    Raises:
        subprocess.CalledProcessError: Go could not download or compile it.
    """
    home = program.path.parent
    with file_lock(home / f"{program.name}.lock"):
        if not program.path.exists():
            folder = home / "build" / program.name
            folder.mkdir(parents=True, exist_ok=True)
            _write_module(folder, program)
            made = folder / program.name
            _go(folder, "build", "-ldflags", program.flags, "-o", str(made), program.package)
            made.replace(program.path)
    return program.path


def build_all() -> None:
    """Build every program and remove the build files."""
    for program in PROGRAMS:
        print(f"{program.name} {program.version}: {build(program)}", flush=True)
    shutil.rmtree(HELM_CLI.path.parent / "build", ignore_errors=True)


def go_mod(program: Program, upstream: str) -> str:
    """Return the go.mod of a module that requires the program's, and whatever its own ``replace`` lines demand. No I/O.

    Go ignores ``replace`` in a dependency. Kubernetes replaces its staging modules by folders of its repository, so that their
    required version is v0.0.0; they are published as v0.MINOR.PATCH.
    """
    staged = re.findall(r"(k8s\.io/\S+) => \./staging", upstream)
    go = re.findall(r"^(?:go|godebug) .*$", upstream, re.MULTILINE)
    published = f"v0.{program.version.split('.', 1)[1]}"
    lines = ["module sluiceway.test/build", *go, f"require {program.module} v{program.version}"]
    return "\n".join([*lines, *(f"replace {module} => {module} {published}" for module in staged)]) + "\n"


def _write_module(folder: Path, program: Program) -> None:
    """Write a module whose only purpose is to compile the program."""
    (folder / "go.mod").write_text("module sluiceway.test/download\n\ngo 1.24.0\n", encoding="utf-8")
    download = _go(folder, "mod", "download", "-json", f"{program.module}@v{program.version}")
    upstream = Path(json.loads(download)["GoMod"]).read_text(encoding="utf-8")
    (folder / "go.mod").write_text(go_mod(program, upstream), encoding="utf-8")


def _go(folder: Path, *arguments: str) -> str:
    home = folder.parent
    environment = {
        **os.environ,
        "GOFLAGS": "-mod=mod -modcacherw -buildvcs=false",
        "GOPATH": str(home / "path"),
        "GOCACHE": str(home / "cache"),
        "CGO_ENABLED": "0",
    }
    command = ["nice", "-n", "10", "go", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    build_all()
