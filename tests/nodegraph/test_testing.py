"""The checks of stores: right ones pass, wrong ones are refused with a reason."""

import runpy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import ROOT, MemoryStore, NodeStore
from nodekin.nodegraph.derivation import Derivation
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore
from nodekin.nodegraph.testing import check_store

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class PackingStore(MemoryStore):
    packs_from = 0


@pytest.mark.parametrize("store", [MemoryStore, PackingStore])
def test_the_store_in_memory_passes(store: type[MemoryStore]) -> None:
    check_store(store)


@pytest.mark.slow
def test_the_store_in_a_file_passes(tmp_path: Path) -> None:
    numbers = iter(range(100))
    check_store(
        lambda: SQLiteStore(tmp_path / f"{next(numbers)}.db"),
        reopen=lambda store: SQLiteStore(getattr(store, "path", "")),
    )


@pytest.mark.slow
def test_a_store_over_a_mapping_passes() -> None:
    mapping_store = runpy.run_path(str(EXAMPLES / "own_store.py"))["MappingStore"]
    check_store(lambda: mapping_store({}), reopen=lambda store: mapping_store(store.data))


class WithoutRollback(MemoryStore):
    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield


class WithoutTouch(MemoryStore):
    def touch(self) -> None:
        return


class UnorderedStamps(MemoryStore):
    def stamps(self, *args: Any) -> dict[str, Any]:
        return dict(sorted(super().stamps(*args).items()))


class ReplacedLast(MemoryStore):
    def write_derivations(self, group: str, derivations: Mapping[str, Any], changed: Any) -> None:
        super().write_derivations(group, dict.fromkeys(derivations), changed)
        super().write_derivations(group, derivations, changed)


class WithoutRemovals(MemoryStore):
    def write_derivations(self, group: str, derivations: Mapping[str, Any], changed: Any) -> None:
        stored = {i: new for i, new in derivations.items() if new is not None or group == ROOT}
        super().write_derivations(group, stored, changed)


class StaleMetadata(MemoryStore):
    """Skips nodes whose id is stored, also where their metadata changed."""

    def write_derivations(self, group: str, derivations: Mapping[str, Any], changed: Any) -> None:
        stored = {node.id: node for node in self.nodes(group) if group != ROOT}
        derivations = {
            i: new
            and Derivation(*new.stamp, tuple(stored.get(n.id, n) for n in new.nodes), new.links)
            for i, new in derivations.items()
        }
        super().write_derivations(group, derivations, changed)


class WithoutDerivedLinks(MemoryStore):
    def derivation(self, group: str, document_id: str) -> Derivation | None:
        derivation = super().derivation(group, document_id)
        return derivation and Derivation(*derivation.stamp, derivation.nodes)


class SortedNodes(MemoryStore):
    def get(self, ids: Any) -> list[Any]:
        return super().get(sorted(ids))


class FewNodes(MemoryStore):
    def get(self, ids: Any) -> list[Any]:
        return super().get(list(ids)[:1000])


class OneDirection(MemoryStore):
    def read_links(self, ids: Any, *, incoming: bool = False) -> list[Any]:
        return super().read_links(ids)


class LinksToExistingNodes(MemoryStore):
    def put_links(self, links: Any) -> None:
        super().put_links([link for link in links if self.get([link.target])[0] is not None])


class LinksStay(MemoryStore):
    def delete_links(self, links: Any) -> None:
        return


class WithoutWeights(MemoryStore):
    def put_links(self, links: Any) -> None:
        super().put_links([type(k)(k.source, k.target, k.type, derived=k.derived) for k in links])


class OneValue(MemoryStore):
    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        if kind.startswith("check"):
            self.delete_values(kind)
        super().put_values(kind, values)


class ValuesStay(MemoryStore):
    def delete_values(self, kind: str, keys: Any = None) -> None:
        if keys is not None:
            super().delete_values(kind, keys)


class KindsStay(MemoryStore):
    def kinds(self) -> list[str]:
        return list(self._values)


class WithoutJournal(MemoryStore):
    """Loses the ids that were removed."""

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        if kind.startswith("changes"):
            tokens = {key: value[1:].split(b",")[0] for key, value in values.items()}
            values = {key: b"[" + token + b",[],[]]" for key, token in tokens.items()}
        super().put_values(kind, values)


class EmptyWhenClosed(MemoryStore):
    def close(self) -> None:
        self._derivations.clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "message"),
    [
        (WithoutRollback, "after a transaction that raised"),
        (WithoutTouch, r"the number of snapshot\(\) is 0 as before"),
        (UnorderedStamps, r"document_ids\(\)|stamps\('ROOT'\)"),
        (ReplacedLast, r"document_ids\(\)|orders"),
        (WithoutRemovals, r"after change_documents\(.*remove="),
        (StaleMetadata, r"put_derivations\('(word|topic)'.*(nodes\('word'\)|get\(ids\))"),
        (WithoutDerivedLinks, r"derivation\('(word|topic)'"),
        (SortedNodes, r"get\(ids\)"),
        (FewNodes, r"a write of 2500 documents, values and links raised"),
        (OneDirection, r"links\(ids, incoming=True\)"),
        (LinksToExistingNodes, r"(links\(ids|: derivation\()"),
        (LinksStay, r"(links\(ids|: derivation\()"),
        (WithoutWeights, r"links\(ids"),
        (OneValue, r"put_values\('check .*get_values"),
        (ValuesStay, r"(values were added and removed|delete_values\(.*): (kinds|get_values)"),
        (KindsStay, r"kinds\(\)"),
        (WithoutJournal, r"changes\('\w+', \d+\) brings a copy to"),
        (EmptyWhenClosed, r"after close\(\): a method that reads raised KeyError"),
    ],
)
def test_a_wrong_store_is_refused(store: Callable[[], NodeStore], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_store(store)


def test_every_store_that_was_made_is_closed_in_the_end() -> None:
    open_stores = set()

    class Counted(MemoryStore):
        def close(self) -> None:
            open_stores.discard(self)
            super().close()

    def make() -> Counted:
        store = Counted()
        open_stores.add(store)
        return store

    check_store(make, steps=0)
    assert not open_stores


def test_a_store_that_is_another_one_when_reopened_is_refused() -> None:
    with pytest.raises(AssertionError, match="after the store was reopened"):
        check_store(MemoryStore, reopen=lambda store: MemoryStore())


def test_a_store_with_new_revisions_when_reopened_is_refused() -> None:
    def reopen(store: NodeStore) -> NodeStore:
        store.journal.record(ROOT, [], [])
        return store

    with pytest.raises(AssertionError, match="revisions after the store was reopened"):
        check_store(MemoryStore, reopen=reopen)


def test_a_class_without_a_method_is_refused() -> None:
    class Incomplete(MemoryStore):
        get: Any = NodeStore.get

    with pytest.raises(TypeError, match="abstract method"):
        Incomplete()
