"""Find names in texts by capital letters and quotation marks, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..lazy_names import lazy_pattern
from ..node import Node
from ..splitters.chunking import UNSPACED

Finder = Callable[[str], Iterable[str]]
"""A function from the text of a passage to the names in it."""

_SENTENCE_END = re.compile(r"[.!?,;:。！？，；：、]$")

_TITLE = 100  # characters in a first line that is a title

# Python's regular expressions have no class of capital letters. Accents are removed before.
_UPPER = "".join(
    re.escape(chr(code)) for code in (*range(0x590), *range(0x1E00, 0x2000)) if chr(code).isupper()
)

_LETTER = rf"[^\W_{UNSPACED}]"

_CAPITAL = rf"[{_UPPER}]{_LETTER}*(?:['’]{_LETTER}+)*"

# Lowercase words inside names, and lowercase words inside titles only.
_JOINING = "of|the|de|del|della|di|da|du|des|la|le|von|van|der|den|al|el|bin|ibn"

_LOOSE = "and|in|on|at|to|for|with|from|a|an|by|or|as"

_RUN = lazy_pattern(
    rf"(?<!{_LETTER}){_CAPITAL}(?:(?:[ \-–]|, |(?<![^\W\d_][^\W\d_])\. ?)"
    rf"(?:(?:{_JOINING}|{_LOOSE}) ){{0,2}}(?:{_CAPITAL}|\d+(?!{_LETTER})))*"
)

_SEPARATORS = str.maketrans("-–.", "   ")  # separators between the words of a run

_LOWER = lazy_pattern(rf"(?<!{_LETTER})[^\W\d_{_UPPER}{UNSPACED}]+")

_TERM = lazy_pattern(rf"[{UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")

_HAS_UNSPACED = lazy_pattern(f"[{UNSPACED}]")

# Quotation marks around fewer than three characters are for emphasis.
_QUOTED = lazy_pattern(
    r"《([^《》\n]{1,40})》|〈([^〈〉\n]{1,40})〉|「([^「」\n]{3,20})」|『([^『』\n]{3,20})』"
    r"|“([^“”\n]{3,20})”"
)

_REMARK = re.compile(r"[(（][^()（）]*[)）]$")

_BEFORE_A_SENTENCE = re.compile(r"(?:^|[.!?:;\n。！？：；\"“”‘(（|*#-])\s*$")

_ACCENTS = re.compile("[\u0300-\u036f]")

_POSSESSIVE = re.compile("['’]s$")

ARTICLES = ("the", "a", "an")

_LOOSE_WORDS, _JOINING_WORDS = frozenset(_LOOSE.split("|")), frozenset(_JOINING.split("|"))

_MAX_LENGTH = 8  # capitalized words in a name

_MAX_UNSPACED_LENGTH = 20  # characters


def name_key(name: str) -> str:
    """Return the normalized form of a name, for comparison.

    Example:
        >>> name_key("The Café's (play)"), name_key("《红楼梦》")
        ('cafe', '红楼梦')
    """
    words = [_plain(word) for word in _TERM.findall(_folded(_without_remark(name)))]
    while len(words) > 1 and words[0] in ARTICLES:
        del words[0]
    return " ".join(words)


def _without_remark(name: str) -> str:
    """Remove the remark in parentheses at the end of a name."""
    stripped = name.rstrip()
    start = max(stripped.rfind("("), stripped.rfind("（"))  # the search would try each of them
    remark = _REMARK.match(stripped, start) if start >= 0 else None
    return name if remark is None else stripped[:start].rstrip()


def has_name(text: str, name: str) -> bool:
    """Return whether a text contains the words of a name in sequence, in any spelling.

    Args:
        text: A text.
        name: The name's key (``name_key``), in a script with spaces.

    Example:
        >>> [has_name(text, "green tea") for text in ("He drinks green tea.", "Tea, green tees")]
        [True, False]
    """
    words = " ".join(map(_plain, _TERM.findall(_folded(text))))
    return f" {name} " in f" {words} "


def is_written_as_name(text: str, name: str) -> bool:
    """Return whether a name in a text is written with a capital letter.

    The last word of the name may be a number. The first word of the text does not count. In
    scripts without spaces the result is True.

    Args:
        text: The text.
        name: The name's key (``name_key``).

    Example:
        >>> [is_written_as_name(text, "green tea") for text in ("He drinks Green Tea", "Green tea")]
        [True, False]
    """
    if is_unspaced(name):
        return True
    terms = [match.group() for match in _TERM.finditer(_folded(text))]
    plain = [_plain(term) for term in terms]
    words = name.split(" ")
    starts = (at for at in range(1, len(plain)) if plain[at : at + len(words)] == words)
    return any(
        terms[at][0].isupper() and not terms[at + len(words) - 1][0].islower() for at in starts
    )


def names_in(text: str, is_name: Callable[[str], bool]) -> list[str]:
    """Return the keys of existing names in a text, the longest names first.

    Names do not overlap. A single word counts if it has a capital letter and is not the first
    word of the text.

    Args:
        text: A question, or another text.
        is_name: A function from a key (``name_key``) to whether the name exists.

    Example:
        >>> known = {"cafe", "brand", "who", "wrote", "红楼梦", "红楼"}
        >>> names_in("Who wrote The Café and Brand?", known.__contains__)
        ['cafe', 'brand']
        >>> names_in("《红楼梦》的作者是谁？", known.__contains__)
        ['红楼梦']
    """
    terms = [match.group() for match in _TERM.finditer(_folded(text))]
    plain = [_plain(term) for term in terms]
    taken = [False] * len(terms)
    names: list[str] = []
    for length in range(_MAX_LENGTH, 0, -1):
        for start in range(len(terms) - length + 1):
            if any(taken[start : start + length]) or plain[start] in ARTICLES:
                continue
            if length == 1 and not (start and terms[start][0].isupper() and len(plain[start]) > 1):
                continue
            if is_name(key := " ".join(plain[start : start + length])):
                names.append(key)
                taken[start : start + length] = [True] * length
    for term, used in zip(plain, taken, strict=True):
        if not used and _HAS_UNSPACED.match(term):
            names += _unspaced_names(term, is_name)
    return list(dict.fromkeys(names))


def _unspaced_names(text: str, is_name: Callable[[str], bool]) -> Iterator[str]:
    """Yield the names in a text without spaces, the longest name at each position."""
    start = 0
    while start < len(text) - 1:
        ends = range(min(len(text), start + _MAX_UNSPACED_LENGTH), start + 1, -1)
        end = next((end for end in ends if is_name(text[start:end])), None)
        if end is None:
            start += 1
        else:
            yield text[start:end]
            start = end


class Run(NamedTuple):
    """Adjacent capitalized words, with the lowercase words between them.

    Attributes:
        words: The words.
        plain: The normalized words.
        breaks: Positions of words before which a name ends, unless the name is a title.
        begins: Whether the first word begins a sentence.
    """

    words: list[str]
    plain: list[str]
    breaks: frozenset[int]
    begins: bool

    @classmethod
    def from_str(cls, compact: str) -> Run:
        """Return the run of a compact form, as ``parse`` writes it.

        The form has a dot before the first word if the word begins a sentence, and a comma before
        each break.
        """
        begins = compact.startswith(".")
        words = compact[begins:].split(" ")
        breaks = frozenset(at for at, word in enumerate(words, 1) if word[-1] == ",")
        words = [word.rstrip(",") for word in words]
        return cls(words, [*map(_plain, words)], breaks, begins)

    @property
    def limits(self) -> Iterator[int]:
        """The positions of words in which a name may begin or end."""
        return (at for at, word in enumerate(self.words) if not word[0].islower())

    def names(self, small: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """Yield the keys and spellings of the longest names.

        Args:
            small: A function from a word to whether other texts write it in lowercase. Such a
                word at the beginning of a sentence is not part of a name.
        """
        start = end = first = self._first(small)
        for at, word in enumerate(self.words[first:], first):
            if at in self.breaks or word in _LOOSE_WORDS:
                yield from self._name(start, end)
                start = end = at
            if word in _LOOSE_WORDS or (start == end and not word[0].isupper()):
                start = end = at + 1
            else:
                end = at + 1
        yield from self._name(start, end)

    def _name(self, start: int, end: int) -> Iterator[tuple[str, str]]:
        while end > start and self.words[end - 1] in _JOINING_WORDS:
            end -= 1
        spelling = " ".join(self.words[start:end])
        while end - start > 1 and self.plain[start] in ARTICLES:
            start += 1
        key = " ".join(self.plain[start:end])
        if _is_long(key):
            yield key, _POSSESSIVE.sub("", spelling)

    def known(self, is_name: Callable[[str], bool], small: Callable[[str], bool]) -> Iterator[str]:
        """Yield the keys of existing names, including names inside longer names."""
        first, words = self._first(small), self.plain
        ends = [at for at in self.limits if at >= first]
        for number, start in enumerate(ends):
            if words[start] in ARTICLES:
                continue
            for end in ends[number : number + _MAX_LENGTH]:
                if is_name(key := " ".join(words[start : end + 1])):
                    yield key

    def _first(self, small: Callable[[str], bool]) -> int:
        """Return the position of the first possible name."""
        return int(self.begins and small(self.plain[0]))


class Mentions(NamedTuple):
    """The possible names of a passage, as JSON values. Other passages decide which are names.

    Attributes:
        title: The title. It may be empty.
        names: The spellings of certain names by key, such as names in quotation marks.
        title_runs: The runs of capitalized words in the title, one per line.
        runs: The runs in the text.
        lower: The words of the text without a capital letter, separated by spaces.
        unspaced: The normalized title and text if they have a script without spaces.
    """

    title: str
    names: Mapping[str, str]
    title_runs: str = ""
    runs: str = ""
    lower: str = ""
    unspaced: str = ""


def parse(title: str, body: str) -> Mentions:
    """Return the possible names of a passage, and its lowercase words.

    Args:
        title: The title. It may be empty.
        body: The text without the title.
    """
    texts = [_folded(title), _folded(body)]
    title_runs, runs = ("\n".join(map(_compact, _RUN.finditer(text))) for text in texts)
    names: dict[str, str] = {}
    for parts in _QUOTED.findall(texts[1]):
        name = "".join(parts)
        if _is_long(key := name_key(name)):
            names.setdefault(key, _POSSESSIVE.sub("", name))
    lower = " ".join(_LOWER.findall(texts[1]))
    unspaced = (" ".join(_TERM.findall(text.casefold())) for text in texts if is_unspaced(text))
    return Mentions(title, names, title_runs, runs, lower, " ".join(unspaced))


def runs_of(compact: str) -> list[Run]:
    """Return the runs of ``Mentions.runs`` or ``Mentions.title_runs``."""
    return [*map(Run.from_str, compact.split("\n"))] if compact else []


def _is_long(key: str) -> bool:
    return len(key) > 1 and not key.isdigit()


def is_unspaced(text: str) -> bool:
    """Return whether a text contains a script without spaces."""
    return not text.isascii() and _HAS_UNSPACED.search(text) is not None


def _compact(match: re.Match[str]) -> str:
    words = " ".join(match.group().translate(_SEPARATORS).split())
    before = match.string[max(0, match.start() - 3) : match.start()]
    begins = not match.start() or _BEFORE_A_SENTENCE.search(before) is not None
    return f".{words}" if begins else words


def _folded(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _plain(word: str) -> str:
    word = word.casefold()
    if "'" not in word and "’" not in word:
        return word
    return _POSSESSIVE.sub("", word).replace("'", "").replace("’", "")


def split_title(passage: Node) -> tuple[str, str]:
    """Return the title of a passage and the text without the title.

    The title comes from the metadata, else from a short first line. It may be empty.
    """
    title, body = passage.metadata.get("title"), passage.text
    if isinstance(title, str):
        return title, body
    head, _, remaining = body.partition("\n")
    head = head.strip().lstrip("#").strip()
    is_wrapped = _SENTENCE_END.search(head) or remaining.lstrip()[:1].islower()
    if is_wrapped or not remaining.strip() or len(head) > _TITLE:
        return "", body
    return (head, remaining) if head else ("", body)


class EntityExtractor:
    """A transform that finds the names in each passage, to link passages with a common name.

    Each passage gets one node with its possible names, and
    ``LinkRetriever(..., via=group)`` links the passages.

    Without ``find``, names are titles of passages (from the metadata, else a short first line),
    and phrases of capitalized words, also inside longer phrases. In scripts without spaces, names
    are texts in 《》 and other quotation marks, and their other occurrences. The first word of a
    sentence counts as the other passages write it (Lita et al., "tRuEcasIng", 2003). Names are
    compared without case, accents, possessives, articles, punctuation and remarks in brackets at
    their end. The cost is linear in the corpus.

    Names of more than 100 passages link nothing, and neither do names of one passage, unless they
    are its title.

    Args:
        find: A function from the text of a passage to the names in it, such as a model or a
            dictionary. None: names are found as above.

    Raises:
        TypeError: If ``find`` cannot be called.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> passage = Node("Brand (play)\\nA play by Henrik Ibsen.")
        >>> extractor = EntityExtractor()
        >>> extractor(passage).text, extractor.mentions(passage).runs
        ('Brand (play)', '.A\\nHenrik Ibsen')
    """

    trans_node = True
    rules = 4  # a new number rebuilds the nodes

    def __init__(self, find: Finder | None = None) -> None:
        if find is not None and not callable(find):
            raise TypeError(f"find must be a function from a text to names, got {find!r:.80}")
        self.find = find

    def __repr__(self) -> str:
        return f"EntityExtractor({self.find!r})"

    def __call__(self, passage: Node) -> Node:
        """Return a node with the possible names of a passage."""
        if not isinstance(passage, Node):
            raise TypeError(
                "EntityExtractor reads one passage: declare its group without scope='group'"
            )
        mentions = self.mentions(passage)
        text = mentions.title.strip() or passage.text.strip()
        return Node(text[:_TITLE], content=[*mentions])

    def mentions(self, passage: Node) -> Mentions:
        """Return the possible names of a passage."""
        title, body = split_title(passage)
        if self.find is None:
            return parse(title, body)
        names = self.find(body)
        if isinstance(names, str):
            raise TypeError(f"find must return several names, got one text: {names!r:.80}")
        by_key: dict[str, str] = {}
        for name in names:
            if key := name_key(name):
                by_key.setdefault(key, name)
        return Mentions(title, by_key)
