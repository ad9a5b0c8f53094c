"""An incremental index of the names that link passages."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from sys import intern
from typing import Any, NamedTuple

import numpy as np

from ...nodegraph.derivation import CORPUS
from ...nodegraph.errors import StoreError
from ...nodegraph.extractors.entity_extractor import EntityExtractor
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.names import ARTICLES, Mentions, is_unspaced, name_key
from ...nodegraph.node import Node
from ...nodegraph.storage.columns import DAMAGED
from ..indexes.array_files import Arrays, checked
from ..indexes.synced_index import SyncedIndex
from .link_names import Run, names_in, runs_of

_MIN_PASSAGES = 2  # the minimum number of passages that mention an entity that is not a title

MAX_PASSAGES_PER_ENTITY = 100
"""The maximum number of passages that mention an entity. More frequent names are ignored."""

# The maximum number of names that are searched individually in texts without spaces.
_FEW_NAMES = 64

# The maximum number of passages that share a title that is otherwise written in lowercase.
_FEW_TITLED = 2


class Entity(NamedTuple):
    """A name that several passages have in common.

    Attributes:
        key: The normalized name. See ``name_key``.
        name: The name as it is spelled in the first title, or else in the first passage.
        passages: The ids of the passages that contain the name, in document order.
        about: The ids of the passages whose title is the name.
        in_titles: The ids of the passages whose title contains the name together with other words.
        rank: The key by which entities are sorted.
    """

    key: str
    name: str
    passages: list[str]
    about: list[str]
    in_titles: list[str]
    rank: tuple[int, bool, str]


@dataclass(slots=True, eq=False)
class _KnownPassage:
    """A passage in the index.

    Attributes:
        id: The id of the passage.
        order: The position of the passage in document order.
        mentions: The possible names in the passage.
        title: The key of the title, or an empty string if the passage has no title.
        names: The names that were found in the text of the passage itself, by key.
        keys: The keys of all names in the passage.
    """

    id: str
    order: int
    mentions: Mentions
    title: str
    names: Mapping[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    @property
    def titles(self) -> list[str]:
        """The key of the title as a list, which is empty if the passage has no title."""
        return [self.title] if self.title else []


def _mentions_of(node: Node) -> Mentions:
    """Return the possible names that are stored in a node.

    Raises:
        StoreError: If the node has different content, for example because the file is damaged.
    """
    try:
        return Mentions(*node.content)
    except TypeError as error:
        raise StoreError(f"{node!r} has no names; {DAMAGED}") from error


Postings = dict[str, list[_KnownPassage]]
"""Lists of passages, by the key of a name or by a word."""


class LinkIndex(SyncedIndex):
    """An index of the names that passages have in common.

    The index is built from a group of possible names (mentions). The set of names depends on all
    passages. A name that occurs in one passage, or is its title, is recognized in all passages,
    even within longer names and titles. For example, "Prague astronomical clock" contains the name
    Prague. The capitalization of the first word of a sentence is resolved by its usual spelling in
    other passages. Therefore, a change to one passage can add names to other passages.

    Args:
        graph: The graph.
        group: The name of the group that contains the mentions.
        extractor: The transform that creates the group.
    """

    def __init__(self, graph: NodeGraph, group: str, extractor: EntityExtractor) -> None:
        # If a function finds the names, all of them are certain.
        self._has_finder = extractor.find is not None
        self._rules = graph.reader.lineage(group)[-1].version
        super().__init__(graph, group)

    @classmethod
    def open(cls, graph: NodeGraph, group: str) -> LinkIndex:
        """Return the index of a group, which all retrievers share.

        Raises:
            UnknownGroupError: If the graph has no such group.
            ValueError: If the transform of the group is not an ``EntityExtractor``.
        """
        declared = graph.reader.lineage(group)[-1]
        extractor = declared.rule.call
        if not isinstance(extractor, EntityExtractor):
            raise ValueError(
                f"group {group!r} must have the transform EntityExtractor; for your own names, use "
                "EntityExtractor(find)"
            )
        key = ("link index", group, declared.version)
        return graph.reader.shared(key, lambda: cls(graph, group, extractor))

    @property
    def size(self) -> int:
        """The number of passages in the index."""
        return len(self._passages)

    # Reading

    def entity(self, key: str) -> Entity | None:
        """Return the entity for a name, or None if too few or too many passages contain it."""
        if key not in self._entities:
            self._entities[key] = self._make_entity(key)
        return self._entities[key]

    def entities(self, passages: Iterable[str]) -> list[Entity]:
        """Return the entities in the given passages that at least one other passage contains."""
        keys: dict[str, None] = {}
        for passage_id in passages:
            if passage_id in self._passages:
                keys |= dict.fromkeys(self._passages[passage_id].keys)
        found = [self.entity(key) for key in keys if len(self._having[key]) > 1]
        return [entity for entity in found if entity is not None]

    def node(self, key: str) -> Node:
        """Return a node that represents an entity in the evidence of a result."""
        entity = self.entity(key)
        assert entity is not None
        i = digest(CORPUS, self._group, key)
        return Node(entity.name, id=i, group=self._group, graph=self._graph)

    def title(self, passage: str) -> str | None:
        """Return the key of a passage's title, or None if the passage has no title."""
        known = self._passages.get(passage)
        if known is None or not self._is_title(known.title):
            return None
        return known.title

    def named(self, text: str) -> list[Entity]:
        """Return the entities whose names are titles and occur in a text, longest names first."""
        entities = [self.entity(key) for key in names_in(text, self._is_title)]
        return [entity for entity in entities if entity is not None]

    def _is_title(self, key: str) -> bool:
        if key not in self._about:
            return False
        entity = self.entity(key)
        return entity is not None and bool(entity.about)

    def _make_entity(self, key: str) -> Entity | None:
        if not 0 < len(self._having.get(key, ())) <= MAX_PASSAGES_PER_ENTITY:
            return None
        having = _sorted(self._having, key)
        titled = _sorted(self._about, key)
        # A heading such as "Overview" is the title of several passages, and other passages write
        # its words in lowercase.
        is_heading = len(titled) > _FEW_TITLED and self._is_lowercase(key)
        about = [] if is_heading else [passage.id for passage in titled]
        if len(having) < _MIN_PASSAGES and not about:
            return None
        end = "" if is_unspaced(key) else " "  # the characters around a whole word
        in_titles = [
            passage.id
            for passage in having
            if passage.title != key and f"{end}{key}{end}" in f"{end}{passage.title}{end}"
        ]
        if titled:
            name = titled[0].mentions.title
        else:
            name = _sorted(self._writers, key)[0].names[key]
            if name_key(name) != key:
                name = key
        rank = (having[0].order, having[0].id not in about, key)
        return Entity(key, name, [passage.id for passage in having], about, in_titles, rank)

    # Following changes

    def clear(self) -> None:
        """Remove all passages from the index."""
        self._passages: dict[str, _KnownPassage] = {}
        self._by_mention: dict[str, str] = {}  # the ids of passages, by the ids of their mentions
        self._entities: dict[str, Entity | None] = {}  # a cache of entities, by key
        self._lower: Counter[str] = Counter()  # the counts of words in lowercase
        self._upper: Counter[str] = Counter()
        self._names: set[str] = set()  # the keys of all names and titles
        self._about: Postings = {}  # passages, by the key of their title
        self._writers: Postings = {}  # passages, by the names that were found in their own texts
        self._having: Postings = {}  # passages, by all names that they contain
        self._by_word: Postings = {}  # passages, by the words with which a name can begin or end
        self._lengths: defaultdict[str, Counter[int]] = defaultdict(Counter)
        """Lengths of names in scripts without spaces, by their first two characters."""

    def remove(self, ids: Sequence[str]) -> None:
        """Remove mentions from the index."""
        passages = [self._by_mention.pop(i) for i in ids if i in self._by_mention]
        if passages:
            self._change([self._passages[i] for i in passages], [])

    def add(self, nodes: Sequence[Node]) -> None:
        """Add mentions to the index."""
        passages = []
        for node in nodes:
            mentions = _mentions_of(node)
            title = intern(name_key(mentions.title))
            passages.append(_KnownPassage(node.parent_id or "", node.order, mentions, title))
            self._by_mention[node.id] = passages[-1].id
        self._change([], passages)

    def _change(self, old: Sequence[_KnownPassage], new: Sequence[_KnownPassage]) -> None:
        """Update the index after passages were removed or added."""
        self._entities.clear()
        runs = cache(lambda passage: runs_of(passage.mentions.runs))
        # Restored passages are not yet listed by word.
        unlisted = [] if self._by_word else [*self._passages.values()]
        for passage in (*unlisted, *new):
            _add(self._by_word, _ends(passage, runs(passage)), passage)
        touched: set[str] = set()
        for passage in old:
            del self._passages[passage.id]
            touched |= self._withdraw(passage)
            _remove(self._by_word, _ends(passage, runs(passage)), passage)
        self._passages |= {passage.id: passage for passage in new}
        changed = dict.fromkeys(new)
        for word in self._count_words(old, new, runs):
            for passage in self._by_word.get(word, ()):
                if passage not in changed:
                    changed[passage] = None
                    touched |= self._withdraw(passage)
        for passage in changed:
            touched |= self._write(passage, runs(passage))
        added = self._update_names(touched)
        if len(changed) < len(self._passages):
            changed |= dict.fromkeys(self._with_names(added))
        for passage in changed:
            self._recognize(passage, runs(passage))

    def _count_words(
        self,
        old: Iterable[_KnownPassage],
        new: Iterable[_KnownPassage],
        runs: Callable[[_KnownPassage], Sequence[Run]],
    ) -> list[str]:
        """Update the word counts, and return the words whose usual spelling has changed."""
        removed = [_words(passage, runs(passage)) for passage in old]
        added = [_words(passage, runs(passage)) for passage in new]
        words: set[str] = set()
        for lower, upper in (*removed, *added):
            words.update(lower, upper)
        was_small = {word: self._is_small(word) for word in words}
        for lower, upper in removed:
            self._lower.subtract(lower)
            self._upper.subtract(upper)
        for lower, upper in added:
            self._lower.update(lower)
            self._upper.update(upper)
        return [word for word, small in was_small.items() if self._is_small(word) != small]

    def _write(self, passage: _KnownPassage, runs: Iterable[Run]) -> set[str]:
        """Find the names that occur in the text of a passage, and register them.

        The keys of these names and the key of the title are returned.
        """
        names = {intern(key): name for key, name in passage.mentions.names.items()}
        for run in runs:
            for key, name in run.names(self._is_small):
                names.setdefault(intern(key), name)
        passage.names = names
        _add(self._writers, names, passage)
        _add(self._about, passage.titles, passage)
        return {*names, *passage.titles}

    def _update_names(self, touched: set[str]) -> set[str]:
        """Remove names that no longer occur in any passage, and return the new names."""
        names = {key for key in touched if key in self._writers or key in self._about}
        added = names - self._names
        gone = (touched - names) & self._names
        for key in gone:
            for passage in self._having.pop(key, ()):
                passage.keys.remove(key)
            self._note_length(key, -1)
        for key in added:
            self._note_length(key, 1)
        self._names -= gone
        self._names |= added
        return added

    def _is_small(self, word: str) -> bool:
        """Return whether a word is written in lowercase at least as often as it is capitalized."""
        return self._lower.get(word, 0) >= self._upper.get(word, 0)

    def _is_lowercase(self, key: str) -> bool:
        """Return whether all words of a name are usually lowercase in the passages."""
        return all(self._lower[word] > 0 and self._is_small(word) for word in key.split(" "))

    def _withdraw(self, passage: _KnownPassage) -> set[str]:
        """Unregister the names of a passage, and return the keys of the names in its own text."""
        own_keys = {*passage.names, *passage.titles}
        _remove(self._writers, passage.names, passage)
        _remove(self._about, passage.titles, passage)
        _remove(self._having, passage.keys, passage)
        passage.names = {}
        passage.keys = []
        return own_keys

    def _recognize(self, passage: _KnownPassage, runs: Iterable[Run]) -> None:
        """Find all existing names in a passage."""
        is_name = self._names.__contains__
        keys = {*passage.titles}
        if self._has_finder:
            keys.update(passage.names)
        for run in runs:
            keys.update(run.known(is_name, self._is_small))
        # Every capitalized word in a title can begin a name.
        for run in runs_of(passage.mentions.title_runs):
            keys.update(run.known(is_name, lambda word: False))
        text = passage.mentions.unspaced
        for at in range(len(text) - 1):
            for length in self._lengths.get(text[at : at + 2], ()):
                key = text[at : at + length]
                if is_name(key):
                    keys.add(key)
        new = [intern(key) for key in keys.difference(passage.keys)]
        passage.keys += new
        _add(self._having, new, passage)

    def _with_names(self, keys: Iterable[str]) -> set[_KnownPassage]:
        """Return the passages that may contain at least one of the names."""
        found: set[_KnownPassage] = set()
        unspaced = [key for key in keys if is_unspaced(key)]
        are_many = len(unspaced) > _FEW_NAMES
        if unspaced:
            written = [passage for passage in self._passages.values() if passage.mentions.unspaced]
            for passage in written:
                text = passage.mentions.unspaced
                if are_many or any(key in text for key in unspaced):
                    found.add(passage)
        for key in keys:
            words = key.split(" ")
            if words[0] not in ARTICLES:
                beginning = self._by_word.get(words[0], ())
                ending = self._by_word.get(words[-1], ())
                found.update(set(beginning).intersection(ending))
        return found

    def _note_length(self, key: str, sign: int) -> None:
        if is_unspaced(key) and len(key) > 1:
            lengths = self._lengths[key[:2]]
            lengths[len(key)] += sign
            if not lengths[len(key)]:
                del lengths[len(key)]

    # The file

    def file_name(self) -> str:
        """Return the name of the file in which the index is stored."""
        return "links"

    def header(self) -> dict[str, Any]:
        """Return a header that identifies the version of the rules for extracting mentions."""
        return {"kind": "names", "rules": self._rules}

    def arrays(self) -> Arrays:
        """Return the index as an array that contains the bytes of a JSON text."""
        rows = [
            (p.id, p.order, p.mentions, p.title, p.names, p.keys) for p in self._passages.values()
        ]
        state = json.dumps([self._by_mention, self._lower, self._upper, rows])
        return {"state": np.frombuffer(state.encode(), np.uint8)}

    def restore(self, arrays: Arrays) -> None:
        """Restore an empty index from the result of ``arrays``.

        Raises:
            ValueError: If the arrays are not valid.
        """
        state = json.loads(checked(arrays, "state", np.uint8, None).tobytes())
        self._by_mention, lower, upper, rows = state
        _check_type(self._by_mention, str)
        _check_type(lower, int)
        _check_type(upper, int)
        self._lower.update(lower)
        self._upper.update(upper)
        for row in rows:
            passage = _restored(*row)
            self._passages[passage.id] = passage
            _add(self._writers, passage.names, passage)
            _add(self._having, passage.keys, passage)
            _add(self._about, passage.titles, passage)
        self._names.update(self._writers, self._about)
        for key in self._names:
            self._note_length(key, 1)

    def verify(self) -> None:
        """Check that the index and the graph contain the same passages.

        Raises:
            ValueError: If the passages differ.
        """
        found = self._graph.reader.parent_ids([*self._by_mention])
        parents = [parent or "" for parent in found]
        if parents != [*self._by_mention.values()] or {*parents} != self._passages.keys():
            raise ValueError("its passages must be those of the graph")


