"""Names the jars of Kafka Connect's runtime that Java plugins run in, and finds them on this machine. Downloads nothing.

They are those of a Kafka Connect worker's class path: plugins may need any of them, though Sluiceway needs the first ones only.
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

_OF_WORKERS = """\
com.fasterxml.jackson.jakarta.rs:jackson-jakarta-rs-base:2.21.2 40f4c57a2e6f34505338da188724e7ace7b343dde3964b76a12c993cdedad1af
com.fasterxml.jackson.jakarta.rs:jackson-jakarta-rs-json-provider:2.21.2
    ca969ea798efedc4b56589505fab51eb69c11a361b2e7583855593fc8690a666
com.fasterxml.jackson.module:jackson-module-jakarta-xmlbind-annotations:2.21.2
    f507551c823b137c8487275fc171652a78a4f083732e349e1d3cb42e568dd7e4
com.sun.activation:jakarta.activation:2.0.1 b9e24b7dd6e07495562ea96531be3130c96dba4d78e1dfd88adbbdebf4332871
io.github.classgraph:classgraph:4.8.179 16558357f234052370109127a45d69a9bd6d8646925594792634486dc48b159d
io.swagger.core.v3:swagger-annotations:2.2.39 ea3017076809f8104ff8a130dc4c12db8c67595aa1d978104a9beca8277a7d29
jakarta.activation:jakarta.activation-api:2.1.0 56e8d994095fe49c28138c60291482f66f18d12ac2b720e938697dce6a3135c7
jakarta.annotation:jakarta.annotation-api:2.1.1 5f65fdaf424eee2b55e1d882ba9bb376be93fb09b37b808be6e22e8851c909fe
jakarta.inject:jakarta.inject-api:2.0.1 f7dc98062fccf14126abb751b64fab12c312566e8cbdc8483598bffcea93af7c
jakarta.servlet:jakarta.servlet-api:6.0.0 c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef
jakarta.validation:jakarta.validation-api:3.0.2 291c25e6910cc6a7ebd96d4c6baebf6d7c37676c5482c2d96146e901b62c1fc9
jakarta.xml.bind:jakarta.xml.bind-api:3.0.1 b8fb4bee3ff5b5c1ef77144d8411316018d7bbd41fcf1ede0646f7978546b867
javax.activation:activation:1.1.1 ae475120e9fcd99b4b00b38329bd61cdc5eb754eee03fe66c01f50e137724f99
javax.activation:javax.activation-api:1.2.0 43fdef0b5b6ceb31b0424b208b930c74ab58fac2ceeb7b3f6fd3aeb8b5ca4393
javax.xml.bind:jaxb-api:2.3.1 88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06
org.eclipse.jetty.ee10:jetty-ee10-servlet:12.0.34 08030501c5868ba348e0e349121cb3493586c29d438c725bf76b0559e8d5f5ed
org.eclipse.jetty.ee10:jetty-ee10-servlets:12.0.34 bf9fe841e09f39d498838965b57e52b79f12e7bd5e259e645cc9e0a6cbe96426
org.eclipse.jetty:jetty-alpn-client:12.0.34 dde78ab533961bb853a8ce5a23a90d4dd54cd6522e9e7f90566ca7f44e035ef9
org.eclipse.jetty:jetty-client:12.0.34 b77b7535a809c78af71126b90aed0836cc9f9ac80d32e5cbf7a07025ace14401
org.eclipse.jetty:jetty-http:12.0.34 63890ecc5bb8bf26c4dd0952ef2d0d3dd3f7434b37b21e51f7ea8dfbe96b9dc0
org.eclipse.jetty:jetty-io:12.0.34 3704daeb82b39041ee5e6f810636c2fcb9a10476cdbf0fd067e584ed3110d66a
org.eclipse.jetty:jetty-security:12.0.34 e9a595eff775859a5461c0ce05e27ace5182ee1fdc1b17016453fa41ca0e1560
org.eclipse.jetty:jetty-server:12.0.34 fb7a1401b7b2358e9cb975764c54fac72fcecd7ae5199369041118603cd3fd7d
org.eclipse.jetty:jetty-session:12.0.34 a161ae531c5d6a695f17a547fdf90746dcd929f1abac5c60c7061a6fb20d346f
org.eclipse.jetty:jetty-util:12.0.34 3f8906cd72428d87dbbc0bd915192ce0f426e9db7805d3b0337588c1b6d7206e
org.glassfish.hk2.external:aopalliance-repackaged:3.0.6 a82b6d1a348324ef88dc807c7cd7aaf633985cbff7b30036fb61a1b86981d840
org.glassfish.hk2:hk2-api:3.0.6 c049a21a9fd9316c7e291a2bc28835f70d25affb623dc1599a83b6b84ec83a4f
org.glassfish.hk2:hk2-locator:3.0.6 e2664d21b017c3aa1518b913264602bea604edc54d356103c10afba99abd04fc
org.glassfish.hk2:hk2-utils:3.0.6 fc84d85a0744b576d9ec7db5845eeb998ed532a9450dd19c8c922c3ee6926206
org.glassfish.hk2:osgi-resource-locator:1.0.3 aab5d7849f7cfcda2cc7c541ba1bd365151d42276f151c825387245dfde3dd74
org.glassfish.jersey.containers:jersey-container-servlet-core:3.1.10
    fd15e7e37215d772ccdae8d4076c41a11ad3fec9ca88a1f8a8f6dacf4663bb69
