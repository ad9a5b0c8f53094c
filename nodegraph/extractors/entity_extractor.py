"""Find what passages are about and mention, without a model, and link it to them."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple

from ..errors import check_integer
from ..node import MEMBER, LinkedText, Node
from ..transforms import Draft, RankedDraft
from .entity_names import ARTICLES, ParsedText, is_unspaced, name_key, parse

Finder = Callable[[str], Iterable[str]]
"""Takes a passage's text. Returns the names in it."""

_FEW_NAMES = 64  # names that are looked for one after the other in a text without spaces

_FEW_TITLED = 2  # passages that may have the same title in small letters

_REMOVED = 1000  # passages that may be in postings beside as many as there are


_SENTENCE_END = re.compile(r"[.!?,;:。！？，；：、]$")

_TITLE = 100  # characters in a first line that is a title


class EntityExtractor:
    """Make a node of each entity, linked to the passages that mention it. For ``scope="group"``.

    Without a ``find`` of yours, entities are: titles of passages (from the metadata, else a
    short first line). Phrases of capitalised words, also inside longer ones. In scripts without
    spaces, what stands in 《》 and other quotation marks, wherever else it stands too. The first
    word of a sentence is taken by how the corpus writes it elsewhere (Lita et al., "tRuEcasIng",
    2003). Names are compared without case, accents, possessives, articles, punctuation and
    remarks in brackets at their end. The cost is linear in the corpus.

    A node's text is the name as it was first written. Its metadata has ``about``, the ids of the
    passages it is the title of, and, if there are any, ``in_titles``, the ids of those in whose
    title it stands among other words. Choose ``find`` where a model or a dictionary knows the
    names.

    Args:
        find: Takes a passage's text, returns the names in it.
        title: The metadata field that has a passage's title.
        min_passages: Entities in fewer passages are left out, unless they are a title.
        max_passages: Entities in more passages are left out: where all meet, no way leads on.

    Raises:
        TypeError: If ``find`` can't be called, or a number has the wrong type.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Brand (play)\\nA play by Henrik Ibsen.", "Henrik Ibsen\\nHe wrote."])
        >>> graph.create_node_group("entity", EntityExtractor(), scope="group")
        >>> [(node.text, len(graph.linked(node))) for node in graph.nodes("entity")]
        [('Brand (play)', 1), ('Henrik Ibsen', 2)]
    """

    trans_node = True
    rules = 3  # what was made by other rules is made again

    def __init__(
        self,
        find: Finder | None = None,
        *,
        title: str = "title",
        min_passages: int = 2,
        max_passages: int = 100,
    ) -> None:
        if find is not None and not callable(find):
            raise TypeError(f"find is a callable from a text to names, not {find!r:.80}")
        check_integer(min_passages, "min_passages")
        check_integer(max_passages, "max_passages")
        if not 1 <= min_passages <= max_passages:
            raise ValueError(
                "min_passages is 1 or more and no more than max_passages, "
                f"not {min_passages}, {max_passages}"
            )
        self.find = find
        self.title = title
        self.min_passages = min_passages
        self.max_passages = max_passages

    def __repr__(self) -> str:
        limits = f"min_passages={self.min_passages}, max_passages={self.max_passages}"
        return f"EntityExtractor({self.find!r}, {limits})"

    def __call__(self, passages: Sequence[Node]) -> list[LinkedText]:
        """Return the entities, in the order of the first passages that name them."""
        by_id = {passage.id: passage for passage in passages}
        entities = EntityFollower(self).update((), passages)
        ranked = sorted((e for e in entities.values() if e is not None), key=lambda e: e.rank)
        return [
            LinkedText(Node(draft.text, draft.metadata), [by_id[i] for _, i in draft.links])
            for _, draft in ranked
        ]

    def follower(self) -> EntityFollower:
        """Return what makes entities of passages, and makes them again where passages change.

        A graph calls this instead of the extractor: one document more costs what it touches.
        """
        return EntityFollower(self)


