"""Find names in texts by how they are written, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..splitters import UNSPACED

# Python's expressions have no class of capitals; accents are gone when they are looked for.
_UPPER = "".join(
    re.escape(chr(code)) for code in (*range(0x590), *range(0x1E00, 0x2000)) if chr(code).isupper()
)

_LETTER = rf"[^\W_{UNSPACED}]"

_CAPITAL = rf"[{_UPPER}]{_LETTER}*(?:['’]{_LETTER}+)*"

# Small words that stand inside names, and those that only stand inside titles.
_JOINING = "of|the|de|del|della|di|da|du|des|la|le|von|van|der|den|al|el|bin|ibn"

_LOOSE = "and|in|on|at|to|for|with|from|a|an|by|or|as"

_RUN = re.compile(
    rf"(?<!{_LETTER}){_CAPITAL}(?:(?:[ \-–]|, |(?<![^\W\d_][^\W\d_])\. ?)"
    rf"(?:(?:{_JOINING}|{_LOOSE}) ){{0,2}}(?:{_CAPITAL}|\d+(?!{_LETTER})))*"
)

_WORD = re.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)*")

_LOWER = re.compile(rf"(?<!{_LETTER})[^\W\d_{_UPPER}{UNSPACED}]+")

_TERM = re.compile(rf"[{UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")

_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")

# Quotes around less than three characters are for emphasis.
_QUOTED = re.compile(
    r"《([^《》\n]{1,40})》|〈([^〈〉\n]{1,40})〉|「([^「」\n]{3,20})」|『([^『』\n]{3,20})』"
    r"|“([^“”\n]{3,20})”"
)

_REMARK = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")

_BEFORE_A_SENTENCE = re.compile(r"(?:^|[.!?:;\n。！？：；\"“”‘(（|*#-])\s*$")

_ACCENTS = re.compile("[\u0300-\u036f]")

_POSSESSIVE = re.compile("['’]s$")

_ARTICLES = ("the", "a", "an")

_LONGEST = 8  # capitalised words in a name

_LONGEST_UNSPACED = 20  # characters


def name_key(name: str) -> str:
    """Return the form in which names are compared.

    Example:
        >>> name_key("The Café's (play)"), name_key("《红楼梦》")
        ('cafe', '红楼梦')
    """
    words = [_plain(word) for word in _TERM.findall(_folded(_REMARK.sub("", name)))]
    while len(words) > 1 and words[0] in _ARTICLES:
        del words[0]
    return " ".join(words)


def names_in(text: str, is_name: Callable[[str], bool]) -> list[str]:
    """Return the keys of the known names that stand in a text, the longest first.

    Names do not overlap. A single word counts where it is written as a name, with a capital
    letter, and not as the first word of the text.

    Args:
        text: A question, or any text.
        is_name: Tells whether a key, see ``name_key``, is that of a known name.

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
    for length in range(_LONGEST, 0, -1):
        for begin in range(len(terms) - length + 1):
            if any(taken[begin : begin + length]) or plain[begin] in _ARTICLES:
                continue
            if length == 1 and not (begin and terms[begin][0].isupper() and len(plain[begin]) > 1):
                continue
            if is_name(key := " ".join(plain[begin : begin + length])):
                names.append(key)
                taken[begin : begin + length] = [True] * length
    for term, used in zip(plain, taken, strict=True):
        if not used and _HAS_UNSPACED.match(term):
            names += _unspaced_names(term, is_name)
    return list(dict.fromkeys(names))


def _unspaced_names(text: str, is_name: Callable[[str], bool]) -> Iterator[str]:
    """Yield the names in a text without spaces, from its begin, the longest at each place."""
    begin = 0
    while begin < len(text) - 1:
        ends = range(min(len(text), begin + _LONGEST_UNSPACED), begin + 1, -1)
        end = next((end for end in ends if is_name(text[begin:end])), None)
        if end is None:
            begin += 1
        else:
            yield text[begin:end]
            begin = end


@dataclass(frozen=True, slots=True)
class _Run:
    """Capitalised words that stand together, with the small words between them.

    Attributes:
        words: As they are written.
        plain: As they are compared.
        breaks: Places before which no name goes on, unless it is a title.
        begins: Whether a sentence begins with them.
    """

    words: list[str]
    plain: list[str]
    breaks: frozenset[int]
    begins: bool