org.glassfish.jersey.containers:jersey-container-servlet:3.1.10 4aadc66d2d36afb273b3898581d6aa51e0f992308d56fd51b8e3201efa461f67
org.glassfish.jersey.core:jersey-client:3.1.10 96cf86c23b515da20a30a39633a920f12a420d1e5f02c55ef5577ca2694d11c6
org.glassfish.jersey.core:jersey-common:3.1.10 b8df5de87d48d6abf555f340755a056c8cb29a660af958e959db8a4cb3552b54
org.glassfish.jersey.core:jersey-server:3.1.10 1b33a9be417b72f7ceef3afe9780781b66122b0f1db78f2f82502988072cfab0
org.glassfish.jersey.inject:jersey-hk2:3.1.10 00ed71c496a856ac1f73272482a7abe27b5a96b823c29cc08f4b708c8d3e647e
org.javassist:javassist:3.30.2-GA eba37290994b5e4868f3af98ff113f6244a6b099385d9ad46881307d3cb01aaf
"""

_APACHE = "Apache-2.0"
_OTHER_LICENSES = {
    **dict.fromkeys(("activation", "javax.activation-api", "jaxb-api"), "CDDL-1.0"),
    **dict.fromkeys(("jakarta.activation", "jakarta.activation-api", "jakarta.xml.bind-api"), "BSD-3-Clause"),
    **dict.fromkeys(("jakarta.annotation-api", "jakarta.servlet-api", "jakarta.ws.rs-api"), "EPL-2.0"),
    "classgraph": "MIT",
    "slf4j-api": "MIT",
    "zstd-jni": "BSD-2-Clause",
}
_ECLIPSE = ("org.glassfish.hk2", "org.glassfish.jersey")


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
        """The SPDX name of its license, or of one of those to choose from."""
        return _OTHER_LICENSES.get(self.artifact, "EPL-2.0" if self.coordinates.startswith(_ECLIPSE) else _APACHE)

    @property
    def file_name(self) -> str:
        """The jar's name in Maven's repositories."""
        _group, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"


def _read(table: str) -> tuple[RuntimeJar, ...]:
    words = table.split()
    return tuple(map(RuntimeJar, words[::2], words[1::2]))


_NEEDED = _read(_TABLE)
"""The jars that Connect's class loaders, transforms, converters and clients need."""

RUNTIME_JARS = (*_NEEDED, *_read(_OF_WORKERS))
"""Connect's runtime as it is downloaded."""

PROVIDED = tuple(jar.module for jar in _NEEDED)
"""The jars that an installed plugin does not get, as ``group:artifact``. It keeps its own versions of the rest, which fit it."""

API_ARTIFACTS = ("connect-api", "connect-runtime", "kafka-clients", "slf4j-api")
"""The artifacts whose classes Connect's class loaders never take from a plugin's own jars."""


def fetched_home() -> Path:
    """Return the folder into which ``plugins fetch-runtime`` downloads by default."""
    return cache_home() / "java-plugins" / f"runtime-{CONNECT_VERSION}"


def runtime_jars() -> list[Path]:
    """Return the jars of Connect's runtime: all those of ``$KAFKA_HOME``, as on a worker's class path, or the downloaded ones.

    Raises MissingToolError if neither is complete.
    """
    home = os.environ.get(KAFKA_HOME, "").strip()
    refused = []
    for folder, wanted in ([(Path(home), _NEEDED)] if home else []) + [(fetched_home(), RUNTIME_JARS)]:
        jars, problem = _jars_below(folder / "libs", wanted)
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


def _jars_below(libs: Path, wanted: Iterable[RuntimeJar]) -> tuple[list[Path], str | None]:
    """Return the jars in a folder, the wanted ones first, or why they cannot be used."""
    present = {jar.name: jar for jar in sorted(libs.glob("*.jar"))} if libs.is_dir() else {}
    if not present:
        return [], f"{libs} has no jars"
    found: list[Path] = []
    for pinned in wanted:
        version = re.compile(rf"{re.escape(pinned.artifact)}-(\d+)\.(\d+).*\.jar")
        matches = {name: match for name in present if (match := version.fullmatch(name))}
        if not matches:
            return [], f"{libs} has no {pinned.artifact}"
        name = next((each for each in matches if each == pinned.file_name), max(matches))
        major, minor = matches[name].groups()
        if pinned.artifact == "connect-runtime" and (int(major), int(minor)) < _OLDEST:
            return [], f"{libs} has Kafka {major}.{minor}, which is too old"
        found.append(present[name])
    return [*found, *(jar for jar in present.values() if jar not in found)], None
