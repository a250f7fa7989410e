"""Warnings to users who create pods or jobs for a scheduler that does not run here: nothing else would ever say why they wait."""

from collections.abc import Callable, Sequence

from pumice.api import Object
from pumice.api.json_objects import controller_of, field
from pumice.cluster.apiserver import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule
from pumice.controllers.admission import CREATE


def warn_of_strange_schedulers(ours: Sequence[str]) -> AdmissionRule:
    """An admission rule that warns of pods and jobs for other schedulers. `ours` are the schedulerNames that are served here."""

    def judge(review: AdmissionAttributes, _: AdmissionLister) -> AdmissionRefusal | None:
        asked = review.obj["spec"].get("schedulerName")
        if asked and asked not in ours:
            review.warnings.append(f'spec.schedulerName: no scheduler "{asked}" runs here unless you start one; {", ".join(ours)} do')
        return None

    return AdmissionRule(("pods", "jobs.batch.volcano.sh"), (CREATE,), validate=judge)


def warn_of_simulated_operators() -> AdmissionRule:
    """An admission rule that warns once of a Deployment that will show Running and do nothing: one whose pods would speak to the API."""
    warned: list[str] = []

    def judge(review: AdmissionAttributes, _: AdmissionLister) -> AdmissionRefusal | None:
        account = field(review.obj, "spec.template.spec.serviceAccountName")
        if account not in (None, "", "default") and not warned:
            warned.append(account)
            review.warnings.append("containers are simulated: this program does not run; run it outside, with this kubeconfig")
        return None

    return AdmissionRule(("deployments.apps", "statefulsets.apps"), (CREATE,), validate=judge)


def warn_of_what_never_fits(ask: Callable[[Object], str]) -> AdmissionRule:
    """An admission rule that warns of pods and jobs that can never run here, as far as `ask` can find out at once."""

    def judge(review: AdmissionAttributes, _: AdmissionLister) -> AdmissionRefusal | None:
        if controller_of(review.obj) is None and (why := ask(review.obj)):
            review.warnings.append(why)
        return None

    return AdmissionRule(("pods", "jobs.batch.volcano.sh"), (CREATE,), validate=judge)
