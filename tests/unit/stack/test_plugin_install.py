"""Plugins from every kind of source, with a Maven repository and a web server on this machine."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sluiceway.errors import ConfigError, ConnectError, NotFoundError
from sluiceway.java_plugins.installed import PluginFolder
from sluiceway.java_plugins.runtime_jars import PROVIDED
from sluiceway.stack import downloads, maven
from sluiceway.stack.plugin_install import install, install_locked, upgrade
from support.java_classes import source_jar, write_jar
from support.maven_repository import serving

HUB = {"manifest.json": json.dumps({"name": "kafka-orders", "version": "2.1.0", "owner": {"username": "acme"}}).encode()}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> PluginFolder:
    return PluginFolder(tmp_path / "plugins")


class Maven:
    """Stands for ``maven.resolve``: modules by their coordinates, with the files of their jars and what they depend on."""

    def __init__(self, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.needs: dict[str, tuple[str, ...]] = {}
        self.newest: dict[str, str] = {}
        self.asked: list[tuple[str, ...]] = []
        monkeypatch.setattr(maven, "resolve", self.resolve)

    def add(self, coordinates: str, *needs: str, plugin: bool = True) -> Path:
        group, artifact, version = coordinates.split(":")
        jar = self.store / group / artifact / "jars" / f"{artifact}-{version}.jar"
        self.needs[coordinates] = needs
        self.newest[f"{group}:{artifact}"] = version
        return source_jar(jar, version=version) if plugin else write_jar(jar, {})

    def resolve(self, coordinates: Sequence[str], *, exclude: Sequence[str], title: str, progress: maven.Progress) -> list[Path]:
        self.asked.append(tuple(coordinates))
        progress(f"Fetching {title}")
        found: dict[str, Path] = {}
        wanted = [self._fixed(each) for each in coordinates]
        while wanted:
            each = wanted.pop(0)
            group, artifact, version = each.split(":")
            if f"{group}:{artifact}" in exclude or each in found:
                continue
            found[each] = self.store / group / artifact / "jars" / f"{artifact}-{version}.jar"
            wanted += self.needs[each]
        return list(found.values())

    def _fixed(self, coordinates: str) -> str:
        module, _, version = coordinates.rpartition(":")
        return f"{module}:{self.newest[module]}" if version == maven.LATEST else coordinates


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    found = Maven(tmp_path / "store", monkeypatch)
    found.add("org.apache.kafka:connect-api:4.3.0", plugin=False)
    found.add("org.example:text:3.0", plugin=False)
    found.add("org.example:orders:1.0", "org.example:text:3.0", "org.apache.kafka:connect-api:4.3.0")
    return found


def jars(folder: PluginFolder, name: str) -> list[str]:
    return sorted(str(each.relative_to(folder.location(name))) for each in folder.location(name).rglob("*.jar"))


def hub_zip(path: Path, files: Mapping[str, bytes] = HUB) -> Path:
    jar = source_jar(path.parent / "made.jar", version="2.1.0")
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"acme-kafka-orders-2.1.0/{name}", content)
        archive.write(jar, "acme-kafka-orders-2.1.0/lib/kafka-orders-2.1.0.jar")
        archive.write(jar, "acme-kafka-orders-2.1.0/lib/connect-api-2.0.0.jar")
        archive.write(jar, "acme-kafka-orders-2.1.0/lib/connect-api-helpers-1.0.jar")
    jar.unlink()
    return path


def test_a_module_is_installed_with_its_dependencies_but_without_the_runtimes(folder: PluginFolder, repository: Maven) -> None:
    said: list[str] = []

    found = install(folder, "org.example:orders:1.0", said.append)

    assert (found.name, found.source) == ("orders-1.0", "org.example:orders:1.0")
    assert jars(folder, "orders-1.0") == ["orders-1.0.jar", "text-3.0.jar"]
    assert sorted(found.sha256) == ["org.example:orders:1.0", "org.example:text:3.0"]
    jar = folder.location("orders-1.0") / "text-3.0.jar"
    assert found.sha256["org.example:text:3.0"] == hashlib.sha256(jar.read_bytes()).hexdigest()
    assert said == ["Fetching org.example:orders:1.0", f"Installed orders-1.0 in {folder.path}/orders-1.0"]
    assert install(folder, "org.example:orders:1.0", said.append) == found
    assert said[-1] == f"orders-1.0 is installed already in {folder.path}/orders-1.0"


def test_the_newest_version_is_installed_and_recorded(folder: PluginFolder, repository: Maven) -> None:
    repository.add("org.example:orders:2.0")

    assert install(folder, "org.example:orders", print).source == "org.example:orders:2.0"
    assert repository.asked == [(f"org.example:orders:{maven.LATEST}",)]


@pytest.mark.parametrize("module", PROVIDED)
def test_a_part_of_the_runtime_is_no_plugin(folder: PluginFolder, repository: Maven, module: str) -> None:
    with pytest.raises(ConfigError, match="is part of Kafka Connect's runtime"):
        install(folder, f"{module}:1.0", print)


def test_an_archive_of_confluent_hub_is_named_by_its_manifest(folder: PluginFolder, tmp_path: Path) -> None:
    said: list[str] = []

    found = install(folder, str(hub_zip(tmp_path / "download.zip")), said.append)

    assert found.name == "acme-kafka-orders-2.1.0"
    assert jars(folder, found.name) == ["lib/connect-api-helpers-1.0.jar", "lib/kafka-orders-2.1.0.jar"]
    assert said[0] == "Leaving out connect-api-2.0.0.jar, which the runtime has."
    assert found.sha256 == {"download.zip": hashlib.sha256((tmp_path / "download.zip").read_bytes()).hexdigest()}


@pytest.mark.parametrize("manifest", [b"", b"[]", b"{}", b'{"name": "x"}', b'{"owner": 1, "name": "a", "version": "b"}'])
def test_an_archive_with_another_manifest_is_named_by_its_file(folder: PluginFolder, tmp_path: Path, manifest: bytes) -> None:
    archive = hub_zip(tmp_path / "orders-plugin.ZIP", {"manifest.json": manifest})

    assert install(folder, str(archive), print).name == "orders-plugin"


def test_a_name_in_a_manifest_stays_in_the_folder(folder: PluginFolder, tmp_path: Path) -> None:
    manifest = json.dumps({"name": "../../x", "version": "/1", "owner": {"username": ".."}}).encode()

    found = install(folder, str(hub_zip(tmp_path / "a.zip", {"manifest.json": manifest})), print)

    assert folder.location(found.name).parent == folder.path
    assert {each.name for each in folder.path.iterdir()} == {".lock", "plugins.lock", found.name}


def test_a_folder_and_a_jar_are_copied(folder: PluginFolder, tmp_path: Path) -> None:
    jar = source_jar(tmp_path / "mine" / "lib" / "orders.jar")

    assert install(folder, str(tmp_path / "mine"), print).sha256 == {
        "lib/orders.jar": hashlib.sha256(jar.read_bytes()).hexdigest()
    }
    assert install(folder, str(jar), print).name == "orders"
    assert (jars(folder, "mine"), jars(folder, "orders")) == (["lib/orders.jar"], ["orders.jar"])


def test_what_has_no_plugin_is_not_installed(folder: PluginFolder, tmp_path: Path, repository: Maven) -> None:
    write_jar(tmp_path / "plain" / "plain.jar", {})
    (tmp_path / "plain" / "broken.jar").write_text("no jar")
    for source in (str(tmp_path / "plain"), "org.example:text:3.0"):
        with pytest.raises(ConnectError, match=rf"{source} has no plugin of Kafka Connect in \d jars.*Nothing was installed"):
            install(folder, source, print)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match="it must be a jar, an archive"):
        install(folder, str(tmp_path / "notes.txt"), print)
    for source in ("nothing", "a:b:c:d", "./missing.zip"):
        with pytest.raises(ConfigError, match="neither Maven coordinates"):
            install(folder, source, print)
    assert sorted(each.name for each in folder.path.iterdir()) == [".lock"]


def hub_bytes(tmp_path: Path) -> bytes:
    return hub_zip(tmp_path / "served.zip").read_bytes()


@pytest.mark.parametrize(("algorithm", "form"), [("sha256", "{}"), ("sha256", "{}  orders.zip\n"), ("sha1", "SHA1(o.zip)= {}\n")])
def test_a_url_is_checked_with_what_is_published_beside_it(
    folder: PluginFolder, tmp_path: Path, algorithm: str, form: str
) -> None:
    data = hub_bytes(tmp_path)
    right, wrong = (form.format(hashlib.new(algorithm, each).hexdigest()).encode() for each in (data, data + b"!"))
    checksum = f"/d/orders.zip.{algorithm}"
    with serving({"/d/orders.zip": data, checksum: wrong}) as server:
        url = f"{server.url}/d/orders.zip?token=hunter2"
        with pytest.raises(ConnectError, match=f"orders.zip is damaged: its {algorithm} is") as error:
            install(folder, url, print)
        assert "hunter2" not in str(error.value)
        server.files[checksum] = right
        said: list[str] = []
        assert install(folder, url, said.append).source == url
        assert said[0] == f"Downloading {server.url}/d/orders.zip ..."


def test_a_url_without_a_checksum_is_installed_and_one_that_fails_is_not(folder: PluginFolder, tmp_path: Path) -> None:
    page = b"<html>not found</html>"
    with serving({"/orders.zip": hub_bytes(tmp_path), "/orders.zip.sha256": page}) as server:
        assert install(folder, f"{server.url}/orders.zip", print).name == "acme-kafka-orders-2.1.0"
        with pytest.raises(ConnectError, match=r"/none.zip failed: HTTP Error 404"):
            install(folder, f"{server.url}/none.zip", print)
    with pytest.raises(ConnectError, match=r"orders\.zip failed"):
        install(folder, f"{server.url}/orders.zip", print)


@pytest.mark.parametrize("url", ["ftp://h/a.zip", "file:///etc/a.zip", "https:///a.zip", "https://h/", "https://h/.."])
def test_other_urls_are_refused(folder: PluginFolder, url: str) -> None:
    with pytest.raises(ConfigError, match="is no URL of a file"):
        install(folder, url, print)


def test_a_url_with_a_password_is_refused_without_naming_it(folder: PluginFolder) -> None:
    with pytest.raises(ConfigError) as error:
        install(folder, "https://me:hunter2@h/a.zip", print)
    assert "hunter2" not in str(error.value)
    assert "Download the file yourself" in str(error.value)


def test_a_download_that_is_too_large_is_refused(folder: PluginFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "_MOST_BYTES", 10)
    with serving({"/a.zip": hub_bytes(tmp_path)}) as server, pytest.raises(ConnectError, match="is not downloaded"):
        install(folder, f"{server.url}/a.zip", print)


def test_another_machine_repeats_the_installation(tmp_path: Path, repository: Maven) -> None:
    here, there = PluginFolder(tmp_path / "here"), PluginFolder(tmp_path / "there")
    source_jar(tmp_path / "mine" / "orders.jar")
    with serving({"/orders.zip": hub_bytes(tmp_path)}) as server:
        for source in ("org.example:orders", f"{server.url}/orders.zip", str(tmp_path / "mine")):
            install(here, source, print)
        repository.add("org.example:orders:2.0")  # what is newer must not be installed
        (tmp_path / "mine").rename(tmp_path / "moved")
        (tmp_path / "carried").mkdir()
        lock = here.lock_file.rename(tmp_path / "carried" / "plugins.lock")
        with pytest.raises(ConnectError, match=r"mine of .*plugins.lock is not on this machine. Copy it there, or into"):
            install_locked(there, lock, print)
        (tmp_path / "moved").rename(tmp_path / "carried" / "mine")

        assert [each.name for each in install_locked(there, lock, print)] == ["acme-kafka-orders-2.1.0", "mine", "orders-1.0"]

    assert there.lock_file.read_bytes() == lock.read_bytes()
    for name in there.plugins():
        assert jars(here, name) == jars(there, name)
    assert repository.asked[-1] == ("org.example:orders:1.0",)


def test_a_dependency_without_an_exact_version_is_the_one_of_the_lock_file(
    folder: PluginFolder, tmp_path: Path, repository: Maven
) -> None:
    install(folder, "org.example:orders:1.0", print)
    repository.add("org.example:text:4.0", plugin=False)
    repository.needs["org.example:orders:1.0"] = ("org.example:text:4.0",)
    there = PluginFolder(tmp_path / "there")
    install_locked(there, folder.lock_file, print)

    assert jars(there, "orders-1.0") == ["orders-1.0.jar", "text-3.0.jar"]
    assert repository.asked[-1] == ("org.example:orders:1.0", "org.example:text:3.0")


def test_what_differs_from_the_lock_file_is_not_installed(folder: PluginFolder, tmp_path: Path, repository: Maven) -> None:
    install(folder, "org.example:orders:1.0", print)
    lock = tmp_path / "plugins.lock"
    lock.write_bytes(folder.lock_file.read_bytes())
    with folder.changing() as work:
        folder.remove("orders-1.0", work)
    (repository.store / "org.example/text/jars/text-3.0.jar").write_bytes(b"other")

    with pytest.raises(ConnectError, match=r"lock file was written: the SHA-256 of org.example:text:3.0 differs. Nothing"):
        install_locked(folder, lock, print)
    assert not folder.location("orders-1.0").exists()
    with pytest.raises(ConnectError, match=r"none\.lock does not exist"):
        install_locked(folder, tmp_path / "none.lock", print)


def test_a_missing_plugin_is_installed_again_by_its_own_lock_file(
    folder: PluginFolder, tmp_path: Path, repository: Maven
) -> None:
    install(folder, "org.example:orders:1.0", print)
    folder.location("orders-1.0").rename(tmp_path / "gone")

    install_locked(folder, folder.lock_file, print)

    assert jars(folder, "orders-1.0") == ["orders-1.0.jar", "text-3.0.jar"]


def test_an_upgrade_replaces_the_old_version(folder: PluginFolder, tmp_path: Path, repository: Maven) -> None:
    install(folder, "org.example:orders:1.0", print)
    said: list[str] = []
    assert upgrade(folder, "orders-1.0", said.append).name == "orders-1.0"
    assert said[-1].startswith("orders-1.0 is installed already")
    repository.add("org.example:orders:2.0")

    assert upgrade(folder, "orders-1.0", said.append).source == "org.example:orders:2.0"

    assert list(folder.plugins()) == ["orders-2.0"]
    assert not folder.location("orders-1.0").exists()
    assert said[-1] == "Removed orders-1.0"
    with pytest.raises(NotFoundError, match=r"no installed plugin orders-1.0. Installed: orders-2.0"):
        upgrade(folder, "orders-1.0", print)
    install(folder, str(source_jar(tmp_path / "mine.jar")), print)
    with pytest.raises(ConnectError, match=r"mine came from .*mine.jar. Install its new version"):
        upgrade(folder, "mine", print)
