"""Whatever is written, a watcher who replays its events sees exactly what a list would show: nothing lost, nothing twice, in order."""

from __future__ import annotations

from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pumice.api.field_selectors import parse_field_selector
from pumice.api.selectors import parse_selector
from pumice.cluster.apiserver import PatchRequest, StatusError, Store
from pumice.cluster.apiserver.storage.in_memory import StoreJournal
from pumice.cluster.apiserver.storage.watch import Watch, WatchEvent
from tests.apiserver.made import pod, store
from tests.samples import times

NAMES = st.sampled_from(["a", "b", "c", "d"])
SPACES = st.sampled_from(["default", "other"])
APPS = st.sampled_from(["x", "y"])
LABELS = st.sampled_from(["", "app=x", "app!=x", "app in (x,y)", "!app"])
FIELDS = st.sampled_from(["", "spec.nodeName=n", "spec.nodeName!=n", "metadata.name=a"])


class Reader:
    """A watcher that keeps what it was told."""

    def __init__(self, made: Store, namespace: str, labels: str, fields: str, since: int | None) -> None:
        self.labels = parse_selector(labels)
        self.fields = parse_field_selector(fields, made.kind("pods").fields)
        self.namespace = namespace
        self.seen: dict[tuple[str, str], Any] = {}
        page = made.list("pods", namespace, self.labels, self.fields, version=since)
        for obj in page.items:
            self.seen[key(obj)] = obj
        self.watch: Watch = made.watch("pods", namespace, self.labels, self.fields, page.version)
        self.version = self.began = page.version

    def read(self, limit: int) -> None:
        for seen_as, event in self.watch.take(limit):
            version = event.resource_version
            assert version > self.version, "events come in order, none twice"
            self.version = version
            place = key(event.object)
            if seen_as == "ADDED":
                assert place not in self.seen
                self.seen[place] = event.object
            elif seen_as == "MODIFIED":
                assert place in self.seen
                self.seen[place] = event.object
            else:
                assert self.seen.pop(place, None) is not None


def key(obj: Any) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


class Watching(RuleBasedStateMachine):
    """Random writes and readers that come and read at random."""

    def __init__(self) -> None:
        super().__init__()
        self.store = store(journal=self.journal())
        self.store.create("namespaces", {"metadata": {"name": "other"}})
        self.readers: list[Reader] = []

    def journal(self) -> StoreJournal | None:
        return None

    def _try(self, act: Any) -> None:
        before = self.store.storage.version
        try:
            act()
        except StatusError:
            assert self.store.storage.version == before, "what is refused changes nothing"

    @rule(name=NAMES, space=SPACES, app=APPS)
    def create(self, name: str, space: str, app: str) -> None:
        self._try(lambda: self.store.create("pods", pod(name, {"app": app}), space))

    @rule(name=NAMES, space=SPACES, app=st.one_of(st.none(), APPS))
    def relabel(self, name: str, space: str, app: str | None) -> None:
        self._try(lambda: self.store.patch("pods", name, PatchRequest("merge", {"metadata": {"labels": {"app": app}}}), space))

    @rule(name=NAMES, space=SPACES)
    def bind(self, name: str, space: str) -> None:
        self._try(lambda: self.store.bind(space, name, "n"))

    @rule(name=NAMES, space=SPACES)
    def delete(self, name: str, space: str) -> None:
        self._try(lambda: self.store.delete("pods", name, space))

    @rule(namespace=st.sampled_from(["", "default"]), labels=LABELS, fields=FIELDS, back=st.integers(0, 5))
    def subscribe(self, namespace: str, labels: str, fields: str, back: int) -> None:
        since = max(self.store.storage.version - back, 1)
        self.readers.append(Reader(self.store, namespace, labels, fields, since))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), limit=st.integers(1, 3))
    def read_a_little(self, data: st.DataObject, limit: int) -> None:
        data.draw(st.sampled_from(self.readers)).read(limit)

    @invariant()
    def every_reader_ends_where_a_list_would(self) -> None:
        published = self.store.storage.published
        for reader in self.readers[-3:]:
            reader.read(1000)
            assert reader.version <= max(published, reader.began), "nothing is shown before it is kept"
            if reader.began <= published:
                listed = self.store.list("pods", reader.namespace, reader.labels, reader.fields, version=published).items
                assert reader.seen == {key(obj): obj for obj in listed}


Watching.TestCase.settings = settings(max_examples=times(15), stateful_step_count=40, deadline=None)
TestWatching = Watching.TestCase


class Recorder:
    """A journal whose disk is as slow as the test wants."""

    def record(self, storage: str, event: WatchEvent) -> None:
        pass


class WatchingAJournal(Watching):
    """The same where writes are shown only once they are kept, some at a time."""

    def journal(self) -> StoreJournal | None:
        return Recorder()

    @rule(count=st.integers(1, 4))
    def commit(self, count: int) -> None:
        storage = self.store.storage
        storage.publish(min(storage.published + count, storage.version))

    def teardown(self) -> None:
        self.store.storage.publish(self.store.storage.version)
        self.every_reader_ends_where_a_list_would()


WatchingAJournal.TestCase.settings = Watching.TestCase.settings
TestWatchingAJournal = WatchingAJournal.TestCase


def test_a_forgotten_past_is_refused(monkeypatch: Any) -> None:
    import pytest

    from pumice.cluster.apiserver.storage import in_memory as storage

    monkeypatch.setattr(storage, "RING", 4)
    made = store()
    start = made.storage.version
    for index in range(20):
        made.create("configmaps", {"metadata": {"name": f"c{index}"}}, "default")
    with pytest.raises(StatusError) as refusal:
        made.watch("configmaps", since=start)
    assert (refusal.value.code, refusal.value.reason) == (410, "Expired")
    assert len(made.watch("configmaps", since=made.storage.version - 4).take()) == 4
