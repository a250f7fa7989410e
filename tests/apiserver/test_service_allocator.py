"""Node ports and cluster IPs of Services: unique, given back, refused when taken or when none is left; each costs the same to give out."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest

from pumice.cluster.apiserver import StatusError, Store, WriteOptions
from pumice.cluster.apiserver.bootstrap import bootstrap
from pumice.cluster.apiserver.patches.patch import PatchRequest
from pumice.cluster.apiserver.service_allocator import ADDRESSES, CHOSEN, IP_ADDRESSES, PORTS
from tests.apiserver.made import store
from tests.hostile.test_cost import lines


def service(name: str, *ports: dict[str, Any], kind: str = "NodePort", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"type": kind, "ports": list(ports or [{"port": 80}])} | spec}


def create(made: Store, *args: Any, dry_run: bool = False, **spec: Any) -> list[int | None]:
    options = WriteOptions(dry_run=dry_run)
    return ports_of(made.create("services", service(*args, **spec), "default", options))


def ports_of(made: dict[str, Any]) -> list[int | None]:
    return [port.get("nodePort") for port in made["spec"]["ports"]]


def patch(made: Store, name: str, **spec: Any) -> list[int | None]:
    return ports_of(made.patch("services", name, PatchRequest("merge", {"spec": spec}), "default"))


def refused(made: Store, *args: Any, **spec: Any) -> str:
    with pytest.raises(StatusError) as error:
        create(made, *args, **spec)
    return f"{error.value.code} {error.value}"


def test_each_service_has_node_ports_of_its_own_until_the_range_is_full() -> None:
    made = store()
    found = [create(made, f"s{number}")[0] for number in range(len(PORTS))]
    assert set(found) == set(PORTS)
    assert refused(made, "late") == "500 Internal error occurred: failed to allocate a nodePort: range is full"
    assert made.find("services", "default", "late") is None
    made.delete("services", "s7", "default")
    assert create(made, "late") == [found[7]]
    patch(made, "s8", type="ClusterIP")
    assert create(made, "later", kind="LoadBalancer") == [found[8]]


def test_a_node_port_that_is_taken_or_out_of_range_is_refused() -> None:
    made = store()
    assert create(made, "first", {"port": 80, "nodePort": 30080}) == [30080]
    taken = "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    assert refused(made, "second", {"port": 80, "nodePort": 30080}) == f'422 Service "second" is invalid: {taken}'
    outside = "Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"
    assert outside in refused(made, "second", {"port": 80, "nodePort": 80})
    twice = refused(made, "second", {"name": "a", "port": 80, "nodePort": 30081}, {"name": "b", "port": 81, "nodePort": 30081})
    assert "spec.ports[1].nodePort: Duplicate value: 30081" in twice
    (other,) = create(made, "other")
    with pytest.raises(StatusError, match="provided port is already allocated"):
        patch(made, "other", ports=[{"port": 80, "nodePort": 30080}])
    assert ports_of(made.get("services", "other", "default")) == [other]
    made.delete("services", "first", "default")
    assert patch(made, "other", ports=[{"port": 80, "nodePort": 30080}]) == [30080]
    assert create(made, "again", {"port": 80, "nodePort": other}) == [other]


def test_a_write_that_is_refused_or_a_dry_run_holds_no_port() -> None:
    made = store()
    asked = {"port": 80, "nodePort": 30080}
    assert create(made, "s", asked, dry_run=True) == [30080]
    create(made, "s")
    assert refused(made, "s", asked).startswith("409 ")
    assert create(made, "t", asked) == [30080]


def test_a_port_keeps_its_node_port_when_the_service_is_written_without_it() -> None:
    made = store()
    first, second = create(made, "s", {"name": "a", "port": 80}, {"name": "b", "port": 81})
    assert first != second
    written = made.update("services", service("s", {"name": "b", "port": 82}, {"name": "c", "port": 83}, {"name": "a", "port": 80}))
    assert ports_of(written)[::2] == [second, first]
    assert ports_of(written)[1] not in (first, second, None)
    swapped = made.update("services", service("s", {"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": first}))
    assert ports_of(swapped)[1] == first and ports_of(swapped)[0] not in (first, None)
    assert create(made, "t", {"port": 80, "nodePort": second}) == [second]


def test_a_port_of_two_protocols_is_one_node_port() -> None:
    made = store()
    tcp, udp = {"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}
    first, second = create(made, "dns", tcp, udp)
    assert first == second
    assert create(made, "stated", tcp, udp | {"nodePort": 30053}) == [30053, 30053]
    made.delete("services", "stated", "default")
    assert create(made, "again", {"port": 53, "nodePort": 30053}) == [30053]


def test_a_load_balancer_may_do_without_node_ports() -> None:
    made = store()
    ports = ({"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30081})
    assert create(made, "lb", *ports, kind="LoadBalancer", allocateLoadBalancerNodePorts=False) == [None, 30081]
    assert None not in patch(made, "lb", allocateLoadBalancerNodePorts=True)


def test_after_a_restart_the_same_ports_are_held() -> None:
    made, again = store(), store()
    create(made, "s", {"port": 80, "nodePort": 30080})
    again.restore("services", ("default", "s"), made.get("services", "s", "default"))
    assert "provided port is already allocated" in refused(again, "t", {"port": 80, "nodePort": 30080})
    again.delete("services", "s", "default")
    assert create(again, "t", {"port": 80, "nodePort": 30080}) == [30080]


def address(made: Store, name: str, dry_run: bool = False, **spec: Any) -> str:
    created = made.create("services", service(name, kind="ClusterIP", **spec), "default", WriteOptions(dry_run=dry_run))["spec"]
    assert created["clusterIPs"] == [created["clusterIP"]]
    return str(created["clusterIP"])


def test_each_service_has_a_cluster_ip_of_its_own_from_the_part_of_the_range_that_nobody_chooses_from() -> None:
    made = store()
    found = [IPv4Address(address(made, f"s{number}")) for number in range(5000)]
    assert len(set(found)) == len(found) and {int(each) for each in found} <= set(ADDRESSES[CHOSEN:])


def test_a_service_whose_place_is_taken_has_the_next_cluster_ip() -> None:
    first = address(store(), "s")
    chosen, again = store(), store()
    address(chosen, "chosen", clusterIP=first)
    again.restore("services", ("default", "chosen"), chosen.get("services", "chosen", "default"))
    assert address(again, "s") == str(IPv4Address(first) + 1)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"clusterIP": "10.96.0.9"}, 'Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: provided IP is already allocated'),
        ({"clusterIP": "10.96.0.0"}, "failed to allocate IP 10.96.0.0: the provided network does not match the current range"),
        ({"clusterIP": "10.111.255.255"}, "the provided network does not match the current range"),
        ({"clusterIP": "192.168.0.1"}, "the provided network does not match the current range"),
        ({"clusterIP": "x"}, 'spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'),
        ({"clusterIP": "fd00::1"}, 'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster'),
        ({"clusterIPs": ["10.96.0.8"]}, 'Invalid value: ["10.96.0.8"]: must be empty when `clusterIP` is not specified'),
        ({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.8"]}, "first value must match `clusterIP`"),
        ({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "10.96.0.9"]}, "may specify no more than one IP for each IP family"),
    ],
)
def test_a_cluster_ip_that_is_taken_or_none_of_the_range_is_refused(spec: dict[str, Any], fault: str) -> None:
    made = store()
    assert address(made, "first", clusterIP="10.96.0.9") == "10.96.0.9"
    error = refused(made, "second", kind="ClusterIP", **spec)
    assert error.startswith('422 Service "second" is invalid: spec.clusterIPs') and fault in error


def test_a_cluster_ip_is_free_again_once_its_service_has_no_use_for_it() -> None:
    made = store()
    assert address(made, "dry", dry_run=True, clusterIP="10.96.0.9") == "10.96.0.9"
    assert address(made, "s", clusterIP="10.96.0.9") == "10.96.0.9"
    assert refused(made, "s", clusterIP="10.96.0.8").startswith("409 ")
    assert address(made, "other", clusterIP="10.96.0.8") == "10.96.0.8"
    with pytest.raises(StatusError, match="may not change once set"):
        patch(made, "s", clusterIP="10.96.0.8", clusterIPs=["10.96.0.8"])
    with pytest.raises(StatusError, match="may specify no more than one IP"):
        patch(made, "s", clusterIPs=["10.96.0.9", "10.96.0.8"])
    patch(made, "s", type="ExternalName", externalName="example.com")
    assert address(made, "t", clusterIP="10.96.0.9") == "10.96.0.9"
    patch(made, "s", type="ClusterIP")
    assert made.get("services", "s", "default")["spec"]["clusterIP"] != "10.96.0.9"
    made.delete("services", "t", "default")
    assert address(made, "u", clusterIP="10.96.0.9") == "10.96.0.9"
    assert address(made, "headless", clusterIP="None") == "None" == address(made, "headless2", clusterIP="None")


def test_to_give_out_a_port_no_service_is_looked_at() -> None:
    made = store()
    create(made, "first")
    few = lines(lambda: create(made, "early"))
    for number in range(300):
        create(made, f"s{number}", kind="ClusterIP")
        create(made, f"n{number}")
    assert lines(lambda: create(made, "late")) < 2 * few


def noted(made: Store) -> dict[str, str]:
    """By address, the Service that its IPAddress names."""
    return {each["metadata"]["name"]: each["spec"]["parentRef"]["name"] for each in made.all(IP_ADDRESSES)}


def address_of(made: Store, name: str) -> str:
    return str(made.find("services", "default", name)["spec"]["clusterIP"])  # type: ignore[index]


def test_an_ipaddress_says_which_service_has_a_cluster_ip() -> None:
    made = store()
    create(made, "web", kind="ClusterIP")
    create(made, "tried", kind="ClusterIP", dry_run=True)
    address = address_of(made, "web")
    [found] = made.all(IP_ADDRESSES)
    assert found["spec"] == {"parentRef": {"resource": "services", "namespace": "default", "name": "web"}}
    wanted = {"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
    assert found["metadata"]["name"] == address and found["metadata"]["labels"] == wanted
    patch(made, "web", ports=[{"port": 81}])
    assert list(made.all(IP_ADDRESSES)) == [found], "a change of the Service leaves it alone"
    made.delete(IP_ADDRESSES, address)
    assert noted(made) == {address: "web"}, "it comes back"
    patch(made, "web", type="ExternalName", externalName="a.example", clusterIP="", clusterIPs=[])
    assert noted(made) == {}
    create(made, "other", kind="ClusterIP")
    made.delete("services", "other", "default")
    assert noted(made) == {}


def test_an_ipaddress_of_a_service_comes_back_also_if_the_deleted_one_named_somebody_else() -> None:
    made, older = store(), store()
    create(older, "web", kind="ClusterIP")
    address, kept = address_of(older, "web"), older.find("services", "default", "web")
    parent = {"resource": "gateways", "group": "gateway.networking.k8s.io", "namespace": "default", "name": "mine"}
    made.create(IP_ADDRESSES, {"metadata": {"name": address}, "spec": {"parentRef": parent}})
    made.restore("services", ("default", "web"), kept)  # type: ignore[arg-type]
    made.delete(IP_ADDRESSES, address)
    assert noted(made) == {address: "web"}


def test_the_address_of_an_ipaddress_of_somebody_else_is_not_given_out() -> None:
    made, twin = store(), store()
    create(twin, "web", kind="ClusterIP")
    first = address_of(twin, "web")
    parent = {"resource": "gateways", "group": "gateway.networking.k8s.io", "namespace": "default", "name": "mine"}
    for address in (first, "10.96.0.77"):
        made.create(IP_ADDRESSES, {"metadata": {"name": address}, "spec": {"parentRef": parent}})
    create(made, "web", kind="ClusterIP")
    assert address_of(made, "web") != first
    assert "10.96.0.77: provided IP is already allocated" in refused(made, "wanted", kind="ClusterIP", clusterIP="10.96.0.77")
    made.delete("services", "web", "default")
    assert noted(made) == {first: "mine", "10.96.0.77": "mine"}


def test_services_of_an_older_version_get_their_ipaddresses() -> None:
    made, older = store(), store()
    create(older, "web", kind="ClusterIP")
    kept = older.find("services", "default", "web")
    made.restore("services", ("default", "web"), kept)  # type: ignore[arg-type]
    bootstrap(made)
    assert noted(made) == {address_of(made, "web"): "web", "10.96.0.1": "kubernetes"}
