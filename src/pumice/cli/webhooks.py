"""`pumice webhooks`: Volcano's admission webhooks, in place of vc-webhook-manager."""

import asyncio
import logging
import sys
from typing import Any
from urllib.parse import urlsplit

import click

from pumice.api import InputError, did_you_mean, yaml
from pumice.api.files import file_bytes
from pumice.cli.go_flags import SPELLINGS, GoCommand, switch
from pumice.cli.replica_flags import access_of, options, tell_of
from pumice.client.failures import KubeError
from pumice.controllers import admission
from pumice.controllers.admission.webhooks import HOOKS, ClientConfig, OwnWebhook
from pumice.live.log_format import set_up
from pumice.live.webhooks.server import WebhookReplica, WebhookSettings

log = logging.getLogger(__name__)

NOT_NEEDED = {
    "graceful-shutdown-time": "requests under way are answered within two seconds",
    "ignored-namespaces": "the webhook configurations say which namespaces they are for; Volcano's programs never read it",
}

SECRET = "volcano-admission-secret"

OWN = (
    click.option("--listen-address", default="", help="The address to serve webhooks on. Default: all."),
    click.option("--port", type=int, default=8443, show_default=True, help="The port to serve webhooks on."),
    click.option("--enabled-admission", default=",".join(HOOKS), show_default=True, help="Paths of the webhooks to serve, by commas."),
    click.option("--tls-cert-file", default="", help="The certificate to serve. Default: one of our own, kept in a Secret."),
    click.option("--tls-private-key-file", default="", help="Its key."),
    click.option("--ca-cert-file", default="", help="The authority that API servers are to trust."),
    click.option("--webhook-namespace", default="", help="The namespace of our service."),
    click.option("--webhook-service-name", default="", help="The name of our service."),
    click.option("--webhook-url", default="", help="Where we are reached, in place of a service."),
    click.option("--admission-secret", default=SECRET, show_default=True, help="The Secret of certificates of our own."),
    click.option("--admission-conf", default="", help="A file with resourceGroups for pods; read again when it changes."),
    click.option("--max-queue-depth", type=int, default=5, show_default=True, help="Levels of queues below root."),
    click.option("--scheduler-url", default="", help="Of Pumice's scheduler, which says what can never run: who submits that is warned."),
    switch("--enable-queue-allocated-pods-check", False, "Refuse to delete queues that hold pods."),
    switch("--enable-root-queue-protection", True, "Refuse to change the amounts of the root queue."),
    click.option("--feature-gates", default="", help="With SchedulingGatesQueueAdmission=true annotated pods await room in their queue."),
)


@click.command(cls=GoCommand)
@options(OWN, NOT_NEEDED)
def webhooks(**flags: Any) -> None:
    """Serve Volcano's admission webhooks, in the place of vc-webhook-manager: its flags, its paths, its configurations."""
    set_up(flags["logging_format"], flags["verbosity"])
    tell_of(flags, NOT_NEEDED)
    settings = settings_of(flags)
    replica = WebhookReplica(access_of(flags), settings)
    try:
        asyncio.run(replica.serve())
    except KubeError as error:
        sys.exit(f"the API server refused: {error}")
    except OSError as error:
        sys.exit(f"port {flags['port']} cannot be listened on: {error.strerror}")


def settings_of(flags: dict[str, Any]) -> WebhookSettings:
    config = ClientConfig(flags["webhook_namespace"], flags["webhook_service_name"], flags["webhook_url"])
    given = (flags["tls_cert_file"], flags["tls_private_key_file"], flags["ca_cert_file"])
    if any(given) and not all(given):
        raise InputError("certificate, key and authority are given together or not at all", where="--tls-cert-file")
    if not all(given) and not (config.known and config.namespace):
        raise InputError(
            "is missing: certificates of our own are kept there, and made for --webhook-service-name; or give --tls-cert-file",
            where="--webhook-namespace",
        )
    return WebhookSettings(
        hooks=hooks_of(flags["enabled_admission"]),
        rules=lambda: rules_of(flags),
        address=(flags["listen_address"], flags["port"]),
        client_config=config,
        files=given if all(given) else None,
        secret=flags["admission_secret"],
        qps=flags["kube_api_qps"],
        burst=flags["kube_api_burst"],
        healthz_address=flags["healthz_address"] if flags["enable_healthz"] else "",
        scheduler=_url(flags["scheduler_url"]),
        hosts=_hosts(config),
    )


def _url(text: str) -> str:
    if text and urlsplit(text).scheme not in ("http", "https"):
        raise InputError(f'"{text}" is not a URL; write one such as http://volcano-scheduler-service:8080', where="--scheduler-url")
    return text.rstrip("/")


def hooks_of(text: str) -> tuple[OwnWebhook, ...]:
    """The webhooks at the paths in the text. An unknown path is logged and skipped, as a newer chart may have it; one that looks misspelt
    raises InputError."""
    paths = dict.fromkeys(path.strip() for path in text.split(",") if path.strip())
    unknown = [path for path in paths if path not in HOOKS]
    for path in unknown:
        meant = did_you_mean(path, HOOKS)
        if meant or not path.startswith("/"):
            raise InputError(f'"{path}" is not a webhook{meant}', where="--enabled-admission")
        log.error("%s is not served: there are no rules for it", path)
    return tuple(HOOKS[path] for path in paths if path in HOOKS)


def _hosts(config: ClientConfig) -> tuple[str, ...]:
    if config.url:
        return (urlsplit(config.url).hostname or config.url,)
    return config.service_hosts


def rules_of(flags: dict[str, Any]) -> admission.Settings:
    """The settings of admission that the flags state. Raises InputError."""
    return admission.Settings(
        scheduler_names=tuple(flags["names"]) or ("volcano",),
        max_queue_depth=flags["max_queue_depth"],
        check_allocated_pods=flags["enable_queue_allocated_pods_check"],
        protect_root=flags["enable_root_queue_protection"],
        queue_gates=_is_on("SchedulingGatesQueueAdmission", flags["feature_gates"]),
        resource_groups=_resource_groups(flags["admission_conf"]),
    )


def _is_on(gate: str, text: str) -> bool:
    """Whether a feature gate is true in "A=true,B=false". What other gates switch on is always on, or absent here. Raises InputError."""
    stated = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in text.split(","))}
    if stated.get(gate, "false").lower() not in SPELLINGS:
        raise InputError(f'"{stated[gate]}" is not true or false', where=f"--feature-gates={gate}")
    return SPELLINGS[stated.get(gate, "false").lower()]


def _resource_groups(path: str) -> list[dict[str, Any]]:
    if not path:
        return []
    text = file_bytes(path)
    groups: list[dict[str, Any]] = []
    for document in yaml.documents(text, path):
        found = document.value.get("resourceGroups") if isinstance(document.value, dict) else None
        if not isinstance(found or [], list) or not all(isinstance(group, dict) for group in found or ()):
            raise document.error("is not a list of groups", ("resourceGroups",))
        groups += found or []
    return groups
