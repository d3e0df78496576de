"""Names the jars of Kafka Connect's runtime that Java plugins run in, and finds them on this machine. Downloads nothing.

They are the ones that Connect's class loaders, transforms, converters and clients need; no web server.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sluiceway.discovery import CONNECT_VERSION
from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.folders import cache_home

KAFKA_HOME = "KAFKA_HOME"
"""Environment variable with the folder of a Kafka installation, or of ``plugins fetch-runtime --to``."""

# The oldest version of connect-runtime with versions of plugins in its class loaders (KIP-891).
_OLDEST = (4, 1)

_TABLE = """\
at.yawk.lz4:lz4-java:1.10.2 252dabd586d22149a31661a8afc1a50747714eb1a298bd4a6e780c8c91a13866
com.fasterxml.jackson.core:jackson-annotations:2.21 53ca085f4a150f703f49e1aabd935bd03b43e1ea3d55d135438292af22cef56b
com.fasterxml.jackson.core:jackson-core:2.21.2 12e8655b100267b44d0f14d01b1f5082a5105e616174dc4307be1a761e92407b
com.fasterxml.jackson.core:jackson-databind:2.21.2 8c982f01f148d805f0aaac2339011244757e0df7c6ff8951f2fa3f433b8ed849
com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2 e581bbf3fc5622d16b57366dd41e10fc56921fb202879de2ef487f87dd9b30e7
com.fasterxml.jackson.module:jackson-module-blackbird:2.21.2 5ed62cdcd357a24b73de9280e167aa014d7b4c17d04823844d482274cf07097e
com.github.luben:zstd-jni:1.5.6-10 b6c3237e24b8252a5a9c3a0e1ae30ef8f323412e74bd358548b7a9e527d676df
jakarta.ws.rs:jakarta.ws.rs-api:3.1.0 6b3b3628b8b4aedda0d24c3354335e985497d8ef3c510b8f3028e920d5b8663d
org.apache.kafka:connect-api:4.3.0 7938f71e76e3b03cfba284a987a07d925533710166499264652e05eaba709429
org.apache.kafka:connect-json:4.3.0 4af42f973b7ed4def6d394055e9b46ea7da38f69c9d5a45fa4614b492a01ad2e
org.apache.kafka:connect-runtime:4.3.0 9c4a4a815302a23db37785729594f6362719fda62e6a74d812d1e2719995ec99
org.apache.kafka:connect-transforms:4.3.0 a1b6b347e26997e4e5ede01752a9ac572e8d938b48bf3a4b22c27890dca65b7e
org.apache.kafka:kafka-clients:4.3.0 97a5b492d4ad658fd2dfba969fa0e403c2e38c971fb1e083da4e391471925fc1
org.apache.logging.log4j:log4j-api:2.25.4 c4b642a7f047275215de117e0e3847eb2c7711d84a0aa7433e7b3c096daf341d
org.apache.logging.log4j:log4j-core:2.25.4 10fee2c0485d54fa44ee75d314f6295508f7b932281873db61a91b88073200e6
org.apache.logging.log4j:log4j-slf4j-impl:2.25.4 7ac68a0afcc83d54f48d116d79370a43f0a2a6b71b5c1d6dda943bb6a95ddbaa
org.apache.maven:maven-artifact:3.9.15 f154c31f15ac97c37b9cdf9f8d63cde5053c470d2daf54df7dfd3bb3c9e501c6
org.bitbucket.b_c:jose4j:0.9.6 7314af50cde9c99e8eaf43eee617a23edcc6bb43036221064355094999d837ef
org.codehaus.plexus:plexus-utils:3.6.1 05a63effd67e2d6b9d610cc82e2bd7473289d34802e57a529b28110f28af5679
org.slf4j:slf4j-api:1.7.36 d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0
org.xerial.snappy:snappy-java:1.1.10.7 4c766cb3f855415ee734b2392949a0b6f12a60879334a74518deaf6270d32e36
"""

_APACHE = "Apache-2.0"
_OTHER_LICENSES = {"jakarta.ws.rs-api": "EPL-2.0", "slf4j-api": "MIT", "zstd-jni": "BSD-2-Clause"}

EXCLUDED = (
    "com.fasterxml.jackson.jakarta.rs:*",
    "io.github.classgraph:*",
    "io.swagger.core.v3:*",
    "javax.activation:*",
    "javax.xml.bind:*",
    "org.eclipse.jetty:*",
    "org.eclipse.jetty.ee10:*",
    "org.glassfish.jersey.containers:*",
    "org.glassfish.jersey.core:*",
    "org.glassfish.jersey.inject:*",
)
"""Dependencies of connect-runtime, as ``group:artifact``, that only its web server and its own class scan need."""


@dataclass(frozen=True, slots=True)
class RuntimeJar:
    """One pinned jar of the runtime."""

    coordinates: str
    sha256: str

    @property
    def artifact(self) -> str:
        """The name of the artifact, without its version."""
        return self.coordinates.split(":")[1]

    @property
    def module(self) -> str:
        """The coordinates without the version."""
        return self.coordinates.rpartition(":")[0]

    @property
    def license(self) -> str:
        """The SPDX name of its license."""
        return _OTHER_LICENSES.get(self.artifact, _APACHE)

    @property
    def file_name(self) -> str:
        """The jar's name in Maven's repositories."""
        _group, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"


RUNTIME_JARS = tuple(RuntimeJar(*line.split()) for line in _TABLE.splitlines())
"""Connect's runtime as it is downloaded."""

