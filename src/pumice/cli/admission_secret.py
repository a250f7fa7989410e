"""`pumice admission-secret`: the Secret of the webhooks' certificates, in place of `gen-admission-secret.sh`.

Volcano's chart runs the command once, before the webhooks start. Nothing renews these certificates, so they are valid for long. An existing
Secret is left as it is.
"""

import asyncio
import sys

import click

from pumice.api.kinds import ObjectRef
from pumice.cli.webhooks import SECRET
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.client.failures import KubeError
from pumice.client.resolve_access import find
from pumice.controllers.admission.webhooks import SERVICE, ClientConfig
from pumice.live.clock import WallClock
from pumice.live.log_format import set_up
from pumice.live.webhooks.served_certificates import UNRENEWED_DAYS, ClusterSecret


@click.command()
@click.option("--service", default=SERVICE, show_default=True, help="The service that API servers reach the webhooks by.")
@click.option("--namespace", default="volcano-system", show_default=True, help="Its namespace, and the Secret's.")
@click.option("--secret", default=SECRET, show_default=True, help="The Secret to make.")
@click.option("--kubeconfig", default="", help="A kubeconfig file. Default: KUBECONFIG, ~/.kube/config, the pod's service account.")
def admission_secret(service: str, namespace: str, secret: str, kubeconfig: str) -> None:
    """Make the Secret of the webhooks' certificates (ca.crt, tls.crt, tls.key), where there is none."""
    set_up("text", 0)
    try:
        asyncio.run(_ensure(find(kubeconfig), ClientConfig(namespace, service), secret))
    except KubeError as error:
        sys.exit(f"the API server refused: {error}")


async def _ensure(access: Access, config: ClientConfig, secret: str) -> None:
    async with Client(access) as client:
        await ClusterSecret(client, ObjectRef(secret, config.namespace), config.service_hosts, WallClock(), UNRENEWED_DAYS).ensure()