def _check_type(values: object, kind: type) -> None:
    """Check the types of the values of a JSON object.

    Raises:
        ValueError: If the argument is not an object, or one of its values has the wrong type.
    """
    if not isinstance(values, dict) or not {type(value) for value in values.values()} <= {kind}:
        raise ValueError(f"the values of an object must be {kind.__name__}")


def _restored(
    passage_id: str, order: int, mentions: list[Any], title: str, names: Any, keys: list[str]
) -> _KnownPassage:
    """Create a passage from a row of a file.

    Raises:
        TypeError: If a value has the wrong type.
        ValueError: If a value is invalid.
    """
    parsed = Mentions(*mentions)
    _check_type(parsed.names, str)
    _check_type(names, str)
    texts = [passage_id, title, parsed.title, parsed.title_runs]
    texts += [parsed.runs, parsed.lower, parsed.unspaced]
    if type(order) is not int or {type(text) for text in texts} != {str}:
        raise ValueError("a passage must have a position and texts")
    if len({*keys}) < len(keys):
        raise ValueError("a passage must have each name once")
    interned = [intern(key) for key in keys]
    return _KnownPassage(passage_id, order, parsed, intern(title), names, interned)


def _sorted(postings: Postings, key: str) -> list[_KnownPassage]:
    return sorted(postings.get(key, ()), key=lambda passage: passage.order)


def _words(passage: _KnownPassage, runs: Iterable[Run]) -> tuple[list[str], list[str]]:
    """Return the lowercase words of a passage, and the capitalized words inside its sentences."""
    upper: list[str] = []
    for run in runs:
        inside = zip(run.words[run.begins :], run.plain[run.begins :], strict=True)
        upper += [plain for word, plain in inside if word[0].isupper()]
    return passage.mentions.lower.split(), upper


def _ends(passage: _KnownPassage, runs: Iterable[Run]) -> set[str]:
    """Return the words of a passage with which a name can begin or end."""
    words = set(passage.title.split(" "))
    for run in (*runs, *runs_of(passage.mentions.title_runs)):
        words.update(run.plain[at] for at in run.limits)
    return words


def _add(postings: Postings, keys: Iterable[str], passage: _KnownPassage) -> None:
    for key in keys:
        postings.setdefault(key, []).append(passage)


def _remove(postings: Postings, keys: Iterable[str], passage: _KnownPassage) -> None:
    for key in keys:
        postings[key].remove(passage)
        if not postings[key]:
            del postings[key]
