"""The go.mod with which Kubernetes is built from the Go module proxy."""

from __future__ import annotations

from support.clusters.kubernetes_build import APISERVER, HELM_CLI, go_mod

_UPSTREAM = """\
module k8s.io/kubernetes

go 1.24.0

godebug default=go1.24

require k8s.io/api v0.0.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
"""


def test_staging_modules_are_replaced_by_the_published_ones() -> None:
    lines = go_mod(APISERVER, _UPSTREAM).splitlines()
    published = f"v0.{APISERVER.version.partition('.')[2]}"
    assert f"require k8s.io/kubernetes v{APISERVER.version}" in lines
    assert [line for line in lines if line.startswith("replace")] == [
        f"replace k8s.io/{name} => k8s.io/{name} {published}" for name in ("api", "client-go")
    ]
    assert "godebug default=go1.24" in lines, "Go takes no other go version's defaults from a dependency"


def test_other_modules_need_no_replacement() -> None:
    assert "replace" not in go_mod(HELM_CLI, "module helm.sh/helm/v3\n\ngo 1.24.0\n")
