"""The revisions of groups, and a journal of their latest changes."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

TOKENS = 1 << 32
"""Revisions are sequence numbers times this, plus a token."""

_STATES = "group"  # the kind of the values that hold the states, by group

_OVERHEAD = 1000  # changes that a journal holds beside half of what its group has


class ValueStore(Protocol):
    """Store bytes by kind and key."""

    def get_values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return those of the values that exist, or all of a kind, by key."""

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values, over existing ones."""

    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values, or all of a kind."""


class GroupState(NamedTuple):
    """Describe one group: its size, its revision, and up to where it is built.

    Attributes:
        size: How many nodes it has.
        sequence: How many changes it has had.
        token: A random number of the last change.
        journal_size: How many nodes the entries of the journal name, one for an entry without any.
        oldest: The sequence number of the oldest entry.
        rules: The rules by which it was last built, None if it never was.
        built_for: The revision of ``ROOT`` up to which it was built.
        places: The number of documents that were ever added, of ``ROOT``.
    """

    size: int = 0
    sequence: int = 0
    token: int = 0
    journal_size: int = 0
    oldest: int = 1
    rules: str | None = None
    built_for: int = 0
    places: int = 0

    @property
    def revision(self) -> int:
        """The group's counter, with a token that no other history of the store has."""
        return self.sequence * TOKENS + self.token


class Journal:
    """Number the changes of each group, and store the latest ones as values.

    A group's journal is shortened when it outgrows the group: reading the whole group is cheaper
    then.
    """

    def __init__(self, store: ValueStore) -> None:
        self._store = store

    def record(self, group: str, removed: Sequence[str], added: Sequence[str]) -> None:
        """Advance a group to its next revision; without ids where only its links have changed.

        Args:
            group: The group's name.
            removed: Ids of the nodes that are removed or changed.
            added: Ids of the nodes that are new or changed.
        """
        state = self.state(group)
        sequence, token = state.sequence + 1, random.randrange(TOKENS)
        self.append(group, sequence, token, removed, added)
        size = state.size + len(added) - len(removed)
        journal_size = state.journal_size + entry_size(removed, added)
        limit, oldest = size // 2 + _OVERHEAD, 0
        if journal_size > limit:
            # The last one to go is only emptied: who has its revision has missed none before it.
            # So what followed one large change is known, though that outgrew the journal alone.
            for number, freed in self.entry_sizes(group, state):
                if journal_size <= limit // 2:
                    break
                oldest, journal_size = number, journal_size - freed
            if oldest:
                self.delete(group, state.oldest, oldest)
                self.empty(group, oldest)
        self.put_state(
            group,
            state._replace(
                size=size,
                sequence=sequence,
                token=token,
                journal_size=journal_size,
                oldest=oldest or state.oldest,
            ),
        )

    def changes(self, group: str, revision: int) -> tuple[Sequence[str], Sequence[str]] | None:
        """Return ids removed and ids added after a revision; None if it is not in the journal.

        An id may be in both. Nodes of ids that were added may be removed by now.
        """
        state = self.state(group)
        first, token = divmod(revision, TOKENS)
        if not state.oldest <= first <= state.sequence:
            return None
        numbers = [str(number) for number in range(first, state.sequence + 1)]
        values = self._store.get_values(_kind(group), numbers)
        entries = [json.loads(values[number].decode()) for number in numbers]
        if entries[0][0] != token:
            return None
        removed, added = (
            list(dict.fromkeys(i for entry in entries[1:] for i in entry[part])) for part in (1, 2)
        )
        return removed, added

    # Where states and entries are stored

    def state(self, group: str) -> GroupState:
        """Return the state of a group; that of an empty one if there is none."""
        value = self._store.get_values(_STATES, [group]).get(group)
        return GroupState() if value is None else _read_state(value)

    def put_state(self, group: str, state: GroupState) -> None:
        """Store the state of a group."""
        self._store.put_values(_STATES, {group: json.dumps(state).encode()})

    def groups(self) -> list[str]:
        """Return the names of the groups that have a state."""
        return list(self._store.get_values(_STATES))

    def append(
        self, group: str, sequence: int, token: int, removed: Sequence[str], added: Sequence[str]
    ) -> None:
        """Store an entry."""
        entry = json.dumps([token, list(removed), list(added)]).encode()
        self._store.put_values(_kind(group), {str(sequence): entry})

    def entry_sizes(self, group: str, state: GroupState) -> list[tuple[int, int]]:
        """Return the number and size of each entry before the last recorded one, oldest first."""
        numbers = range(state.oldest, state.sequence + 1)
        values = self._store.get_values(_kind(group), [*map(str, numbers)])
        sizes = {number: entry_size(*json.loads(values[str(number)])[1:]) for number in numbers}
        if state.oldest > 1:
            sizes[state.oldest] = 0  # it was emptied
        return list(sizes.items())

    def empty(self, group: str, number: int) -> None:
        """Drop the ids of an entry; its number and token stay."""
        kind, key = _kind(group), str(number)
        token, _, _ = json.loads(self._store.get_values(kind, [key])[key])
        self._store.put_values(kind, {key: json.dumps([token, [], []]).encode()})

    def delete(self, group: str, first: int, stop: int) -> None:
        """Delete the entries from a number up to another one, which stays."""
        self._store.delete_values(_kind(group), [str(number) for number in range(first, stop)])


def entry_size(removed: Sequence[str], added: Sequence[str]) -> int:
    """Return how much an entry takes of what a journal may hold."""
    return len(removed) + len(added) or 1


def _kind(group: str) -> str:
    return f"changes {group}"


@lru_cache(1024)
def _read_state(value: bytes) -> GroupState:
    return GroupState(*json.loads(value.decode()))
