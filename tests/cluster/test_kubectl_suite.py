"""kubectl's own suite (Kubernetes' test/cmd) on `pumice up`: the parts of kubectl_suite.txt pass.

The scripts expect a token, a range of service addresses and a node of their own; these are put in their place in a copy.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from binaries import KUBERNETES, module_folder, programs, why_not
from suites import LIMIT_S, listed, up

pytestmark = pytest.mark.nightly

PASSING = listed("kubectl_suite.txt")
USED = ("test", "hack", "third_party/forked", "api/openapi-spec", "cluster")
NODE = """
apiVersion: v1
kind: Node
metadata: {name: 127.0.0.1, annotations: {save-managers: "true"}}
status: {capacity: {memory: 1Gi}}
"""
BEGIN = """
source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh
export CONTEXT=test SUPPORTED_RESOURCES=('*')
kubectl config set-credentials test-admin --token $TOKEN
kubectl config set-cluster local --insecure-skip-tls-verify --server https://127.0.0.1:$SECURE_API_PORT
kubectl config set-context test --user test-admin --cluster local
kubectl config use-context test
kubectl create clusterrolebinding always --clusterrole=cluster-admin --group=system:authenticated --user=bob --user=user1 --group=the-group
kubectl delete storageclass standard
kubectl delete node 127.0.0.1
kubectl create -f node.yaml
runTests
"""


def copied(folder: Path, token: str) -> None:
    """Kubernetes' scripts, for this token and these addresses."""
    source = module_folder(f"k8s.io/kubernetes@v{KUBERNETES}")
    for each in USED:
        shutil.copytree(source / each, folder / each, copy_function=shutil.copyfile)
    for path in [*(folder / "hack" / "testdata").rglob("*.yaml"), *(folder / "test" / "cmd").glob("*.sh")]:
        text = path.read_text().replace("admin-token", token)
        path.write_text(re.sub(r"10\.0\.0\.(1[0-9]*)", r"10.96.0.\1", text))
    for path in (folder / "test" / "fixtures" / "pkg" / "kubectl" / "plugins").rglob("kubectl-*"):
        path.chmod(0o755)


def passed(folder: Path) -> list[str]:
    """The parts of the suite that pass, in its order."""
    found = programs("kubectl", "kubectl-convert")
    (folder / "_output" / "bin").mkdir(parents=True)
    (folder / "kubeconfig").mkdir()
    (folder / "node.yaml").write_text(NODE)
    for name, path in found.items():
        (folder / "_output" / "bin" / name).symlink_to(path)
    with up(folder / "administrator", "kubectl", "-f", str(folder / "node.yaml")):
        config = yaml.safe_load((folder / "administrator").read_text())
        cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
        copied(folder, token)
        (folder / "tmp").mkdir()
        (folder / "tmp" / "apiserver.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        environment = os.environ | {
            "HOME": str(folder / "tmp"),
            "KUBECONFIG": str(folder / "kubeconfig" / "config"),  # paths beside it would be relative
            "KUBE_ROOT": str(folder),
            "KUBE_TEMP": str(folder / "tmp"),
            "TMPDIR": str(folder / "tmp"),
            "KUBE_JUNIT_REPORT_DIR": str(folder / "results"),
            "API_HOST": "127.0.0.1",
            "SECURE_API_PORT": cluster["server"].rpartition(":")[2],
            "PATH": os.pathsep.join([str(folder / "_output" / "bin"), os.environ["PATH"]]),
            "TOKEN": token,
            "TERM": "xterm",
            "ALLOW_SKEW": "1",
            "WHAT": "",
        }
        with (folder / "log").open("wb") as log:
            script = ["bash", "-o", "errexit", "-o", "nounset", "-o", "pipefail", "-c", BEGIN]
            subprocess.run(script, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    told = (folder / "log").read_text(errors="replace")
    failed = set(re.findall(r"^Error when running (\S+)$", told, re.MULTILINE))
    return [name for name in dict.fromkeys(re.findall(r"^Recording: (run_\S+)$", told, re.MULTILINE)) if name not in failed]


def test_what_has_passed_passes(tmp_path: Path) -> None:
    if why_not(["kubectl", "kubectl-convert"]):
        pytest.skip(why_not(["kubectl", "kubectl-convert"]))
    found = passed(tmp_path)
    assert not set(PASSING) - set(found), (tmp_path / "log").read_text(errors="replace")[-20000:]
