"""Follow changes of a whole group: what is different in what was made from it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from .derivation import (
    CORPUS,
    DOCUMENT_STRIDE,
    Amendment,
    Derivation,
    Stamp,
    derive_of_group,
    unmoved,
)
from .groups import NodeGroup
from .node import Link, Node
from .store import Changes, NodeStore
from .transforms import Follower, RankedDraft

_GAP = 1 << 16  # between the places of two nodes, for those that come between them later


class GroupFollower:
    """Know what a store has of a group that follows another one, and say what is to be amended.

    Places of nodes have gaps, so that one that comes between two changes neither.

    Args:
        name: The group.
        version: That of its rule.
        follower: Makes the drafts.

    Attributes:
        version: That of the group's rule.
        since: The revision of the parent group that the drafts are of; 0 before the first update.
        revision: The revision of the group whose nodes are known; None where the store has to be
            read, as before the first amendment and after one that was not written.
    """

    def __init__(self, name: str, version: str, follower: Follower) -> None:
        self.version = version
        self.since = 0
        self.revision: int | None = None
        self._name = name
        self._follower = follower
        self._drafts: dict[str, RankedDraft] = {}  # by key
        self._pending: dict[str, RankedDraft | None] = {}  # by key, what is not amended yet
        self._ranked: list[tuple[tuple[Any, ...], str]] = []  # ranks and keys, in order
        self._places: dict[str, int] = {}  # by key
        self._ids: dict[str, str] = {}  # by key
        self._nodes: dict[str, Node] = {}  # by id, as the store has them
        self._links: dict[str, list[Link]] = {}  # by id

    def update(self, revision: int, removed: Sequence[str], added: Sequence[Node]) -> None:
        """Make drafts of what has changed in the parent group."""
        self._pending.update(self._follower.update(removed, added))
        self.since = revision

    def read(self, stored: Derivation | None) -> None:
        """Take what the store has of the group as what is to be amended."""
        self._nodes = {} if stored is None else {node.id: node for node in stored.nodes}
        self._links = {node_id: [] for node_id in self._nodes}
        for link in () if stored is None else stored.links:
            self._links[link.source].append(link)
        self._pending = {**self._drafts, **self._pending}
        self._places, self._ids = {}, {}
        self.revision = None

    def amendment(self, stamp: Stamp) -> Amendment:
        """Return what is to be changed; ``revision`` is to be set when it is written."""
        everything, self.revision = self.revision is None, None
        removed_ids = set(self._nodes) if everything else set[str]()
        removed_ids.update(self._ids[key] for key in self._pending if key in self._ids)
        unplaced = self._rank(everything)
        keys = self._assign_places(unplaced, everything)
        nodes, unlinked, links = list[Node](), list[Link](), list[Link]()
        for key in keys:
            node, created = derive_of_group(self._name, self._drafts[key].draft, self._places[key])
            old = self._nodes.get(node.id)
            if old is None or not unmoved(old, node):
                nodes.append(node)
            stale, new = _difference(self._links.get(node.id, []), created)
            unlinked += stale
            links += new
            self._ids[key], self._nodes[node.id], self._links[node.id] = node.id, node, created
            removed_ids.discard(node.id)
        for node_id in removed_ids:
            del self._nodes[node_id], self._links[node_id]
        self._pending = {}
        return Amendment(stamp, sorted(removed_ids), nodes, unlinked, links)

    def _rank(self, everything: bool) -> list[str]:
        """Take over the pending drafts; return the keys of those that have no place yet."""
        unplaced = []
        for key, ranked in self._pending.items():
            old = self._drafts.pop(key, None)
            if old is not None and not everything:
                del self._ranked[bisect_left(self._ranked, (old.rank, key))]
            if ranked is None:
                self._ids.pop(key, None)
                self._places.pop(key, None)
                continue
            self._drafts[key] = ranked
            if not everything:
                insort(self._ranked, (ranked.rank, key))
            if old is None or (old.rank, old.draft.text) != (ranked.rank, ranked.draft.text):
                self._places.pop(key, None)
            if key not in self._places:
                unplaced.append(key)
        if everything:
            self._ranked = sorted((ranked.rank, key) for key, ranked in self._drafts.items())
        return unplaced

    def _assign_places(self, unplaced: Sequence[str], everything: bool) -> Iterable[str]:
        """Give places to those that have none; return the keys whose nodes may be different."""
        if everything:
            self._places = self._stored_places()
            unplaced = [key for key in self._drafts if key not in self._places]
        changed = [key for key, ranked in self._pending.items() if ranked is not None]
        if len(unplaced) < len(self._ranked) and self._fill(unplaced):
            return changed
        gap = max(1, min(_GAP, DOCUMENT_STRIDE // (2 * len(self._ranked) + 2)))
        self._places = {key: at * gap for at, (_, key) in enumerate(self._ranked, 1)}
        return list(self._drafts)

    def _stored_places(self) -> dict[str, int]:
        """Return the places that nodes have in the store; none if their order is another."""
        positions: dict[str, int] = {}
        last = 0
        for _, key in self._ranked:
            node, _ = derive_of_group(self._name, self._drafts[key].draft, 0)
            if (stored := self._nodes.get(node.id)) is not None:
                if stored.order <= last:
                    return {}
                positions[key] = last = stored.order
        return positions

    def _fill(self, unplaced: Sequence[str]) -> bool:
        """Give places between those of others; return whether there was room."""
        entries = sorted((self._drafts[key].rank, key) for key in unplaced)
        while entries:
            start = stop = bisect_left(self._ranked, entries[0])
            while stop < len(self._ranked) and self._ranked[stop][1] not in self._places:
                stop += 1
            before = self._places[self._ranked[start - 1][1]] if start else 0
            after = before + _GAP * (stop - start + 1)
            if stop < len(self._ranked):
                after = self._places[self._ranked[stop][1]]
            step = (after - before) // (stop - start + 1)
            if not step or after >= DOCUMENT_STRIDE:
                return False
            for number, (_, key) in enumerate(self._ranked[start:stop], 1):
                self._places[key] = before + step * number
            del entries[: stop - start]
        return True


class GroupFollowers:
    """Keep a follower for each group whose transform follows a whole group.

    Args:
        store: The store to read from.
        attach: Lets a node from the store know its graph.
    """

    def __init__(self, store: NodeStore, attach: Callable[[Node], Node]) -> None:
        self._store = store
        self._attach = attach
        self._followers: dict[str, GroupFollower] = {}  # by group

    def missed(self, group: NodeGroup) -> tuple[GroupFollower, Changes]:
        """Return a group's follower, and what has changed since its last update; while reading."""
        assert group.following is not None
        follower = self._followers.get(group.name)
        if follower is not None and follower.version != group.version:
            follower = None
        changes = self._store.changes(group.parent, 0 if follower is None else follower.since)
        if follower is None or changes.complete:
            follower = GroupFollower(group.name, group.version, group.following.follower())
            self._followers[group.name] = follower
        if follower.revision is None or follower.revision != self._store.revision(group.name):
            follower.read(self._store.derivation(group.name, CORPUS))
        return follower, replace(changes, added=[self._attach(node) for node in changes.added])

    def drop(self, group: NodeGroup) -> None:
        """Forget a follower that failed: it may know half of what has changed."""
        self._followers.pop(group.name, None)


def _difference(old: Sequence[Link], new: Sequence[Link]) -> tuple[list[Link], list[Link]]:
    """Return which links are to be deleted and which put, for them to be in the order of the new.

    New ones are put behind those that are there.
    """
    old_ends, new_ends = ({_target(link) for link in links} for links in (old, new))
    retained = [_target(link) for link in old if _target(link) in new_ends]
    if retained == [_target(link) for link in new[: len(retained)]]:
        stale = [link for link in old if _target(link) not in new_ends]
        return stale, [link for link in new[len(retained) :] if _target(link) not in old_ends]
    return list(old), list(new)


def _target(link: Link) -> tuple[str, str]:
    return link.target, link.type
