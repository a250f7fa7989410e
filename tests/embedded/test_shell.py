"""The shell of simulated containers: what it answers, and that nothing that it is told makes it run on, fail or take memory."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given, strategies as st

from pumice.cluster.nodes.container_files import environment, mounted
from pumice.cluster.nodes.shell import MOST_SPENT, MOST_WRITTEN, Ran, Shell
from pumice.cluster.nodes.shell_words import WORDS

FILES = {"/etc/app/a.conf": b"one\ntwo\n", "/etc/app/b": b"x", "/data/": b""}


def shell() -> Shell:
    return Shell(WORDS, {"A": "1 2", "HOSTNAME": "h"}, dict(FILES), {}, lambda: 0.0)


def said(line: str, stdin: bytes = b"") -> Ran:
    return shell().run(["sh", "-c", line], stdin)


@pytest.mark.parametrize(
    ("line", "out"),
    [
        ("echo a  b 'c  d' \"e $A\"", "a b c  d e 1 2\n"),
        ("printf '%s-%d\\n' x 3", "x-3\n"),
        ("echo $A ${NONE:-d} $? $(echo in $(echo side))", "1 2 d 0 in side\n"),
        ("false && echo no || echo yes; true || echo no", "yes\n"),
        ("cat /etc/app/a.conf | grep -v one | wc -l", "1\n"),
        ("ls /etc/app; cd /etc; pwd; ls", "a.conf\nb\n/etc\napp\n"),
        ("echo 1 > /tmp/f; echo 2 >> /tmp/f; cat < /tmp/f; rm /tmp/f; test -e /tmp/f || echo gone", "1\n2\ngone\n"),
        ("mkdir -p /tmp/d; [ -d /tmp/d ] && echo made; test -f /etc/app/b && test -d /data && echo there", "made\nthere\n"),
        ("X=3; Y=$X; [ $Y = 3 ] && [ -z '' ] && [ -n a ] && [ a != b ] && echo same", "same\n"),
        ("env | head -n 1; printenv HOSTNAME; hostname; whoami; date", "A=1 2\nh\nh\nroot\n1970-01-01T00:00:00Z\n"),
        ("echo x | tee /tmp/t >/dev/null; cat /tmp/t # done\necho next", "x\nnext\n"),
        ("cat", "read\n"),
        ("nothing 2>/dev/null; cat /none 2>&1", "cat: /none: No such file or directory\n"),
    ],
)
def test_shell_says(line: str, out: str) -> None:
    assert said(line, b"read\n").out.decode() == out


@pytest.mark.parametrize(
    ("line", "code", "err"),
    [
        ("exit 3; echo no", 3, ""),
        ("nginx -v", 127, "not found: this container is simulated"),
        ("cat /etc", 1, "Is a directory"),
        ("cd /none", 1, "No such file"),
        ("echo to >&2; false", 1, "to\n"),
        ("grep", 1, "grep: "),
        ("cat < /none", 1, "can't open /none"),
        ("tar xf -", 1, "tar: "),
    ],
)
def test_shell_fails_as_one_does(line: str, code: int, err: str) -> None:
    ran = said(line, b"no archive" * 100)
    assert ran.code == code and err in ran.err.decode() and not ran.out


def test_files_go_in_and_out_by_tar() -> None:
    one = shell()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("../../f")
        entry.size = 2
        archive.addfile(entry, io.BytesIO(b"hi"))
    assert one.run(["tar", "xmf", "-", "-C", "/tmp"], packed.getvalue()).code == 0 and one.written == {"/f": b"hi"}
    ran = one.run(["tar", "cf", "-", "/etc/app"])
    with tarfile.open(fileobj=io.BytesIO(ran.out)) as archive:
        assert sorted(archive.getnames()) == ["etc/app/a.conf", "etc/app/b"]


@pytest.mark.parametrize(
    "line",
    [
        "A=$A$A;" * 60 + "echo $A | wc -c",
        "echo " + "$A" * 20_000 + " > /tmp/f; " + "cat /tmp/f /tmp/f /tmp/f >> /tmp/f;" * 40,
        "echo " + "$(" * 5000 + "echo" + ")" * 5000,
        "sh -c 'sh -c \"sh -c $0\"';" * 3000,
        "echo x;" * 100_000,
    ],
)
def test_what_grows_is_bounded(line: str) -> None:
    one = shell()
    ran = one.run(["sh", "-c", line])
    assert len(ran.out) + len(ran.err) <= 2 * MOST_SPENT and sum(map(len, one.written.values())) <= MOST_WRITTEN


@given(st.text("ab $(){}'\"\\;|&<>\n#=-[]tarcheow/?!0123456789\0é", max_size=60))
def test_any_line_ends_and_never_fails(line: str) -> None:
    said(line, b"x")


def test_environment_and_files_come_from_the_pod_and_what_it_names() -> None:
    objects = {
        ("configmaps", "ns", "cm"): {"data": {"k": "v", "n/a": "x"}, "binaryData": {"b": "AQI="}},
        ("secrets", "ns", "s"): {"data": {"password": "c2VjcmV0"}},
    }
    container = {
        "name": "c",
        "resources": {"limits": {"cpu": "2"}},
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}}, {"secretRef": {"name": "s"}}, {"secretRef": {"name": "none"}}],
        "env": [
            {"name": "A", "value": "$(P_k) $(none) $$(A)"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
        ],
        "volumeMounts": [
            {"name": "all", "mountPath": "/all"},
            {"name": "empty", "mountPath": "/empty/"},
            {"name": "one", "mountPath": "/one.txt", "subPath": "path/k"},
        ],
    }
    sources = [
        {"secret": {"name": "s"}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"serviceAccountToken": {"path": "token"}},
    ]
    volumes = [
        {"name": "all", "projected": {"sources": sources}},
        {"name": "empty", "emptyDir": {}},
        {"name": "one", "configMap": {"name": "cm", "items": [{"key": "k", "path": "path/k"}]}},
    ]
    metadata = {"name": "p", "namespace": "ns", "labels": {"app": "x"}}
    pod = {"metadata": metadata, "spec": {"nodeName": "n1", "containers": [container], "volumes": volumes}}

    def find(resource: str, namespace: str, name: str) -> dict[str, object] | None:
        return objects.get((resource, namespace, name))  # type: ignore[return-value]

    env = environment(pod, container, find)
    wanted = {"P_k": "v", "password": "secret", "A": "v $(none) $(A)", "NODE": "n1", "LABEL": "x", "CPU": "2", "S": "secret"}
    assert wanted.items() <= env.items() and env["HOSTNAME"] == "p"
    files = mounted(pod, container, find, lambda source: f"token for {source['path']}")
    assert files["/all/password"] == b"secret" and files["/all/labels"] == b'app="x"' and files["/all/token"] == b"token for token"
    assert files["/empty/"] == b"" and files["/one.txt"] == b"v"
