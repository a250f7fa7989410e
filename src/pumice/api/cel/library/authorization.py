"""CEL's functions that ask what a user may do. The value `authorizer` knows whom to ask."""

from pumice.api.cel.functions import method
from pumice.api.cel.values import Authorizer, Decision, GroupCheck, PathCheck, ResourceCheck

A = "kubernetes.authorization"
CHECK = 350_000  #: what a question costs


def dear(*_: object) -> int:
    return CHECK


method(f"path({A}.Authorizer, string) {A}.PathCheck")(PathCheck)
method(f"group({A}.Authorizer, string) {A}.GroupCheck")(GroupCheck)


@method(f"serviceAccount({A}.Authorizer, string, string) {A}.Authorizer")
def service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    return Authorizer(authorizer.ask, (namespace, name))


method(f"resource({A}.GroupCheck, string) {A}.ResourceCheck")(
    lambda check, resource: ResourceCheck(check.authorizer, check.group, resource)
)
method(f"subresource({A}.ResourceCheck, string) {A}.ResourceCheck")(lambda check, subresource: check._replace(subresource=subresource))
method(f"namespace({A}.ResourceCheck, string) {A}.ResourceCheck")(lambda check, namespace: check._replace(namespace=namespace))
method(f"name({A}.ResourceCheck, string) {A}.ResourceCheck")(lambda check, name: check._replace(name=name))


@method(f"check({A}.PathCheck, string) {A}.Decision", f"check({A}.ResourceCheck, string) {A}.Decision", price=dear)
def check(asked: PathCheck | ResourceCheck, verb: str) -> Decision:
    authorizer = asked.authorizer
    return Decision(authorizer.ask(authorizer.account, verb, dict(zip(asked._fields[1:], asked[1:], strict=True))))


method(f"allowed({A}.Decision) bool")(lambda decision: decision.allowed)
method(f"errored({A}.Decision) bool")(lambda decision: False)
method(f"error({A}.Decision) string", f"reason({A}.Decision) string")(lambda decision: "")
