"""Find names that passages have in common, without a model."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple, overload

from ..errors import check_integer
from ..node import LinkedText, Node
from .entity_names import ARTICLES, Mentions, Run, is_unspaced, name_key, parse, runs_of

Finder = Callable[[str], Iterable[str]]
"""A function from the text of a passage to the names in it."""

_FEW_NAMES = 64  # names that are searched one by one in a text without spaces

_FEW_TITLED = 2  # passages that may have the same title in lowercase

_REMOVED = 1000  # removed passages in postings, in addition to the number of existing passages

_SENTENCE_END = re.compile(r"[.!?,;:。！？，；：、]$")

_TITLE = 100  # characters in a first line that is a title


class EntityExtractor:
    """Find the names in each passage, for links between passages that have a name in common.

    Use as a node group's transform. Each passage gets one node with its possible names, and
    ``LinkRetriever(..., via=group)`` links the passages. With ``scope="group"`` the transform
    makes a node of each entity instead, linked to its passages; then every change of a passage
    makes all of them again.

    Without ``find``, entities are titles of passages (from the metadata, else a short first
    line), and phrases of capitalized words, also inside longer phrases. In scripts without
    spaces, entities are texts in 《》 and other quotation marks, wherever else they occur. The
    first word of a sentence counts as the other passages write it (Lita et al., "tRuEcasIng",
    2003). Names are compared without case, accents, possessives, articles, punctuation and
    remarks in brackets at their end. The cost is linear in the corpus.

    Args:
        find: A function from the text of a passage to the names in it, such as a model or a
            dictionary. None: names are found as above.
        title: The metadata field of a passage's title.
        min_passages: Entities in fewer passages are left out, unless they are a title.
        max_passages: Entities in more passages are left out.

    Raises:
        TypeError: If ``find`` cannot be called, or a number has the wrong type.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Brand (play)\\nA play by Henrik Ibsen.", "Henrik Ibsen\\nHe wrote."])
        >>> passages = list(graph.nodes("ROOT"))
        >>> [(entity.item.text, len(entity.to)) for entity in EntityExtractor()(passages)]
        [('Brand (play)', 1), ('Henrik Ibsen', 2)]
    """

    trans_node = True
    rules = 4  # nodes that were made by other rules are made again

    def __init__(
        self,
        find: Finder | None = None,
        *,
        title: str = "title",
        min_passages: int = 2,
        max_passages: int = 100,
    ) -> None:
        if find is not None and not callable(find):
            raise TypeError(f"find must be a function from a text to names, got {find!r:.80}")
        check_integer(min_passages, "min_passages")
        check_integer(max_passages, "max_passages")
        if not 1 <= min_passages <= max_passages:
            raise ValueError(
                "min_passages must be 1 or more and not above max_passages, "
                f"got {min_passages} and {max_passages}"
            )
        self.find = find
        self.title = title
        self.min_passages = min_passages
        self.max_passages = max_passages

    def __repr__(self) -> str:
        limits = f"min_passages={self.min_passages}, max_passages={self.max_passages}"
        return f"EntityExtractor({self.find!r}, {limits})"

    @overload
    def __call__(self, passages: Node) -> Node: ...

    @overload
    def __call__(self, passages: Sequence[Node]) -> list[LinkedText]: ...

    def __call__(self, passages: Node | Sequence[Node]) -> Node | list[LinkedText]:
        """Return the possible names of a passage, or the entities of many passages.

        Entities are in the order of the first passages that have them. Their metadata has
        ``about``, the ids of the passages with that title.
        """
        if isinstance(passages, Node):
            mentions = self.mentions(passages)
            text = mentions.title.strip() or passages.text.strip()
            return Node(text[:_TITLE], content=[*mentions])
        by_id = {passage.id: passage for passage in passages}
        index = NameIndex(self)
        keys = index.update((), [(node.id, node.order, self.mentions(node)) for node in passages])
        entities = sorted(filter(None, map(index.entity, keys)), key=lambda entity: entity.rank)
        return [
            LinkedText(Node(e.name, {"about": e.about}), [by_id[i] for i in e.passages])
            for e in entities
        ]

    def mentions(self, passage: Node) -> Mentions:
        """Return the possible names of a passage."""
        title, body = split_title(passage, self.title)
        return parse(title, body) if self.find is None else Mentions(title, self._found(body))

    def _found(self, body: str) -> dict[str, str]:
        """Return the names that ``find`` returns, by key."""
        assert self.find is not None
        names = self.find(body)
        if isinstance(names, str):
            raise TypeError(f"find must return several names, got one text: {names!r:.80}")
        by_key: dict[str, str] = {}
        for name in names:
            if key := name_key(name):
                by_key.setdefault(key, name)
        return by_key


def split_title(passage: Node, field: str = "title") -> tuple[str, str]:
    """Return the title of a passage and the text without the title.

    The title comes from the metadata, else from a short first line. It may be empty.
    """
    title, body = passage.metadata.get(field), passage.text
    if isinstance(title, str):
        return title, body
    head, _, remaining = body.partition("\n")
    head = head.strip().lstrip("#").strip()
    is_wrapped = _SENTENCE_END.search(head) or remaining.lstrip()[:1].islower()
    if is_wrapped or not remaining.strip() or len(head) > _TITLE:
        return "", body
    return (head, remaining) if head else ("", body)


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


_Written = dict[str, tuple[bool, bool]]
"""By word: whether passages write it in lowercase at least as often, and whether at all."""


class NameIndex:
    """An index of the names in passages, which follows changes.

    Names are decided by all passages. A name that one passage writes, or has as its title, is
    recognized in all passages, also inside longer names and in titles ("Prague astronomical
    clock" is about Prague, too). The first word of a sentence counts as the passages write it
    elsewhere. So a change of one passage can add names to others: postings find those passages.

    Args:
        extractor: The settings.
    """

    def __init__(self, extractor: EntityExtractor) -> None:
        self._extractor = extractor
        self._reset()

    def _reset(self) -> None:
        self._passages: dict[int, _KnownPassage] = {}  # by number, in the order they were added
        self._numbers: dict[str, int] = {}
        self._count = 0  # numbers given so far
        self._lower: Counter[str] = Counter()
        self._upper: Counter[str] = Counter()
        self._about: dict[str, list[int]] = {}  # passages by the key of their title
        self._writers: dict[str, list[int]] = {}  # passages that write a name themselves
        self._having: dict[str, list[int]] = {}  # passages that have a name
        self._lengths: defaultdict[str, Counter[int]] = defaultdict(Counter)  # by two characters
        self._by_word: dict[str, array[int]] = {}  # passages by words that a name may begin with
        self._has_words = True  # the index of a state adds the words at the first change

    # What the index says

    def count(self, key: str) -> int:
        """Return the number of passages that have a name."""
        return len(self._having.get(key, ()))

    def keys_of(self, passage: str) -> Sequence[str]:
        """Return the keys of the names in a passage."""
        number = self._numbers.get(passage)
        return () if number is None else self._passages[number].keys

    def title_of(self, passage: str) -> str:
        """Return the key of a passage's title. Empty without a title."""
        number = self._numbers.get(passage)
        return "" if number is None else self._passages[number].title_key

    def is_title(self, key: str) -> bool:
        """Return whether passages have that title."""
        return key in self._about

    def entity(self, key: str) -> Entity | None:
        """Return an entity. None if the name is in too few or too many passages."""
        count = self.count(key)
        if not count or count > self._extractor.max_passages:
            return None
        titled = self._sorted(self._about.get(key, ()))
        about = [] if self._is_generic(key) else [passage.id for passage in titled]
        if count < self._extractor.min_passages and not about:
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
            writers = map(self._passages.__getitem__, self._writers[key])
            name = min(writers, key=lambda passage: passage.order).names[key]
            name = name if name_key(name) == key else key
        rank = (having[0].order, having[0].id not in about, key)
        return Entity(key, name, [passage.id for passage in having], about, in_titles, rank)

    def _is_generic(self, key: str) -> bool:
        """Return whether a title is no name, such as "Overview" or "Getting started".

        Several passages have the title, and others write its words without capital letters.
        """
        if len(self._about.get(key, ())) <= _FEW_TITLED:
            return False
        return all(map(self._is_lower, key.split(" ")))

    # The state

    def state(self) -> dict[str, Any]:
        """Return the index as JSON."""
        passages = [
            [p.id, p.order, p.mentions, p.title_key, p.names, p.keys]
            for p in self._passages.values()
        ]
        return {"lower": self._lower, "upper": self._upper, "passages": passages}

    @classmethod
    def from_state(cls, extractor: EntityExtractor, state: Mapping[str, Any]) -> NameIndex:
        """Return the index of a state."""
        index = cls(extractor)
        index._lower.update(state["lower"])
        index._upper.update(state["upper"])
        index._count = len(state["passages"])
        index._has_words = False
        for number, (i, order, mentions, title, names, keys) in enumerate(state["passages"]):
            keys = [*map(intern, keys)]
            passage = _KnownPassage(i, order, Mentions(*mentions), intern(title), names, keys)
            index._passages[number], index._numbers[i] = passage, number
            for key in names:
                index._writers.setdefault(key, []).append(number)
            for key in keys:
                index._having.setdefault(key, []).append(number)
            if title:
                index._about.setdefault(title, []).append(number)
        for key in index._writers.keys() | index._about.keys():
            index._note_length(key, 1)
        return index

    # Changes

    def update(
        self, removed: Collection[str], added: Iterable[tuple[str, int, Mentions]]
    ) -> set[str]:
        """Remove and add passages. Return the keys of the names that may have changed.

        Args:
            removed: Ids of passages.
            added: Ids, positions in document order, and possible names of new passages.
        """
        was: dict[str, bool] = {}  # by key, whether it was a name before
        touched: set[str] = set()
        before: _Written | None = {} if self._passages else None
        if not self._has_words:
            self._has_words = True
            for number, passage in self._passages.items():
                self._add_words(number, passage, runs_of(passage.mentions.runs))
        for number in [self._numbers[i] for i in removed if i in self._numbers]:
            self._withdraw(number, was, touched)
            passage = self._passages.pop(number)
            del self._numbers[passage.id]
            self._count_words(passage.mentions.lower, runs_of(passage.mentions.runs), -1, before)
        changed = {}
        for passage_id, order, mentions in added:
            number = self._numbers[passage_id] = self._count
            self._count += 1
            title = intern(name_key(mentions.title))
            passage = self._passages[number] = _KnownPassage(passage_id, order, mentions, title)
            runs = changed[number] = runs_of(mentions.runs)
            self._count_words(mentions.lower, runs, 1, before)
            self._add_words(number, passage, runs)
        for word, was_written in (before or {}).items():
            now = self._small(word), self._is_lower(word)
            if now == was_written:
                continue
            for number in self._with_word(word):
                touched.add(self._passages[number].title_key)
                if now[0] != was_written[0] and number not in changed:
                    changed[number] = runs_of(self._passages[number].mentions.runs)
                    self._withdraw(number, was, touched)
        for number, runs in changed.items():
            self._write(number, runs, was)
        touched.update(was)
        self._recognize(changed, was, touched)
        self._clear_postings()
        return touched

    def _add_words(self, number: int, passage: _KnownPassage, runs: Sequence[Run]) -> None:
        words = set(passage.title_key.split(" "))
        for run in (*runs, *runs_of(passage.mentions.title_runs)):
            words.update(run.plain[at] for at in run.limits)
        for word in words:
            self._by_word.setdefault(word, array("I")).append(number)

    def _with_word(self, word: str) -> set[int]:
        return {number for number in self._by_word.get(word, ()) if number in self._passages}

    def _count_words(
        self, lower: str, runs: Iterable[Run], sign: int, before: _Written | None
    ) -> None:
        """Count words, and note how they were written before. None: there were no passages."""
        upper = [
            plain
            for run in runs
            for word, plain in zip(run.words[run.begins :], run.plain[run.begins :], strict=True)
            if word[0].isupper()
        ]
        for counts, words in ((self._lower, lower.split()), (self._upper, upper)):
            if before is None:
                counts.update(words)
                continue
            for word in words:
                if word not in before:
                    before[word] = self._small(word), self._is_lower(word)
                counts[word] += sign
                if not counts[word]:
                    del counts[word]

    def _small(self, word: str) -> bool:
        return self._lower.get(word, 0) >= self._upper.get(word, 0)

    def _is_lower(self, word: str) -> bool:
        """Return whether passages write a word without a capital letter."""
        return word in self._lower and self._small(word)

    def _is_name(self, key: str) -> bool:
        return key in self._writers or key in self._about

    def _withdraw(self, number: int, was: dict[str, bool], touched: set[str]) -> None:
        """Remove the names of a passage."""
        passage = self._passages[number]
        for key in {*passage.names, *filter(None, [passage.title_key])}:
            was.setdefault(key, True)
        for key in passage.names:
            _remove(self._writers, key, number)
        if passage.title_key:
            _remove(self._about, passage.title_key, number)
        for key in passage.keys:
            _remove(self._having, key, number)
        touched.update(passage.keys)
        passage.names, passage.keys = {}, []

    def _write(self, number: int, runs: Iterable[Run], was: dict[str, bool]) -> None:
        """Add the names that a passage itself writes, and its title."""
        passage = self._passages[number]
        names = {intern(key): name for key, name in passage.mentions.names.items()}
        for run in runs:
            for key, name in run.names(self._small):
                names.setdefault(intern(key), name)
        passage.names = names
        for key in {*names, *filter(None, [passage.title_key])}:
            was.setdefault(key, self._is_name(key))
        for key in names:
            self._writers.setdefault(key, []).append(number)
        if passage.title_key:
            self._about.setdefault(passage.title_key, []).append(number)

    def _recognize(
        self, changed: dict[int, list[Run]], was: dict[str, bool], touched: set[str]
    ) -> None:
        """Find known names in changed passages, and new names in the other passages."""
        new = [key for key, before in was.items() if not before and self._is_name(key)]
        for key in (key for key, before in was.items() if before and not self._is_name(key)):
            for number in self._having.pop(key, ()):
                self._passages[number].keys.remove(key)
            self._note_length(key, -1)
        for key in new:
            self._note_length(key, 1)
        others = self._with_names(new) if len(changed) < len(self._passages) else set()
        for number in others.difference(changed):
            self._have(number, self._known(number, runs_of(self._passages[number].mentions.runs)))
        for number, runs in changed.items():
            self._have(number, self._known(number, runs))
            touched.update(self._passages[number].keys)

    def _known(self, number: int, runs: Iterable[Run]) -> set[str]:
        """Return the keys of all names in a passage."""
        passage = self._passages[number]
        keys = set(passage.names) if self._extractor.find is not None else set()
        keys.update([passage.title_key] if passage.title_key else ())
        for run in runs:
            keys.update(run.known(self._is_name, self._small))
        for run in runs_of(passage.mentions.title_runs):  # every capital letter may begin a name
            keys.update(run.known(self._is_name, lambda word: False))
        keys.update(self._substrings(passage.mentions.unspaced))
        return keys

    def _with_names(self, keys: Iterable[str]) -> set[int]:
        """Return the passages that may have one of some names."""
        numbers: set[int] = set()
        unspaced: list[str] = []
        for key in keys:
            words = key.split(" ")
            if is_unspaced(key):
                unspaced.append(key)
            elif words[0] not in ARTICLES:
                numbers |= self._with_word(words[0]) & self._with_word(words[-1])
        if unspaced:
            for number, passage in self._passages.items():
                text = passage.mentions.unspaced
                if text and (len(unspaced) > _FEW_NAMES or any(key in text for key in unspaced)):
                    numbers.add(number)
        return numbers

    def _have(self, number: int, keys: set[str]) -> None:
        passage = self._passages[number]
        for key in keys.difference(passage.keys):
            passage.keys.append(intern(key))
            self._having.setdefault(key, []).append(number)

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

    def _clear_postings(self) -> None:
        """Remove deleted passages from the postings if they outnumber the existing passages."""
        if self._count > 2 * len(self._passages) + _REMOVED:
            rows = [(p.id, p.order, p.mentions) for p in self._passages.values()]
            self._reset()
            self.update((), rows)

    def _sorted(self, numbers: Iterable[int]) -> list[_KnownPassage]:
        return sorted(map(self._passages.__getitem__, numbers), key=lambda passage: passage.order)


def _remove(lists: dict[str, list[int]], key: str, number: int) -> None:
    numbers = lists[key]
    numbers.remove(number)
    if not numbers:
        del lists[key]