def find_names(
    bodies: Sequence[str], titles: Mapping[str, object], spellings: dict[str, str]
) -> Iterator[list[str]]:
    """Yield, for every text, the different keys of the names in it.

    Names are phrases of capitalised words, texts in Chinese quotation marks, and the titles; they
    are recognised everywhere, also inside longer names. The first word of a sentence counts as the
    texts write it elsewhere.

    Args:
        bodies: The texts.
        titles: Keys of names that are given in advance.
        spellings: Names by key; the new ones are added as they are first written.
    """
    runs: list[list[_Run]] = []
    lower: Counter[str] = Counter()
    upper: Counter[str] = Counter()
    quoted: list[str] = []
    for body in bodies:
        text = _folded(body)
        lower.update(_LOWER.findall(text))
        matches = [_run(match) for match in _RUN.finditer(text)]
        for run in matches:
            rest = zip(run.words[run.begins :], run.plain[run.begins :], strict=True)
            upper.update(plain for word, plain in rest if word[0].isupper())
        runs.append(matches)
        quoted += ["".join(parts) for parts in _QUOTED.findall(text)]
    keys_seen = set(titles)
    phrases = (name for matches in runs for run in matches for name in _names(run, lower, upper))
    for name in (*quoted, *phrases):
        key = name_key(name)
        if len(key) > 1 and not key.isdigit():
            keys_seen.add(key)
            spellings.setdefault(key, _POSSESSIVE.sub("", name))
    unspaced = _Substrings(key for key in keys_seen if _HAS_UNSPACED.search(key))
    for body, matches in zip(bodies, runs, strict=True):
        keys = {key: None for run in matches for key in _inside(run, keys_seen, lower, upper)}
        keys.update(dict.fromkeys(unspaced.of(body)))
        yield list(keys)


def _run(match: re.Match[str]) -> _Run:
    text, start = match.group(), match.start()
    matches = list(_WORD.finditer(text))
    words = [word.group() for word in matches]
    pairs = enumerate(pairwise(matches), 1)
    breaks = frozenset(at for at, (a, b) in pairs if "," in text[a.end() : b.start()])
    before = match.string[max(0, start - 3) : start]
    begins = not start or _BEFORE_A_SENTENCE.search(before) is not None
    return _Run(words, [*map(_plain, words)], breaks, begins)


def _first(run: _Run, lower: Mapping[str, int], upper: Mapping[str, int]) -> int:
    """Return where names begin: behind a first word that is capital for its place alone."""
    word = run.plain[0]
    return int(run.begins and lower.get(word, 0) >= upper.get(word, 0))


def _names(run: _Run, lower: Mapping[str, int], upper: Mapping[str, int]) -> Iterator[str]:
    """Return the longest names of a run."""
    name: list[str] = []
    loose, joining = _LOOSE.split("|"), _JOINING.split("|")
    for at, word in enumerate(run.words[(first := _first(run, lower, upper)) :], first):
        if at in run.breaks or word in loose:
            yield " ".join(_ended(name, joining))
            name = []
        if word not in loose and (name or word[0].isupper()):
            name.append(word)
    yield " ".join(_ended(name, joining))


def _ended(words: list[str], joining: Sequence[str]) -> list[str]:
    while words and words[-1] in joining:
        words = words[:-1]
    return words


def _inside(
    run: _Run, keys: set[str], lower: Mapping[str, int], upper: Mapping[str, int]
) -> Iterator[str]:
    """Return the keys of all known names in a run, also those inside others."""
    first, words = _first(run, lower, upper), run.plain
    ends = [at for at, word in enumerate(run.words) if at >= first and not word[0].islower()]
    for number, begin in enumerate(ends):
        if words[begin] in _ARTICLES:
            continue
        for end in ends[number : number + _LONGEST]:
            key = " ".join(words[begin : end + 1])
            if key in keys:
                yield key


class _Substrings:
    """Find which of many names stand in a text without spaces."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name for name in names if len(name) > 1}
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for name in self._names:
            lengths[name[:2]].add(len(name))
        self._lengths = {begin: sorted(some) for begin, some in lengths.items()}

    def of(self, text: str) -> Iterator[str]:
        if not self._names or not _HAS_UNSPACED.search(text):
            return
        normal = " ".join(_TERM.findall(_folded(text).casefold()))
        for at in range(len(normal) - 1):
            for length in self._lengths.get(normal[at : at + 2], ()):
                if normal[at : at + length] in self._names:
                    yield normal[at : at + length]


def _folded(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _plain(word: str) -> str:
    word = word.casefold()
    if "'" not in word and "’" not in word:
        return word
    return _POSSESSIVE.sub("", word).replace("'", "").replace("’", "")
