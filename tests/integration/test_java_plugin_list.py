"""The list of Java plugins in a plugin.path is that of a real Kafka Connect worker, bad plugins included."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sluiceway import discovery
from sluiceway.herder.validation import plugin_config
from sluiceway.java_plugins import finder, versions
from sluiceway.java_plugins.finder import use_java_plugins
from sluiceway.java_plugins.index import PluginIndex
from sluiceway.java_plugins.plugin_types import SERVICES
from sluiceway.java_plugins.runtime_jars import runtime_jars
from sluiceway.java_plugins.versions import check_versions
from sluiceway.stack import maven
from support.java_classes import SOURCE, class_file, write_jar
from support.java_plugins import CAMEL_TIMER, CONNECT_FILE, fetch_runtime, forget_plugins, plugin_folder, plugin_from
from support.peer import COORDINATES, PeerStandalone

pytestmark = pytest.mark.timeout(600)

_DEBEZIUM_JDBC = ("io.debezium:debezium-connector-jdbc:3.3.1.Final",)
_MIRROR = ("org.apache.kafka:connect-mirror:4.3.0",)
_MONGO = ("org.mongodb.kafka:mongo-kafka-connect:2.0.1",)

_PREDICATE = """
package bad;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;
public class %s<R extends ConnectRecord<R>> implements Predicate<R>%s {
    %s
    public ConfigDef config() { return new ConfigDef(); }
    public boolean test(R record) { return true; }
    public void configure(java.util.Map<String, ?> config) {}
    public void close() {}
}
"""
_WITH_VERSION = {
    "NullVersion": "public String version() { return null; }",
    "VersionThrows": 'public String version() { throw new IllegalStateException("no version"); }',
    "HasVersion": 'public String version() { return "3.2.1"; }',
}
_WITHOUT_VERSION = {
    "Works": "",
    "ConstructorThrows": 'public ConstructorThrows() { throw new IllegalStateException("no license"); }',
    "StaticBlockThrows": "static { if (true) throw new RuntimeException(); }",
    "NeedsOther": "private final Missing missing = new Missing();",
    "Overflows": "private final Object again = new Overflows<R>();",
    "PrivateConstructor": "private PrivateConstructor() {}",
}
_PROBE = """
package probe;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;
public class Probe<R extends ConnectRecord<R>> implements Predicate<R> {
    public ConfigDef config() {
        StringBuilder missing = new StringBuilder();
        for (String each : "%s".split(" "))
            try {
                Class.forName(each, false, getClass().getClassLoader());
            } catch (ClassNotFoundException error) {
                missing.append(each).append(' ');
            }
        return new ConfigDef().define("probe", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, missing.toString());
    }
    public boolean test(R record) { return true; }
    public void configure(java.util.Map<String, ?> config) {}
    public void close() {}
}
"""
_OF_CLASS_PATH = """
    javax.xml.bind.JAXBContext javax.activation.DataHandler jakarta.xml.bind.JAXBContext jakarta.activation.DataSource
    jakarta.annotation.PostConstruct jakarta.inject.Inject jakarta.servlet.http.HttpServlet jakarta.validation.Validator
    jakarta.ws.rs.core.Response org.glassfish.jersey.client.JerseyClientBuilder org.glassfish.jersey.server.ResourceConfig
    org.glassfish.jersey.servlet.ServletContainer org.glassfish.jersey.uri.UriTemplate org.glassfish.hk2.api.ServiceLocator
    org.eclipse.jetty.client.HttpClient org.eclipse.jetty.server.Server org.eclipse.jetty.util.ssl.SslContextFactory
    org.eclipse.jetty.ee10.servlet.ServletContextHandler com.fasterxml.jackson.jakarta.rs.json.JacksonJsonProvider
    com.fasterxml.jackson.module.jakarta.xmlbind.JakartaXmlBindAnnotationModule io.github.classgraph.ClassGraph
    io.swagger.v3.oas.annotations.Operation javassist.ClassPool org.aopalliance.intercept.MethodInterceptor
    org.jose4j.jwt.JwtClaims org.apache.maven.artifact.versioning.VersionRange com.fasterxml.jackson.databind.ObjectMapper
"""
_REMOVE = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as old: kept = {n: old.read(n) for n in old.namelist() if n != sys.argv[2]}
with zipfile.ZipFile(sys.argv[1], "w") as new: [new.writestr(*each) for each in kept.items()]
"""


def predicate(name: str, member: str, interfaces: str = "") -> dict[str, str]:
    """Return the source of a predicate by its name."""
    return {name: _PREDICATE % (name, interfaces, member)}


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fetch_runtime()
    monkeypatch.setattr(versions, "_tried", set())
    monkeypatch.setattr(finder, "_folders", [])
    yield
    forget_plugins()


def bad_plugins(folder: Path) -> None:
    """Make a location whose plugins are good, without a version, and impossible to create for each possible reason."""
    sources = {"Missing": "package bad; public class Missing {}"}
    for name, member in _WITHOUT_VERSION.items():
        sources |= predicate(name, member)
    for name, member in _WITH_VERSION.items():
        sources |= predicate(name, member, ", org.apache.kafka.connect.components.Versioned")
    location = plugin_from(folder, "bad", sources)
    jar = location / "bad.jar"
    subprocess.run([sys.executable, "-c", _REMOVE, str(jar), "bad/Missing.class"], check=True)
    write_jar(
        location / "newer.jar", {"bad.Newer": class_file("bad.Newer", SOURCE, java=99)}, {SOURCE: ["bad.Newer", "bad.Gone"]}
    )
    (location / "broken.jar").write_text("this is no jar")


