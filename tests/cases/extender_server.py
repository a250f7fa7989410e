"""Extenders as cases declare them in ConfigMaps, served over HTTP on loopback."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import yaml

from tests.cases.compare import LOADER

PREFIX = "http://extender.test"


@contextlib.contextmanager
def served(text: str) -> Iterator[str]:
    """The case's text with the declared extenders' addresses made real."""
    if PREFIX not in text:
        yield text
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler([d for d in yaml.load_all(text, LOADER) if d]))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield text.replace(PREFIX, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def handler(documents: list[dict[str, Any]]) -> type[http.server.BaseHTTPRequestHandler]:
    rules = {
        d["metadata"]["name"].removeprefix("extender-"): yaml.load(d["data"]["behaviour.yaml"], LOADER) or {}
        for d in documents
        if d.get("kind") == "ConfigMap" and d["metadata"]["name"].startswith("extender-")
    }
    uids = {}
    for pod in (d for d in documents if d.get("kind") == "Pod"):
        key = f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"
        uids[key] = pod["metadata"].get("uid", key.replace("/", "-"))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            _, name, verb = self.path.split("/", 2)
            rule = rules.get(name, {})
            arguments = lower(json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}"))
            answers = {"filter": filtered, "prioritize": prioritized, "preempt": preempted}
            if verb in (rule.get("fail") or ()) or verb not in answers:
                self.send_error(500 if verb in answers else 404)
                return
            body = json.dumps(answers[verb](rule.get(verb) or {}, arguments, uids)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def lower(mapping: dict[str, Any] | None) -> dict[str, Any]:
    return {key.lower(): value for key, value in (mapping or {}).items()}


def names(arguments: dict[str, Any]) -> list[str]:
    listed = arguments.get("nodenames")
    return listed if listed is not None else [node["metadata"]["name"] for node in (arguments.get("nodes") or {}).get("items", ())]


def filtered(rule: dict[str, Any], arguments: dict[str, Any], _: dict[str, str]) -> dict[str, Any]:
    lost, never = rule.get("failedNodes") or {}, rule.get("failedAndUnresolvableNodes") or {}
    asked = names(arguments)
    kept = [node for node in asked if node not in lost and node not in never]
    answer = {
        "FailedNodes": {node: lost[node] for node in asked if node in lost},
        "FailedAndUnresolvableNodes": {node: never[node] for node in asked if node in never},
        "Error": rule.get("error", ""),
    }
    if arguments.get("nodenames") is not None:
        return answer | {"NodeNames": kept}
    return answer | {"Nodes": {"items": [node for node in arguments["nodes"]["items"] if node["metadata"]["name"] in kept]}}


def prioritized(rule: dict[str, Any], arguments: dict[str, Any], _: dict[str, str]) -> list[dict[str, Any]]:
    return [{"Host": node, "Score": rule.get(node, 0)} for node in names(arguments)]


def preempted(rule: dict[str, Any], arguments: dict[str, Any], uids: dict[str, str]) -> dict[str, Any]:
    proposed = {**(arguments.get("nodenametometavictims") or {}), **(arguments.get("nodenametovictims") or {})}
    answer = {}
    for node, victims in proposed.items():
        if node in (rule.get("drop") or ()):
            continue
        victims = lower(victims)
        pods = [{"UID": p.get("UID") or p.get("uid") or (p.get("metadata") or {}).get("uid")} for p in victims.get("pods") or ()]
        changed = (rule.get("victims") or {}).get(node)
        pods = pods if changed is None else [{"UID": uids.get(pod, pod)} for pod in changed]
        violations = (rule.get("numPDBViolations") or {}).get(node, victims.get("numpdbviolations", 0))
        answer[node] = {"Pods": pods, "NumPDBViolations": violations}
    return {"NodeNameToMetaVictims": answer}