PROVIDED = tuple(jar.module for jar in RUNTIME_JARS)
"""What a plugin gets from the runtime, as ``group:artifact``."""

API_ARTIFACTS = ("connect-api", "connect-runtime", "kafka-clients", "slf4j-api")
"""The artifacts whose classes Connect's class loaders never take from a plugin's own jars."""


def fetched_home() -> Path:
    """Return the folder into which ``plugins fetch-runtime`` downloads by default."""
    return cache_home() / "java-plugins" / f"runtime-{CONNECT_VERSION}"


def runtime_jars() -> list[Path]:
    """Return the jars of Connect's runtime: those below ``$KAFKA_HOME``, or the downloaded ones.

    Raises MissingToolError if neither is complete.
    """
    home = os.environ.get(KAFKA_HOME, "").strip()
    refused = []
    for folder in ([Path(home)] if home else []) + [fetched_home()]:
        jars, problem = _jars_below(folder / "libs")
        if problem is None:
            return jars
        refused.append(problem)
    msg = (
        f"Java plugins need the jars of Kafka Connect's runtime, which are not on this machine: {'; '.join(refused)}. "
        f"Run 'sluiceway plugins fetch-runtime', or set {KAFKA_HOME} to the folder of Kafka {CONNECT_VERSION}."
    )
    raise MissingToolError(msg)


def install_runtime(downloaded: Iterable[Path], home: Path) -> Path:
    """Copy the pinned jars among the downloaded ones to ``home/libs`` and return this folder.

    Raises ConnectError if a jar is missing or its SHA-256 is another one.
    """
    by_name = {jar.name: jar for jar in downloaded}
    libs = home / "libs"
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".libs-") as work:
        for pinned in RUNTIME_JARS:
            source = by_name.get(pinned.file_name)
            if source is None:
                raise ConnectError(f"The download of {pinned.coordinates} gave no {pinned.file_name}. Check the repository.")
            found = hashlib.sha256(source.read_bytes()).hexdigest()
            if found != pinned.sha256:
                raise ConnectError(
                    f"{source} is not {pinned.coordinates} as it was published: its SHA-256 is {found}, not {pinned.sha256}. "
                    "Delete it and check the repository."
                )
            shutil.copyfile(source, Path(work, pinned.file_name))
        libs.mkdir(exist_ok=True)
        for jar in sorted(Path(work).iterdir()):
            jar.replace(libs / jar.name)  # other processes see complete jars only
    return libs


def _jars_below(libs: Path) -> tuple[list[Path], str | None]:
    """Return the runtime's jars in a folder, or why they cannot be used."""
    present = {jar.name: jar for jar in libs.glob("*.jar")} if libs.is_dir() else {}
    if not present:
        return [], f"{libs} has no jars"
    found: list[Path] = []
    for pinned in RUNTIME_JARS:
        version = re.compile(rf"{re.escape(pinned.artifact)}-(\d+)\.(\d+).*\.jar")
        matches = {name: match for name in sorted(present) if (match := version.fullmatch(name))}
        if not matches:
            return [], f"{libs} has no {pinned.artifact}"
        name = next((each for each in matches if each == pinned.file_name), max(matches))
        major, minor = matches[name].groups()
        if pinned.artifact == "connect-runtime" and (int(major), int(minor)) < _OLDEST:
            return [], f"{libs} has Kafka {major}.{minor}, which is too old"
        found.append(present[name])
    return found, None