def listed_by_connect(bootstrap: str, workdir: Path, plugin_path: Path, mode: str) -> set[tuple[str, str, str | None]]:
    """Return class, type and version of each plugin that a real worker finds in plugin.path only."""
    worker = {"plugin.path": str(plugin_path), "plugin.discovery": mode}
    peer = PeerStandalone(bootstrap, workdir, [], worker)
    peer.start(timeout=300)  # it reads all classes
    try:
        found = httpx.get(f"{peer.rest}/connector-plugins?connectorsOnly=false", timeout=60).json()
    finally:
        peer.stop()
    return {(each["class"], each["type"], each.get("version")) for each in found}


def listed_here(index: PluginIndex) -> set[tuple[str, str, str | None]]:
    kinds = set(SERVICES.values()) - {"configprovider"}
    plugins = [each for each in index.plugins() if each.kind in kinds]
    return {
        (each.class_name, each.kind, None if each.version == discovery.UNDEFINED_VERSION else each.version) for each in plugins
    }


def of_kafka(plugin: tuple[str, str, str | None]) -> bool:
    """Return whether a plugin is on the worker's class path."""
    return plugin[0].startswith("org.apache.kafka.connect.")


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.peer
@pytest.mark.parametrize("mode", ["hybrid_warn", "service_load"])
def test_the_list_equals_that_of_a_real_worker(kafka_bootstrap: str, tmp_path: Path, mode: str) -> None:
    folder = tmp_path / "plugins"
    for name, coordinates in (("camel", CAMEL_TIMER), ("debezium", _DEBEZIUM_JDBC), ("mirror", _MIRROR), ("mongo", _MONGO)):
        plugin_folder(folder, name, coordinates)
    bad_plugins(folder)
    index = PluginIndex([folder], mode)

    started = time.monotonic()
    check_versions(index, index.locations)
    here = listed_here(index)
    cold = time.monotonic() - started
    again = PluginIndex([folder], mode)
    started = time.monotonic()
    check_versions(again, again.locations)
    assert listed_here(again) == here
    warm = time.monotonic() - started

    connect = listed_by_connect(kafka_bootstrap, tmp_path / "peer", folder, mode)
    assert {each for each in here if not of_kafka(each)} == {each for each in connect if not of_kafka(each)}
    assert {each for each in here if of_kafka(each)} <= connect
    print(f"{mode}: {len(here)} plugins, {cold:.1f} s without and {warm:.2f} s with the stored scan")
    assert warm < 1


def test_plugins_that_cannot_be_created_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(_shared_cache(tmp_path)))
    bad_plugins(tmp_path / "plugins")
    plugin_folder(tmp_path / "plugins", "file", CONNECT_FILE)
    plugin_from(tmp_path / "plugins", "exits", predicate("Exits", "static { System.exit(3); }"))
    index = PluginIndex([tmp_path / "plugins"])

    check_versions(index, index.locations)

    assert {(each.class_name.rpartition(".")[2], each.version) for each in index.plugins()} == {
        ("Works", "undefined"),
        ("NullVersion", "null"),
        ("VersionThrows", "undefined"),
        ("HasVersion", "3.2.1"),
        ("Exits", "undefined"),
        ("FileStreamSinkConnector", "4.3.0"),
        ("FileStreamSourceConnector", "4.3.0"),
    }
    problems = {location.name: "\n".join(found) for location, found in index.problems().items()}
    for cause in (
        "ConstructorThrows cannot be created: java.lang.IllegalStateException: no license",
        "StaticBlockThrows cannot be created: java.lang.RuntimeException",
        "NeedsOther cannot be created: java.lang.ClassNotFoundException: bad.Missing",
        "Overflows cannot be created: java.lang.StackOverflowError",
        "Newer cannot be created: java.lang.UnsupportedClassVersionError: bad/Newer has been compiled by a more recent version",
        "META-INF/services lists bad.Gone, which is no plugin",
        "broken.jar cannot be read",
    ):
        assert cause in problems["bad"]
    assert "ended unexpectedly with exit code 3" in problems["exits"]


def _shared_cache(tmp_path: Path) -> Path:
    """Return a cache folder with the downloaded jars but without scans."""
    from sluiceway.folders import cache_home

    cache = tmp_path / "cache/sluiceway"
    (cache / "java-plugins").mkdir(parents=True)
    (cache / "maven").symlink_to(cache_home() / "maven")
    for each in (cache_home() / "java-plugins").iterdir():
        if each.name not in ("scans", "tests.lock"):
            (cache / "java-plugins" / each.name).symlink_to(each)
    return cache.parent


def test_plugins_have_the_classes_of_a_workers_class_path(tmp_path: Path) -> None:
    worker = {jar.name for jar in maven.resolve(COORDINATES, title="Kafka Connect")}
    assert worker - {jar.name for jar in runtime_jars()} == {"connect-file-4.3.0.jar"}

    plugin_from(tmp_path / "plugins", "probe", {"Probe": _PROBE % " ".join([*_OF_CLASS_PATH.split(), "org.example.Missing"])})
    use_java_plugins([tmp_path / "plugins"], {})
    [key] = plugin_config("probe.Probe")
    assert key.documentation.split() == ["org.example.Missing"]


def test_no_java_starts_for_a_plugin_path_without_java_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.java_plugins.versions.HostSlot", None)
    (tmp_path / "plugins/mine").mkdir(parents=True)
    (tmp_path / "plugins/mine/module.py").touch()
    write_jar(tmp_path / "plugins/drivers/driver.jar", {"org.example.Driver": class_file("org.example.Driver")})

    found = use_java_plugins([tmp_path / "plugins"], {})

    assert found is not None
    assert found.classes("sluiceway.connectors") == []
    assert list(found.named("sluiceway.connectors", "org.example.Driver")) == []
