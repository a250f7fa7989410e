"""A chart of Volcano's makes the webhooks' certificates before it starts them, with a script that it expects in their image."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path

import yaml

from tests.live_controllers.scene import Scene, play
from tests.webhooks.calling import CALLER, LISTER, allow_listing, prepare, review, served

SCRIPT = Path(__file__).parents[2] / "deploy/image/gen-admission-secret.sh"
FILES = ("tls.crt", "tls.key", "ca.crt")


async def run_script(stage: Scene, folder: Path) -> None:
    """As the chart's Job does: from the folder it lies in, with no more rights than to read Secrets and create them."""
    config = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": stage.server.url}}],
        "users": [{"name": "it", "user": {"token": "lister-token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    names = ("--service", CALLER.service, "--namespace", CALLER.namespace, "--secret", "volcano-admission-secret")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"KUBECONFIG": str(folder / "kubeconfig"), "PATH": path}
    process = await asyncio.create_subprocess_exec(f"./{SCRIPT.name}", *names, cwd=SCRIPT.parent, env=environment)
    assert await process.wait() == 0


def made(stage: Scene) -> dict[str, bytes]:
    secret = stage.find("secrets", "volcano-admission-secret", CALLER.namespace)
    assert secret is not None
    return {name: base64.b64decode(text) for name, text in secret["data"].items()}


def test_the_script_makes_certificates_that_the_webhooks_serve(tmp_path: Path) -> None:
    async def story(stage: Scene) -> None:
        prepare(stage)
        allow_listing(stage)
        await run_script(stage, tmp_path)
        first = made(stage)
        assert sorted(first) == sorted(FILES)
        for name in FILES:
            (tmp_path / name).write_bytes(first[name])
        async with served(stage, files=tuple(str(tmp_path / name) for name in FILES)) as call:
            queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"weight": 1}}
            assert (await call("/queues/validate", review("CREATE", queue)))["allowed"]
        await run_script(stage, tmp_path)
        assert made(stage) == first, "what is there stays"

    play(story, users=LISTER)
