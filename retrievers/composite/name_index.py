"""An index of the names that passages have in common, which follows changes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple

from ...nodegraph.extractors.entity_extractor import (
    ARTICLES,
    Mentions,
    Run,
    is_unspaced,
    name_key,
    runs_of,
)

_MIN_PASSAGES = 2  # of an entity that is not a title

_MAX_PASSAGES = 100  # of an entity

_FEW_NAMES = 64  # names that are searched one by one in a text without spaces

_FEW_TITLED = 2  # passages that may have the same title in lowercase


class Entity(NamedTuple):
    """A name that passages have in common.

    Attributes:
        key: The normalized name (``name_key``).
        name: The name as the first title spells it, or else the first passage.
        passages: The ids of the passages that have the name, in document order.
        about: The ids of the passages with that title.
        in_titles: The ids of the passages whose title has the name among other words.
        rank: Entities are sorted by rank.
    """

    key: str
    name: str
    passages: list[str]
    about: list[str]
    in_titles: list[str]
    rank: tuple[int, bool, str]


@dataclass(slots=True)
class _KnownPassage:
    """An indexed passage.

    Attributes:
        id: The id.
        order: The position in document order.
        mentions: The possible names.
        title_key: The key of the title. Empty without a title.
        names: The names that the passage itself writes, by key.
        keys: The keys of all names in the passage.
    """

    id: str
    order: int
    mentions: Mentions
    title_key: str
    names: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    @property
    def runs(self) -> list[Run]:
        """The runs of capitalized words in the text."""
        return runs_of(self.mentions.runs)

    @property
    def own_keys(self) -> set[str]:
        """The keys of the names that the passage writes, and of its title."""
        return {*self.names, *filter(None, [self.title_key])}


Postings = dict[str, list[str]]
"""Ids of passages by the key of a name, or by a word."""


class NameIndex:
    """An index of the names in passages, which follows changes.

    Names depend on all passages. A name that one passage writes, or has as its title, is
    recognized in all passages, including longer names and titles: "Prague astronomical clock"
    contains Prague. The first word of a sentence counts as the passages write it elsewhere. A
    change of one passage can therefore add names to other passages.

    Args:
        has_finder: Whether a function found the names, so that all of them are certain.
    """

    def __init__(self, has_finder: bool) -> None:
        self._has_finder = has_finder
        self._passages: dict[str, _KnownPassage] = {}
        self._lower: Counter[str] = Counter()  # words by the number of their occurrences
        self._upper: Counter[str] = Counter()
        self._about: Postings = {}  # by the key of the title
        self._writers: Postings = {}  # by names that the passages themselves write
        self._having: Postings = {}  # by all names
        self._by_word: Postings = {}  # by words that a name may begin or end with
        self._has_words = True  # False after ``from_state``, until the first change
        self._lengths: defaultdict[str, Counter[int]] = defaultdict(
            Counter
        )  # by first two characters

    def count(self, key: str) -> int:
        """Return the number of passages that have a name."""
        return len(self._having.get(key, ()))

    def keys_of(self, passage: str) -> Sequence[str]:
        """Return the keys of the names in a passage."""
        return self._passages[passage].keys if passage in self._passages else ()

    def title_of(self, passage: str) -> str:
        """Return the key of a passage's title. Empty without a title."""
        return self._passages[passage].title_key if passage in self._passages else ""

    def is_title(self, key: str) -> bool:
        """Return whether a passage has the title with a key."""
        return key in self._about

    def entity(self, key: str) -> Entity | None:
        """Return an entity. None if the name is in too few or too many passages."""
        count = self.count(key)
        if not count or count > _MAX_PASSAGES:
            return None
        titled = self._sorted(self._about.get(key, ()))
        about = [] if self._is_generic(key) else [passage.id for passage in titled]
        if count < _MIN_PASSAGES and not about:
            return None
        having = self._sorted(self._having[key])
        sought, ends = (key, "") if is_unspaced(key) else (f" {key} ", " ")
        in_titles = [
            passage.id
            for passage in having
            if passage.title_key != key and sought in f"{ends}{passage.title_key}{ends}"
        ]
        if titled:
            name = titled[0].mentions.title
        else:
            name = self._sorted(self._writers[key])[0].names[key]
            name = name if name_key(name) == key else key
        rank = (having[0].order, having[0].id not in about, key)
        return Entity(key, name, [passage.id for passage in having], about, in_titles, rank)

    def _is_generic(self, key: str) -> bool:
        """Return whether a title is a heading, such as "Overview" or "Getting started".

        Several passages have the title, and other passages write its words in lowercase.
        """
        if len(self._about.get(key, ())) <= _FEW_TITLED:
            return False
        return all(self._written(word)[1] for word in key.split(" "))

    def state(self) -> dict[str, Any]:
        """Return the index as JSON."""
        passages = [
            [p.id, p.order, p.mentions, p.title_key, p.names, p.keys]
            for p in self._passages.values()
        ]
        return {"lower": self._lower, "upper": self._upper, "passages": passages}

    @classmethod
    def from_state(cls, has_finder: bool, state: Mapping[str, Any]) -> NameIndex:
        """Restore an index from the output of ``state``."""
        index = cls(has_finder)
        index._lower.update(state["lower"])
        index._upper.update(state["upper"])
        index._has_words = False
        for passage_id, order, mentions, title, names, keys in state["passages"]:
            keys = [*map(intern, keys)]
            passage = _KnownPassage(
                passage_id, order, Mentions(*mentions), intern(title), names, keys
            )
            index._passages[passage_id] = passage
            _add(index._writers, names, passage)
            _add(index._having, keys, passage)
            _add(index._about, filter(None, [title]), passage)
        for key in index._writers.keys() | index._about.keys():
            index._note_length(key, 1)
        return index

    def update(
        self, removed: Collection[str], added: Iterable[tuple[str, int, Mentions]]
    ) -> set[str]:
        """Remove and add passages. Return the keys of the names that may have changed.

        Args:
            removed: Ids of passages.
            added: Ids, positions in document order, and possible names of new passages.
        """
        was: dict[str, bool] = {}  # by key, whether the key was a name before
        touched: set[str] = set()
        if not self._has_words:
            self._has_words = True
            for passage in self._passages.values():
                _add(self._by_word, _ends(passage, passage.runs), passage)
        old = [self._passages[i] for i in removed if i in self._passages]
        new = [_KnownPassage(i, n, found, intern(name_key(found.title))) for i, n, found in added]
        old_runs = [passage.runs for passage in old]
        changed = {passage.id: passage.runs for passage in new}
        old_words = [*map(_words, old, old_runs)]
        new_words = [*map(_words, new, changed.values())]
        words = {w for parts in (*old_words, *new_words) for part in parts for w in part}
        before = {word: self._written(word) for word in words} if self._passages else {}
        for passage, runs, (lower, upper) in zip(old, old_runs, old_words, strict=True):
            self._withdraw(passage, was, touched)
            del self._passages[passage.id]
            _remove(self._by_word, _ends(passage, runs), passage)
            self._lower.subtract(lower)
            self._upper.subtract(upper)
        for passage, (lower, upper) in zip(new, new_words, strict=True):
            self._passages[passage.id] = passage
            _add(self._by_word, _ends(passage, changed[passage.id]), passage)
            self._lower.update(lower)
            self._upper.update(upper)
        for word, was_written in before.items():
            if (written := self._written(word)) == was_written:
                continue
            for passage_id in self._by_word.get(word, ()):
                passage = self._passages[passage_id]
                touched.add(passage.title_key)
                if written[0] != was_written[0] and passage_id not in changed:
                    changed[passage_id] = passage.runs
                    self._withdraw(passage, was, touched)
        for passage_id, runs in changed.items():
            self._write(self._passages[passage_id], runs, was)
        touched.update(was)
        self._recognize(changed, was, touched)
        return touched

    def _small(self, word: str) -> bool:
        return self._lower.get(word, 0) >= self._upper.get(word, 0)

    def _written(self, word: str) -> tuple[bool, bool]:
        """Return whether a word is mostly lowercase, and whether it occurs at all in lowercase."""
        small = self._small(word)
        return small, small and self._lower.get(word, 0) > 0

    def _is_name(self, key: str) -> bool:
        return key in self._writers or key in self._about

    def _withdraw(self, passage: _KnownPassage, was: dict[str, bool], touched: set[str]) -> None:
        """Remove the names of a passage."""
        was.update((key, True) for key in passage.own_keys if key not in was)
        touched.update(passage.keys)
        _remove(self._writers, passage.names, passage)
        _remove(self._about, filter(None, [passage.title_key]), passage)
        _remove(self._having, passage.keys, passage)
        passage.names, passage.keys = {}, []

    def _write(self, passage: _KnownPassage, runs: Iterable[Run], was: dict[str, bool]) -> None:
        """Add the names that a passage itself writes, and its title."""
        passage.names = {intern(key): name for key, name in passage.mentions.names.items()}
        for run in runs:
            for key, name in run.names(self._small):
                passage.names.setdefault(intern(key), name)
        for key in passage.own_keys:
            was.setdefault(key, self._is_name(key))
        _add(self._writers, passage.names, passage)
        _add(self._about, filter(None, [passage.title_key]), passage)

    def _recognize(
        self, changed: dict[str, list[Run]], was: dict[str, bool], touched: set[str]
    ) -> None:
        """Find known names in changed passages, and new names in the other passages."""
        new = [key for key, before in was.items() if not before and self._is_name(key)]
        for key in [key for key, before in was.items() if before and not self._is_name(key)]:
            for passage_id in self._having.pop(key, ()):
                self._passages[passage_id].keys.remove(key)
            self._note_length(key, -1)
        for key in new:
            self._note_length(key, 1)
        others = self._with_names(new) if len(changed) < len(self._passages) else set()
        for passage in (self._passages[i] for i in others.difference(changed)):
            self._have(passage, passage.runs)
        for passage_id, runs in changed.items():
            self._have(self._passages[passage_id], runs)
            touched.update(self._passages[passage_id].keys)

    def _have(self, passage: _KnownPassage, runs: Iterable[Run]) -> None:
        """Add all known names in a passage."""
        keys = set(passage.names) if self._has_finder else set()
        keys.update(filter(None, [passage.title_key]))
        for run in runs:
            keys.update(run.known(self._is_name, self._small))
        for run in runs_of(passage.mentions.title_runs):  # every capital letter may begin a name
            keys.update(run.known(self._is_name, lambda word: False))
        keys.update(self._substrings(passage.mentions.unspaced))
        new = [intern(key) for key in keys.difference(passage.keys)]
        passage.keys += new
        _add(self._having, new, passage)

    def _with_names(self, keys: Iterable[str]) -> set[str]:
        """Return the passages that may have one of some names."""
        found: set[str] = set()
        unspaced: list[str] = []
        for key in keys:
            words = key.split(" ")
            if is_unspaced(key):
                unspaced.append(key)
            elif words[0] not in ARTICLES:
                first, last = (self._by_word.get(words[at], ()) for at in (0, -1))
                found |= set(first).intersection(last)
        if unspaced:
            for passage in self._passages.values():
                text = passage.mentions.unspaced
                if text and (len(unspaced) > _FEW_NAMES or any(key in text for key in unspaced)):
                    found.add(passage.id)
        return found

    def _note_length(self, key: str, sign: int) -> None:
        if is_unspaced(key) and len(key) > 1:
            lengths = self._lengths[key[:2]]
            lengths[len(key)] += sign
            if not lengths[len(key)]:
                del lengths[len(key)]

    def _substrings(self, text: str) -> Iterator[str]:
        """Yield the keys of known names in a text without spaces."""
        for at in range(len(text) - 1):
            for length in self._lengths.get(text[at : at + 2], ()):
                if self._is_name(key := text[at : at + length]):
                    yield key

    def _sorted(self, passages: Iterable[str]) -> list[_KnownPassage]:
        return sorted(map(self._passages.__getitem__, passages), key=lambda p: p.order)


def _words(passage: _KnownPassage, runs: Iterable[Run]) -> tuple[list[str], list[str]]:
    """Return the words of a passage in lowercase, and its capitalized words inside sentences."""
    upper = [
        plain
        for run in runs
        for word, plain in zip(run.words[run.begins :], run.plain[run.begins :], strict=True)
        if word[0].isupper()
    ]
    return passage.mentions.lower.split(), upper


def _ends(passage: _KnownPassage, runs: Iterable[Run]) -> set[str]:
    """Return the words of a passage with which a name may begin or end."""
    words = set(passage.title_key.split(" "))
    for run in (*runs, *runs_of(passage.mentions.title_runs)):
        words.update(run.plain[at] for at in run.limits)
    return words


def _add(postings: Postings, keys: Iterable[str], passage: _KnownPassage) -> None:
    for key in keys:
        postings.setdefault(key, []).append(passage.id)


def _remove(postings: Postings, keys: Iterable[str], passage: _KnownPassage) -> None:
    for key in keys:
        postings[key].remove(passage.id)
        if not postings[key]:
            del postings[key]
