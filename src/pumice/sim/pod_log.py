"""What `kubectl logs` shows of a simulated container: when it started, and how it ended."""

from __future__ import annotations

from pumice.controllers.objects import Object, field, status_of


def log_of(pod: Object, container: str, query: dict[str, str]) -> str:
    """For the API server's `log_source`."""
    statuses = [*(status_of(pod).get("containerStatuses") or ()), *(status_of(pod).get("initContainerStatuses") or ())]
    found: Object = next((each for each in statuses if each["name"] == container), {})
    lines = []
    begun = field(found, "state.running.startedAt") or field(found, "state.terminated.startedAt")
    if begun:
        lines.append(f"{begun} simulated container {container} of {pod['metadata']['name']} started on {pod['spec']['nodeName']}")
    end = field(found, "state.terminated")
    if end:
        lines.append(f"{end['finishedAt']} ended with exit code {end['exitCode']}")
    last = query.get("tailLines", "")
    return "".join(f"{line}\n" for line in (lines[max(len(lines) - int(last), 0) :] if last.isdigit() else lines))