class EntityFollower:
    """Keep entities up to date with the passages that they are found in.

    Args:
        extractor: The settings.
    """

    def __init__(self, extractor: EntityExtractor) -> None:
        self._extractor = extractor
        self._names = NameIndex(extractor.find)

    def update(
        self, removed: Collection[str], added: Sequence[Node]
    ) -> dict[str, RankedDraft | None]:
        """Return the entities that may have changed, by key. None for what is no entity."""
        sources = [
            TitledText(node.id, node.order, title, body)
            for node in added
            for title, body in [split_title(node, self._extractor.title)]
        ]
        return {key: self._entity(key) for key in self._names.update(removed, sources)}

    def _entity(self, key: str) -> RankedDraft | None:
        """Return an entity. None if it is in too few or too many passages."""
        count = self._names.count(key)
        if not count or count > self._extractor.max_passages:
            return None
        is_title = not self._names.is_generic(key)
        about = [passage.id for passage in self._names.about(key)] if is_title else []
        if count < self._extractor.min_passages and not about:
            return None
        passages = self._names.passages(key)
        links = tuple((MEMBER, passage.id) for passage in passages)
        first = passages[0]
        metadata = {"about": about}
        if in_titles := [passage.id for passage in self._names.in_titles(key)]:
            metadata["in_titles"] = in_titles
        draft = Draft(self._names.spelling(key), None, metadata, links=links)
        return RankedDraft((first.order, first.id not in about, key), draft)


def split_title(passage: Node, field: str = "title") -> tuple[str, str]:
    """Return a passage's title and the text without it.

    The title is that of the metadata, else a short first line. It is empty where there is none.
    """
    title, body = passage.metadata.get(field), passage.text
    if isinstance(title, str):
        return title, body
    head, _, remaining = body.partition("\n")
    head = head.strip().lstrip("#").strip()
    wrapped = (
        _SENTENCE_END.search(head) or remaining.lstrip()[:1].islower()
    )  # goes on in lower case
    if wrapped or not remaining.strip() or len(head) > _TITLE:
        return "", body
    return (head, remaining) if head else ("", body)


class TitledText(NamedTuple):
    """A passage: its id, its place in document order, its title (may be empty) and the rest."""

    id: str
    order: int
    title: str
    body: str


@dataclass(slots=True)
class _IndexedPassage:
    """What the index keeps of a passage.

    Attributes:
        source: The passage.
        title_key: The key of its title, empty without one.
        unspaced: Title and text as in ``ParsedText``.
        names: The names that it writes itself, by key.
        keys: The keys of all names in it.
    """

    source: TitledText
    title_key: str
    unspaced: str = ""
    names: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)


class NameIndex:
    """Find the names in passages, by how all of them are written, and follow changes of them.

    A name that one passage writes, or has as its title, is recognised in all of them, also inside
    longer ones and in titles ("Prague astronomical clock" is about Prague, too), and the first
    word of a sentence counts as the passages write it elsewhere. So a
    change of one passage may add names to others, which these are is looked up: the rest is not
    read again.

    Args:
        find: Takes a text, returns the names in it. None for names that are written as such.
    """

    def __init__(self, find: Finder | None = None) -> None:
        self._find = find
        self._reset()

    def _reset(self) -> None:
        self._passages: dict[int, _IndexedPassage] = {}  # by number, in the order they were added
        self._numbers: dict[str, int] = {}
        self._count = 0  # numbers given so far
        self._lower: Counter[str] = Counter()
        self._upper: Counter[str] = Counter()
        self._about: dict[str, list[int]] = {}  # passages by the key of their title
        self._writers: dict[str, list[int]] = {}  # passages that write a name themselves
        self._having: dict[str, list[int]] = {}  # passages that have a name
        self._first: dict[str, array[int]] = {}  # by a word that a sentence begins with
        self._inner: dict[str, array[int]] = {}  # by a word that a name may begin or end with
        self._titled: dict[str, array[int]] = {}  # the same in titles
        self._lengths: defaultdict[str, Counter[int]] = defaultdict(Counter)  # by two characters

    def count(self, key: str) -> int:
        """Return how many passages have a name."""
        return len(self._having.get(key, ()))

    def passages(self, key: str) -> list[TitledText]:
        """Return the passages that have a name, in document order."""
        return self._sorted(self._having.get(key, ()))

    def about(self, key: str) -> list[TitledText]:
        """Return the passages that a name is the title of, in document order."""
        return self._sorted(self._about.get(key, ()))

    def is_generic(self, key: str) -> bool:
        """Return whether a title is no name, such as "Overview" or "Getting started".

        Several passages have it, and its words are written without capital letters elsewhere.
        """
        if len(self._about.get(key, ())) <= _FEW_TITLED:
            return False
        return all(map(self._is_lower, key.split(" ")))

    def in_titles(self, key: str) -> list[TitledText]:
        """Return the passages in whose title a name stands among others, in document order."""
        having = ((n, self._passages[n].title_key) for n in self._having.get(key, ()))
        return self._sorted([n for n, title in having if title != key and _stands_in(key, title)])

    def spelling(self, key: str) -> str:
        """Return a name as the first title has it, or as the first passage writes it."""
        if titled := self.about(key):
            return titled[0].title
        first = min(self._writers[key], key=self._order)
        spelling = self._passages[first].names[key]
        return spelling if name_key(spelling) == key else key

    def update(self, removed: Collection[str], added: Sequence[TitledText]) -> set[str]:
        """Remove passages by id, and add others. Return the keys of the names that it concerns."""
        was: dict[str, bool] = {}  # by key, whether it was a name before
        touched: set[str] = set()
        parsed: dict[int, ParsedText] = {}
        before: dict[str, tuple[bool, bool]] = {}
        for number in [self._numbers[i] for i in removed if i in self._numbers]:
            self._withdraw(number, was, touched)
            passage = self._passages.pop(number)
            del self._numbers[passage.source.id]
            if self._find is None:
                self._count_words(parse(passage.source.body), -1, before)
        new = [self._enter(source, parsed, before) for source in added]
        flipped = [word for word, (small, _) in before.items() if self._small(word) != small]
        retitled = [word for word, (_, lower) in before.items() if self._is_lower(word) != lower]
        changed = {n for word in flipped for n in self._first.get(word, ()) if n in self._passages}
        for number in changed.difference(new):
            self._withdraw(number, was, touched)
        for number in (changed := changed.union(new)):
            if self._find is None and number not in parsed:
                parsed[number] = parse(self._passages[number].source.body)
            self._write(number, parsed.get(number), was)
        for word in retitled:
            numbers = (n for n in self._titled.get(word, ()) if n in self._passages)
            touched.update(self._passages[n].title_key for n in numbers)
        touched.update(was)
        self._recognise(changed, parsed, was, touched)
        self._clear_postings()
        return touched

    def _enter(
        self,
        source: TitledText,
        parsed: dict[int, ParsedText],
        before: dict[str, tuple[bool, bool]],
    ) -> int:
        """Give a new passage a number, and note how it writes words."""
        number = self._numbers[source.id] = self._count
        self._count += 1
        passage = self._passages[number] = _IndexedPassage(source, name_key(source.title))
        if self._find is None:
            text = parsed[number] = parse(source.body)
            title = parse(source.title)
            passage.unspaced = " ".join(filter(None, [title.unspaced, text.unspaced]))
            self._count_words(text, 1, before)
            titled = title.first | title.inner
            for postings, words in (
                (self._first, text.first),
                (self._inner, text.inner),
                (self._titled, titled),
            ):
                for word in words:
                    postings.setdefault(word, array("I")).append(number)
        return number

    def _count_words(
        self, text: ParsedText, sign: int, before: dict[str, tuple[bool, bool]]
    ) -> None:
        for counts, words in ((self._lower, text.lower), (self._upper, text.upper)):
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
        """Take back what the index has from a passage."""
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

    def _write(self, number: int, text: ParsedText | None, was: dict[str, bool]) -> None:
        """Note the names that a passage writes itself, and its title."""
        passage = self._passages[number]
        if text is not None:
            names = text.names(self._small)  # of which most stand in other passages, too
            passage.names = {intern(key): intern(name) for key, name in names.items()}
        elif self._find is not None:
            passage.names = _found(self._find, passage.source.body)
        for key in {*passage.names, *filter(None, [passage.title_key])}:
            was.setdefault(key, self._is_name(key))
        for key in passage.names:
            self._writers.setdefault(key, []).append(number)
        if passage.title_key:
            self._about.setdefault(passage.title_key, []).append(number)

    def _recognise(
        self,
        changed: set[int],
        parsed: dict[int, ParsedText],
        was: dict[str, bool],
        touched: set[str],
    ) -> None:
        """Find known names in passages that changed, and new names in the others."""
        new = [key for key, before in was.items() if not before and self._is_name(key)]
        for key in (key for key, before in was.items() if before and not self._is_name(key)):
            for number in self._having.pop(key, ()):
                self._passages[number].keys.remove(key)
            self._note_length(key, -1)
        for key in new:
            self._note_length(key, 1)
        for number in changed:
            passage, text = self._passages[number], parsed.get(number)
            keys = dict.fromkeys([passage.title_key] if passage.title_key else ())
            if text is None:
                keys.update(dict.fromkeys(passage.names))
            else:
                keys.update(dict.fromkeys(text.known(self._is_name, self._small)))
                keys.update(dict.fromkeys(_names_in_title(passage, self._is_name)))
                keys.update(dict.fromkeys(self._substrings(passage.unspaced)))
            for key in keys:
                self._have(number, key)
            touched.update(keys)
        if self._find is None and len(changed) < len(self._passages):
            self._recognise_elsewhere(new, changed)

    def _recognise_elsewhere(self, new: Sequence[str], changed: Collection[int]) -> None:
        """Find new names in passages that did not change."""
        candidates: defaultdict[int, set[str]] = defaultdict(set)
        for key in new:
            words = key.split(" ")
            if is_unspaced(key) or words[0] in ARTICLES:
                continue
            first, last = words[0], words[-1]
            numbers, titled = set(self._inner.get(first, ())), set(self._titled.get(first, ()))
            if not self._small(first):
                numbers.update(self._first.get(first, ()))
            if len(words) > 1:
                numbers.intersection_update(self._inner.get(last, ()))
                titled.intersection_update(self._titled.get(last, ()))
            for number in (numbers | titled).difference(changed):
                if number in self._passages:
                    candidates[number].add(key)
        for number, keys in candidates.items():
            if any(" " in key for key in keys):
                passage = self._passages[number]
                existing = {*_names_in_title(passage, keys.__contains__)}
                if not keys <= existing:
                    text = parse(passage.source.body)
                    existing.update(text.known(keys.__contains__, self._small))
                keys &= existing
            for key in keys:
                self._have(number, key)
        unspaced = [key for key in new if is_unspaced(key)]
        if not unspaced:
            return
        requested = set(unspaced)
        for number, passage in self._passages.items():
            if passage.unspaced and number not in changed:
                here: Iterable[str] = requested
                if len(requested) > _FEW_NAMES:
                    here = requested.intersection(self._substrings(passage.unspaced))
                for key in here:
                    if key in passage.unspaced:
                        self._have(number, key)

    def _have(self, number: int, key: str) -> None:
        keys = self._passages[number].keys
        if key not in keys:
            keys.append(intern(key))
            self._having.setdefault(key, []).append(number)

    def _note_length(self, key: str, sign: int) -> None:
        if is_unspaced(key) and len(key) > 1:
            lengths = self._lengths[key[:2]]
            lengths[len(key)] += sign
            if not lengths[len(key)]:
                del lengths[len(key)]

    def _substrings(self, text: str) -> Iterator[str]:
        """Yield the keys of the known names that stand in a text without spaces."""
        for at in range(len(text) - 1):
            for length in self._lengths.get(text[at : at + 2], ()):
                if self._is_name(key := text[at : at + length]):
                    yield key

    def _clear_postings(self) -> None:
        """Drop removed passages from the postings, where they are more than what is left."""
        if self._find is None and self._count > 2 * len(self._passages) + _REMOVED:
            sources = [passage.source for passage in self._passages.values()]
            self._reset()
            self.update((), sources)

    def _order(self, number: int) -> int:
        return self._passages[number].source.order

    def _sorted(self, numbers: Iterable[int]) -> list[TitledText]:
        return [self._passages[number].source for number in sorted(numbers, key=self._order)]


def _names_in_title(passage: _IndexedPassage, is_name: Callable[[str], bool]) -> Iterator[str]:
    """Yield the known names in a passage's title, where every capital letter may begin one."""
    if passage.source.title:
        yield from parse(passage.source.title).known(is_name, lambda word: False)


def _stands_in(key: str, title: str) -> bool:
    return key in title if is_unspaced(key) else f" {key} " in f" {title} "


def _remove(lists: dict[str, list[int]], key: str, number: int) -> None:
    numbers = lists[key]
    numbers.remove(number)
    if not numbers:
        del lists[key]


def _found(find: Finder, body: str) -> dict[str, str]:
    """Return the names that the user's callable returns, by key."""
    names = find(body)
    if isinstance(names, str):
        raise TypeError(f"find returns several names, not one text: {names!r:.80}")
    by_key: dict[str, str] = {}
    for name in names:
        if key := name_key(name):
            by_key.setdefault(key, name)
    return by_key
