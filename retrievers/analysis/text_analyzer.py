"""Convert texts and queries to terms, by splitting them into words and stemming the words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import chain, groupby, islice, pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

from ...nodegraph.errors import nearest_names
from ...nodegraph.lazy_names import lazy_pattern
from ...nodegraph.splitters.chunking import ALPHABETS, IDEOGRAPHS, UNSPACED
from .character_kinds import (
    has_camel_case,
    kinds_of,
    may_have_chinese,
    may_have_codes_apart,
    may_have_foreign_digits,
)
from .identifiers import identifiers, is_common, is_date, with_parts
from .languages import (
    ENGLISH,
    LANGUAGE_TERM,
    Language,
    detect,
    folded,
    length_of,
    named,
    names,
    of_script,
    query_parts,
    script_of,
    stems,
    terms,
)
from .numerals import codes_apart, has_roman_numbers, roman_numbers

Segments = list[list[str] | str]
"""Lists of adjacent words, and sequences of characters without spaces, in text order."""

# Accents, and the vowel signs and points of words in Cyrillic, Hebrew, Arabic, Thaana and the
# scripts of India and Tibet, which regular expressions exclude from words.
SIGNS = "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"

SIGNS += "\u07a6-\u07b0\u0900-\u0963\u0966-\u0dff\u0f18-\u0f84"

# Alphabets without spaces.
_ALPHABET_CODES = (*range(0xE00, 0xF00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800))

_ALPHABET_CHARACTERS = [chr(code) for code in _ALPHABET_CODES]

_AM = "\u0e33\u0eb3"  # the vowels of Thai and Lao whose first half is above the line

_STACKED = _AM + "".join(c for c in _ALPHABET_CHARACTERS if unicodedata.category(c) in ("Mn", "Mc"))

# A letter of these alphabets with its signs and with the letters stacked below it.
_CLUSTERS = lazy_pattern(f".(?:[\u17d2\u1039].|[{_STACKED}])*")

INVISIBLE = "\u00ad\u200d\u2060\ufeff"  # soft hyphens and joiners

_RUNS = lazy_pattern(
    rf"[^\W_{UNSPACED}]+(?:[{SIGNS}]+[^\W_{UNSPACED}]*)*(?:\+\+|#)?"
    rf"|[{IDEOGRAPHS}]+|[{ALPHABETS}]+"
)

# For texts before normalization, in which words contain soft hyphens.
_RAW_RUNS = lazy_pattern(
    rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:[{SIGNS}{INVISIBLE}]+[^\W_{UNSPACED}]*)*(?:\+\+|#)?"
)

# Without these characters, a faster pattern finds the words of a text.
_SIGNS_OR_UNSPACED = lazy_pattern(f"[{SIGNS}{UNSPACED}]")

_SPACED_WORDS = re.compile(r"[^\W_]+(?:\+\+|#)?")

_HAN = re.compile("[\u3400-\u9fff]")

_UNSPACED = lazy_pattern(f"[{UNSPACED}]")

_ASCII_WORDS = re.compile(r"[a-z0-9]+(?:\+\+|#)?")

_ONLY_WORDS = re.sub(b"[^a-z0-9\x80-\xff]", b" ", bytes(range(256)))

_PUNCTUATION = "–—‘’“”„«»…"  # the punctuation that is frequent in texts of scripts with spaces

CHINESE = "\u3000"
"""A character that sorts after alphabets without spaces and before Chinese, Japanese and Korean."""

# A vowel of Thai and Lao is one letter, though compatibility forms split it.
_REPLACED = [
    *((character, "") for character in INVISIBLE),
    ("\u0e4d\u0e32", _AM[0]),
    ("\u0ecd\u0eb2", _AM[1]),
]

# The wide punctuation of Chinese texts. Replacing it first is faster than NFKC, and no sign
# composes with a following character.
_WIDE_PUNCTUATION = {
    sign: unicodedata.normalize("NFKC", sign) for sign in "，！？：；（）％～－／．\u3000\xa0…"
}

# Without these, NFKC would make 2³⁰ the number 230, and Tea™ one word.
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")

_MARKS = re.compile("[™℠]")

_FOREIGN_DIGITS = re.compile(r"[^\D0-9]")  # matches digits of other scripts

# E106, zq2x; longer words are often written apart: Windows 10.
_CODE = re.compile(r"[^\W\d_]{1,3}[0-9]+[a-z0-9]{0,9}")

_POSSESSIVE = re.compile(r"['’](?<=\w['’])[sS]\b")

_THAI = "\u0e00"  # the first character of all scripts without spaces


def normalized(text: str) -> str:
    """Normalize a text to lower case and composed Unicode form, and add the parts of compound
    names.

    Possessive endings are removed. For example, ``Tom's`` becomes ``Tom``.
    """
    if not text.isascii():
        for before, after in _WIDE_PUNCTUATION.items():
            if before in text:
                text = text.replace(before, after)
        if not unicodedata.is_normalized("NFKC", text):
            text = _MARKS.sub(" ", _RAISED.sub(lambda match: f"^{match[0]}", text))
            # Two steps, because NFKC takes five times as long.
            text = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text))
        for before, after in _REPLACED:
            if before in text:
                text = text.replace(before, after)
    kinds = kinds_of(text)
    if may_have_foreign_digits(kinds):
        text = _FOREIGN_DIGITS.sub(lambda match: str(unicodedata.digit(match[0])), text)
    if may_have_chinese(kinds):
        text = simplified(text)
    if "_" in text or has_camel_case(kinds):
        text = with_parts(text)
    text = text.casefold()
    if not text.isascii():
        # casefold() turns a capital I with a dot into two characters.
        text = text.replace("i\u0307", "i")
        if not unicodedata.is_normalized("NFC", text):
            text = unicodedata.normalize("NFC", text)
    if "'s" in text or "’s" in text:
        text = _POSSESSIVE.sub("", text)
    return text


# Read at import, since the first search may be in an event loop.
_LINES = Path(__file__).with_name("simplified.txt").read_text("utf-8").splitlines()

_PAIRS = "".join(line for line in _LINES if not line.startswith("#"))

_TRADITIONAL = lazy_pattern(f"[{_PAIRS[::2]}]")

_SIMPLE_FORMS = str.maketrans(_PAIRS[::2], _PAIRS[1::2])


def simplified(text: str) -> str:
    """Replace traditional Chinese characters by simplified characters."""
    if _HAN.search(text) and _TRADITIONAL.search(text):
        return text.translate(_SIMPLE_FORMS)
    return text


def segments(normal: str) -> Segments:
    """Split a normalized text into words, and sequences of characters in scripts without spaces."""
    if normal.isascii():
        only = ascii_words(normal)
    elif not _SIGNS_OR_UNSPACED.search(normal):
        only = _spaced_words(normal)
    else:
        return _mixed_segments(normal)
    return [only] if only else []


def _mixed_segments(normal: str) -> Segments:
    """Split a text that may contain characters of scripts without spaces."""
    result: Segments = []
    words: list[str] = []
    for run in _RUNS.findall(normal):
        if run < _THAI:
            words.append(run)
        elif "\u4e00" <= run < "\ua000" or _UNSPACED.match(run):
            if words:
                result.append(words)
                words = []
            result.append(run)
        else:  # a word of a script after Thai, such as Georgian
            words.append(run)
    if words:
        result.append(words)
    return result


def ascii_words(normal: str) -> list[str]:
    """Return the words of a normalized ASCII text. This is faster than ``segments``."""
    if "+" in normal or "#" in normal:  # C++, C#
        return _ASCII_WORDS.findall(normal)
    return normal.encode().translate(_ONLY_WORDS).decode().split()


def _spaced_words(normal: str) -> list[str]:
    """Return the words of a normalized text.

    The text must not contain combining signs or characters of scripts without spaces.
    """
    if "+" not in normal and "#" not in normal:
        plain = normal
        for mark in _PUNCTUATION:
            if mark in plain:
                plain = plain.replace(mark, " ")
        encoded = plain.encode("utf-8", "surrogatepass")
        words = encoded.translate(_ONLY_WORDS).decode("utf-8", "surrogatepass").split()
        if "".join(words).isalnum():  # otherwise, the text has other signs
            return words
    return _SPACED_WORDS.findall(normal)


def word_script(word: str) -> str:
    """Return the script of the first letter of a word."""
    if word[0].isascii():
        return "latin"
    return script_of(word[0])


def by_script(segments: Segments) -> dict[str, list[str]]:
    """Group words by their script."""
    lists = [segment for segment in segments if isinstance(segment, list)]
    words = lists[0] if len(lists) == 1 else [*chain.from_iterable(lists)]
    if not words:
        return {}
    if "".join(words).isascii():  # the fast path of most queries
        return {"latin": words}
    scripts = {letter: word_script(letter) for letter in {word[0] for word in words}}
    if len(set(scripts.values())) < 2:
        return dict.fromkeys(scripts.values(), words)
    result: dict[str, list[str]] = {}
    for word in words:
        result.setdefault(scripts[word[0]], []).append(word)
    return result


def run_length(run: str) -> int:
    """Return the number of letters in a text without spaces. A combining sign is not counted.

    Example:
        >>> run_length("绿茶"), run_length("น้ำชา")
        (2, 3)
    """
    if run >= CHINESE:
        return len(run)
    return len(_CLUSTERS.findall(run))


def sequences(run: str, is_query: bool) -> list[str]:
    """Return all sequences of one, two and three letters in a text without spaces.

    A letter includes its signs and the letters that are stacked below it.

    Args:
        run: The text without spaces, in an alphabetic script.
        is_query: Whether to omit single letters. Sequences of two letters are sufficient to match
            words in other contexts.
    """
    letters = _CLUSTERS.findall(run)
    shortest = 1
    if is_query and len(letters) > 1:
        shortest = 2
    longest = min(3, len(letters))
    result: list[str] = []
    for size in range(shortest, longest + 1):
        starts = range(len(letters) - size + 1)
        result += ["".join(letters[start : start + size]) for start in starts]
    return result


def sequences_of_han(name: str) -> list[str]:
    """Return the words of a name, and each character and each pair of Chinese characters.

    Example:
        >>> sequences_of_han("3000万元")
        ['3000', '万', '元', '万元']
    """
    parts: list[str] = []
    for run in _RUNS.findall(name):
        if _HAN.match(run):
            parts += run
            parts += [first + second for first, second in pairwise(run)]
        else:
            parts.append(run)
    return parts


# Question words, which are not in the answer. Some characters also begin other words (哪吒,
# 几何, 吗啡). They match only with neighbors or positions of question words.
_QUESTION_WORDS = re.compile(
    "什[么麼]时候|什麼時候|[为為]什[么麼]|什[么麼]样|什麼樣|[什甚][么麼]|[为為]何|怎[么麼][样樣]?|怎[样樣]"
    "|如何|何[时時]|何地|何[处處]|何人|何[种種]|何年|[请請][问問]|是否"
    "|哪[里裡裏儿兒些个個位]|哪(?![吒咤])|多少|多久|[谁誰]"
    "|[几幾](?=[个個年月天次种種岁歲位人名条條座部届屆场場大世])|[吗嗎呢](?=\\W*$)"
    "|อะไร|ใคร|ทำไม|ที่ไหน|ไหน|ใด|(?<!เ)กี่(?!ย)|หรือไม่|(?:เมื่อ|เท่า)(?:ไหร่|ไร|ใด)|อย่างไร|ยังไง"
)

_Alternatives = tuple[str, ...]
"""The possible forms of a query word in an index, one per language."""


class Analyzer(Protocol):
    """A function that converts a text to terms.

    An analyzer can have the following optional methods: ``query`` analyzes queries, ``indexed``
    analyzes texts for an index, and ``weigh`` weights the terms of a query. See ``TextAnalyzer``.
    Without ``indexed``, the length of a text is the number of its terms.
    """

    def __call__(self, text: str, /) -> Iterable[str]:
        """Return the terms of a passage, including repetitions."""


@dataclass(frozen=True, slots=True)
class TextAnalyzer:
    """An analyzer for texts in all languages, which can be mixed in a corpus, and for names in
    programs.

    The language of each text is detected from its script, function words and letters. A query is
    analyzed in the languages of the corpus. Texts are converted to lower case and then processed as
    follows:

    - English, Spanish, French and similar languages: Words are stemmed with Snowball, and accents
      are removed.
    - Languages with compounds or many endings, such as German, Russian, Turkish, Finnish, Arabic
      and Hindi: Words are stemmed. In addition, all sequences of four letters are used with lower
      weights (McNamee and Mayfield, "Character n-gram tokenization for European language text
      retrieval", 2004).
    - Vietnamese: Syllables with tones are used, and pairs of syllables without tones, so that a
      query without accents matches.
    - Chinese, Japanese and Korean: Every character and every pair of adjacent characters is used,
      so that words of a single character and words outside of dictionaries match (Nie, Gao, Zhang
      and Zhou, "On the use of words and n-grams for Chinese information retrieval", 2000).
    - Thai, Lao, Khmer and Burmese: Sequences of up to three letters with their signs are used.
      Single letters are omitted from queries.
    - Names such as ``getUserName`` and ``run_target``: The whole name and its parts are used.
    - Versions, codes, dates, amounts and units are described in ``identifiers``.
    - Traditional Chinese characters are converted to simplified characters.

    Chinese and Thai question words (什么) are omitted from queries, and so are English articles,
    auxiliaries, pronouns and question words, unless no other word remains.

    Args:
        stem: Whether words are stemmed.
        language: The language of all texts. If ``"auto"``, the language of each text is detected.
            Words in other scripts are always analyzed as with ``"auto"``.

    Raises:
        ValueError: If the language is unknown.

    Example:
        >>> TextAnalyzer()("The rivers of C++, 长江")
        ['the', 'river', 'of', 'c++', '长', '江', '长江']
        >>> TextAnalyzer().query("什么是 rivers?")
        ['是', 'river']
        >>> TextAnalyzer().words("Die Flüsse sind in der Karte"), TextAnalyzer().words("реками")
        (['die', 'fluss', 'sind', 'in', 'der', 'kart'], ['рек'])
    """

    stem: bool = True
    language: str = "auto"

    def __post_init__(self) -> None:
        existing = ["auto", *names()]
        if self.language not in existing:
            raise ValueError(
                f"unknown language {self.language!r}; known: "
                f"{nearest_names(str(self.language), existing)}"
            )

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a passage."""
        return self._analyze(text)[0]

    def indexed(self, text: str, runs: list[str] | None = None) -> tuple[list[str], int]:
        """Return the terms of a passage, including terms that mark its languages, and its length.

        The length is the number of words, regardless of the number of terms per word, so that texts
        in different languages have comparable lengths. In scripts without spaces, letters are
        counted. In languages with compounds or many endings, sequences of four letters are counted.

        Args:
            text: The passage.
            runs: A list to which Chinese, Japanese and Korean text is appended, if given. Its
                characters and pairs are then not included in the terms, because an index counts
                them faster.
        """
        terms, languages, length = self._analyze(text, runs=runs)
        if self.language == "auto":
            others = [item.term for item in languages if item is not of_script(item.script)[0]]
            if others:
                terms += [LANGUAGE_TERM, *others]
        return terms, length

    def words(self, text: str) -> list[str]:
        """Return the terms of a passage, without parts of words."""
        return self._analyze(text, parts=False)[0]

    def query(self, text: str) -> list[str]:
        """Return the terms of a query in its most likely language."""
        form, languages = self._content(text, None)
        runs = _runs(text)[form]
        plain = self._plain(runs, languages)
        return plain or [alternatives[0] for alternatives, _ in self._alternatives(runs, languages)]

    def weigh(
        self, text: str, frequency: Callable[[str], int], size: int
    ) -> Iterable[tuple[str | _Alternatives, float]]:
        """Return the terms of a query with their weights for an index.

        The language of a short query often cannot be identified. In this case, a word can have
        several forms, one for each language of the index. They are returned as a tuple that begins
        with the form in the main language of the index. The parts of a word come after it, with a
        weight below 1. Names come first.

        Args:
            text: The query.
            frequency: A function that returns the document frequency of a term.
            size: The number of texts in the index. Their terms were returned by ``indexed``.
        """
        form, languages = self._content(text, partial(_present, frequency, size))
        by_script = tuple(languages.items())
        weighed = _weighed(self, text, form, by_script)
        names: Sequence[_Name] = ()
        if _found_names(text):
            names = _names(self, text, by_script)
        missing = _missing_words(weighed, frequency)
        if missing:
            names = [*names, *_joined_pairs(self, text, by_script, missing, frequency)]
        if not names:
            return weighed
        return _with_names(names, weighed, frequency)

    def unknown_codes(self, text: str, frequency: Callable[[str], int]) -> dict[str, set[str]]:
        """Return the codes in a query that an index does not contain, with the numbers in each
        code.

        Example:
            >>> TextAnalyzer().unknown_codes("What does E-106 mean?", lambda term: 0)
            {'E-106': {'106'}}
        """
        codes: dict[str, set[str]] = {}
        for term, name in _found_names(text):
            code = name if name.isalnum() else term
            forms = [code, *self._stems([code], ENGLISH)]
            if _CODE.fullmatch(code) and not _occurs(forms, frequency):
                written = re.search(re.escape(name), text, re.IGNORECASE)
                numbers = codes.setdefault(written[0] if written else code, set())
                numbers.update(re.findall("[0-9]+", code))
        return codes

    def like(self, text: str) -> TextAnalyzer:
        """Return an analyzer for the language of a text.

        It is used to analyze words and queries that are compared with this text.

        Example:
            >>> [TextAnalyzer().like(text).words("Flüsse") for text in ("Der Fluss ist tief", "go")]
            [['fluss'], ['fluss']]
        """
        if self.language != "auto":
            return self
        languages = self._analyze(text, parts=False)[1]
        special = [batch for batch in languages if batch is not of_script(batch.script)[0]]
        if not special:
            return self
        return replace(self, language=special[0].name)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of words, and of sequences of characters without spaces.

        Example:
            >>> TextAnalyzer().spans("Tea, 绿茶")
            [(0, 3), (5, 7)]
        """
        return [match.span() for match in _RAW_RUNS.finditer(text)]

    def _analyze(
        self, text: str, parts: bool = True, runs: list[str] | None = None
    ) -> tuple[list[str], Collection[Language], int]:
        """Return the terms of a text, the language of each script, and the length of the text."""
        normal = normalized(text)
        if normal.isascii():
            words = ascii_words(normal)
            language = self._language(words, "latin")
            terms = self._word_terms(words, language, parts)
            if parts and (found := _names_in(text, normal)):
                terms = terms + self._stems([*found], language)
            return terms, (language,), length_of(words, language)
        split = segments(normal)
        unspaced = [run for run in split if isinstance(run, str)]
        lists: Segments = split
        if unspaced:
            lists = [segment for segment in split if isinstance(segment, list)]
        words_by_script = by_script(lists)
        languages = {
            script: self._language(words, script) for script, words in words_by_script.items()
        }
        if runs is not None and unspaced and min(unspaced) >= CHINESE:  # no alphabet: faster
            runs += unspaced
            split = lists
            if languages == _ENGLISH_BY_SCRIPT:  # stemmed in one call
                split = [words_by_script["latin"]]
            length = sum([len(run) for run in unspaced])
        else:
            length = sum([run_length(run) for run in unspaced])
        for script, words in words_by_script.items():
            length += length_of(words, languages[script])
        terms = self._terms(split, languages, parts, runs=runs)
        if parts:
            names = _names_in(text, normal, is_spaced=not unspaced)
            terms = terms + self._identifiers(names, languages)
        return terms, languages.values(), length

    def _identifiers(self, found: list[str], languages: Mapping[str, Language]) -> list[str]:
        if "".join(found).isascii():
            return self._stems(found, languages.get("latin", ENGLISH))
        result: list[str] = []
        for script, batch in groupby(found, word_script):
            result += self._stems([*batch], languages.get(script, ENGLISH))
        return result

    def _terms(
        self,
        split: Segments,
        languages: Mapping[str, Language],
        parts: bool = True,
        is_query: bool = False,
        runs: list[str] | None = None,
    ) -> list[str]:
        # English words have no parts and are stemmed in one call: the most frequent case.
        english = languages == _ENGLISH_BY_SCRIPT
        english_stems: Iterator[str] = iter(())
        if english:
            if len(split) == 1 and isinstance(split[0], list):
                return self._stems(split[0], ENGLISH)
            words = chain.from_iterable(run for run in split if isinstance(run, list))
            english_stems = iter(self._stems([*words], ENGLISH))
        result: list[str] = []
        for run in split:
            if isinstance(run, str):
                if run < CHINESE:
                    result += sequences(run, is_query)
                elif runs is not None:
                    runs.append(run)
                else:
                    result += run
                    result += [first + second for first, second in pairwise(run)]
            elif english:
                result += islice(english_stems, len(run))
            elif len(languages) == 1:
                for language in languages.values():
                    result += self._word_terms(run, language, parts)
            else:
                for script, batch in groupby(run, word_script):
                    result += self._word_terms([*batch], languages[script], parts)
        return result

    def _word_terms(self, words: list[str], language: Language, parts: bool) -> list[str]:
        if parts and self.stem:
            return terms(words, language)
        return self._stems(words, language)

    def _stems(self, words: list[str], language: Language) -> list[str]:
        if self.stem:
            return stems(words, language)
        return folded(words, language)

    def _forms(self, words: Iterable[str], scripts: _Scripts) -> list[_Forms]:
        """Return the forms of each word in the languages of its script."""
        if dict(scripts) == _ENGLISH_CANDIDATES:  # the most frequent case
            return [[form] for form in self._stems([*words], ENGLISH)]
        result: list[_Forms] = []
        for script, batch in groupby(words, word_script):
            same = [*batch]
            languages = dict(scripts).get(script, (ENGLISH,))
            by_language = [self._stems(same, language) for language in languages]
            result += [[*dict.fromkeys(forms)] for forms in zip(*by_language, strict=True)]
        return result

    def _language(self, words: Sequence[str], script: str) -> Language:
        return self._fixed(script) or detect(words, script) or of_script(script)[0]

    def _fixed(self, script: str) -> Language | None:
        if self.language == "auto":
            return None
        return next((batch for batch in named(self.language) if batch.script == script), None)

    def _content(
        self, text: str, present: Callable[[str], tuple[Language, ...]] | None
    ) -> tuple[int, Mapping[str, tuple[Language, ...]]]:
        """Return the index in ``_runs`` of the content words of a query, and their languages.

        If the query has no content words, the index of all words is returned.

        Args:
            text: The query.
            present: A function that returns the languages of a script in the index, most frequent
                first. If None, the most likely language of the query is used.
        """
        forms = _runs(text)
        languages = self._query_languages(forms[_ASKED], present)
        form = _ASKED
        # In other languages, removing function words did not improve results.
        if languages.get("latin") == (ENGLISH,):
            form = _ENGLISH_CONTENT
        if any(forms[form]):
            return form, languages
        return _EVERY, self._query_languages(forms[_EVERY], present)

    def _query_languages(
        self, runs: Segments, present: Callable[[str], tuple[Language, ...]] | None
    ) -> Mapping[str, tuple[Language, ...]]:
        chosen: dict[str, tuple[Language, ...]] = {}
        for script, words in by_script(runs).items():
            fixed = self._fixed(script)
            if fixed is not None or present is None:
                chosen[script] = (fixed or self._language(words, script),)
            else:
                candidates = present(script)
                if candidates[1:] and words[1:]:  # a single word can belong to several languages
                    detected = detect(words, script, candidates)
                    if detected:
                        candidates = (detected,)
                chosen[script] = candidates
        return chosen

    def _plain(
        self, runs: Segments, languages: Mapping[str, tuple[Language, ...]]
    ) -> list[str] | None:
        """Return the terms of an English query, which is the fast path.

        For other languages, return None.
        """
        if not languages:
            return self._terms(runs, {}, is_query=True)
        if languages == _ENGLISH_CANDIDATES:
            return self._terms(runs, _ENGLISH_BY_SCRIPT, is_query=True)
        return None

    def _alternatives(
        self, runs: Segments, languages: Mapping[str, tuple[Language, ...]]
    ) -> Iterator[tuple[_Alternatives, float]]:
        """Yield the possible forms of each term in a query, with their weight."""
        for run in runs:
            if not isinstance(run, list):
                for term in self._terms([run], {}, is_query=True):
                    yield (term,), 1.0
                continue
            for script, batch in groupby(run, word_script):
                words = [*batch]
                possible = languages[script]
                by_language = [self._stems(words, language) for language in possible]
                parts: list[list[tuple[str, float]]] = [[]] * len(words)
                if self.stem:
                    parts = query_parts(words, possible)
                for of_word, *alternatives in zip(parts, *by_language, strict=True):
                    yield tuple(dict.fromkeys(alternatives)), 1.0
                    for part, weight in of_word:
                        yield (part,), weight


_ENGLISH_BY_SCRIPT = {"latin": ENGLISH}

_LATEST = 4  # the number of cached queries, which all indexes of a search share

_ENGLISH_CANDIDATES = {"latin": (ENGLISH,)}


_EVERY, _ASKED, _ENGLISH_CONTENT = range(3)


_normalized = lru_cache(_LATEST)(normalized)


@lru_cache(_LATEST)
def _runs(text: str) -> tuple[Segments, Segments, Segments]:
    """Split a query into words and sequences without spaces. The cached result must not be changed.

    Returns:
        All segments, the segments without question words of scripts without spaces, and these
        segments without English function words.
    """
    normal = _normalized(text)
    every = segments(normal)
    asked = every
    if not normal.isascii():
        asked = segments(_QUESTION_WORDS.sub(" ", normal))
    return every, asked, [_without_function_words(segment) for segment in asked]


# The weights of names with digits, of the parts of names, and of short decimals and dates in words,
# which are often in other passages than the answer; a word weighs 1. Selected on XQuAD, HotpotQA,
# Python's documentation and code.
_NUMBER_WEIGHT = 1.4
_PART_WEIGHT = 0.8
_COMMON_WEIGHT = 0.1


_Forms = Sequence[str]
"""The forms of a word, one per language."""


class _Name(NamedTuple):
    """A term for a name in a query.

    Attributes:
        forms: The forms of the term.
        words: The words of the name.
        weight: The weight of the term. If None, the term is an alternative spelling that is used
            only if the index does not contain the words. It is a part of a word with letters and
            digits, or two adjacent words joined to one, as in ``sign off`` and ``signoff``.
        replaces: Whether the term replaces the words of the name, as in 第十二条, because all texts
            with these words contain the term as well.
    """

    forms: _Forms
    words: Sequence[_Forms]
    weight: float | None
    replaces: bool = False


class _PresentName(NamedTuple):
    """A term for a name in a query that an index contains.

    Attributes:
        form: The form of the term in the index.
        weight: The weight of the term.
        replaced: The words of the query that the term replaces.
        added: The words that follow the term, with the weight of parts.
    """

    form: str
    weight: float
    replaced: Sequence[str]
    added: Sequence[str]


def _occurs(term: str | _Forms, frequency: Callable[[str], int]) -> bool:
    """Return whether an index contains at least one form of a term."""
    if isinstance(term, str):
        return frequency(term) > 0
    return any([frequency(form) for form in term])


_Scripts = tuple[tuple[str, tuple[Language, ...]], ...]
"""The languages of each script in a query."""


def _names_in(text: str, normal: str, is_spaced: bool = True) -> list[str]:
    """Return the additional terms for the names in a text."""
    return [term for term, _ in _terms_of_names(text, normal, is_spaced)]


def _terms_of_names(text: str, normal: str, is_spaced: bool) -> list[tuple[str, str]]:
    """Return additional search terms for the names in a text, such as numbers and codes.

    Each term is paired with the name as it is written in the text.
    """
    found = [*identifiers(normal, is_spaced)]
    if has_roman_numbers(text):
        found += roman_numbers(text)
    if may_have_codes_apart(kinds_of(text)):
        found += codes_apart(text)
    return found


@lru_cache(_LATEST)
def _found_names(text: str) -> list[tuple[str, str]]:
    """Return the terms of the names in a query, each with the name as it is written.

    The result is cached and must not be changed.
    """
    return [*dict.fromkeys(_terms_of_names(text, _normalized(text), is_spaced=False))]


@lru_cache(_LATEST)
def _names(analyzer: TextAnalyzer, text: str, scripts: _Scripts) -> Sequence[_Name]:
    """Return the names in a query."""
    names = []
    for term, name in _found_names(text):
        is_han = _HAN.search(name) is not None
        parts = sequences_of_han(name) if is_han else _RUNS.findall(name)
        forms, *words = analyzer._forms([term, *parts], scripts)
        is_numeral = is_han or (term.isdigit() and name.isalpha())
        is_spelling = name.isalnum() and not is_numeral
        weight = None if is_spelling else _weight_of(term, name)
        replaces = is_han and not is_date(term)
        names.append(_Name(forms, words, weight, replaces))
    return names


def _weight_of(term: str, name: str) -> float:
    """Return the weight of a term for a name."""
    if is_common(term, name):
        return _COMMON_WEIGHT
    if any(character.isdigit() for character in name):
        return _NUMBER_WEIGHT
    return 1.0


def _missing_words(
    weighed: Iterable[tuple[str | _Alternatives, float]], frequency: Callable[[str], int]
) -> set[str]:
    """Return the first form of each word of a query that an index does not contain."""
    missing: set[str] = set()
    for term, weight in weighed:
        if weight < 1:
            continue
        if isinstance(term, str):
            if not frequency(term):
                missing.add(term)
        elif not _occurs(term, frequency):
            missing.add(term[0])
    return missing


def _joined_pairs(
    analyzer: TextAnalyzer,
    text: str,
    scripts: _Scripts,
    missing: Collection[str],
    frequency: Callable[[str], int],
) -> Iterator[_Name]:
    """Yield pairs of adjacent words of a query that an index contains as one word.

    Two words that the index both contains are not joined.

    Args:
        analyzer: The analyzer.
        text: The query.
        scripts: The languages of the query.
        missing: The first forms of the words that the index does not contain.
        frequency: A function that returns the document frequency of a term.
    """
    pairs: dict[tuple[str, str], tuple[_Forms, _Forms]] = {}
    for run in _runs(text)[_ENGLISH_CONTENT]:
        if isinstance(run, list):
            pairs |= _pairs(run, analyzer._forms(run, scripts), missing)
    if not pairs:
        return
    joined = analyzer._forms([first + second for first, second in pairs], scripts)
    for forms, words in zip(joined, pairs.values(), strict=True):
        if any([frequency(form) for form in forms]):
            yield _Name(forms, words, None)


def _pairs(
    words: Sequence[str], forms: Sequence[_Forms], missing: Collection[str]
) -> dict[tuple[str, str], tuple[_Forms, _Forms]]:
    """Return the pairs of adjacent words with a missing word, and the forms of both words."""
    pairs: dict[tuple[str, str], tuple[_Forms, _Forms]] = {}
    for pair, of_pair in zip(pairwise(words), pairwise(forms), strict=True):
        of_first, of_second = of_pair
        if of_first[0] in missing or of_second[0] in missing:
            first, second = pair
            if len(first) > 1 and len(second) > 1:
                pairs[pair] = of_pair
    return pairs


def _with_names(
    names: Iterable[_Name],
    words: Iterable[tuple[str | _Alternatives, float]],
    frequency: Callable[[str], int],
) -> Iterable[tuple[str | _Alternatives, float]]:
    """Insert names that an index contains before the words of a query.

    The words of a name come after it and weigh less than other words. Short decimal numbers and
    dates in words are added with a low weight, and their words keep their weights.
    """
    added: list[tuple[str | _Alternatives, float]] = []
    replaced: Counter[str] = Counter()
    for name in sorted(_present_names(names, frequency), key=lambda name: name.weight):
        added.append((name.form, name.weight))
        added += [(word, _PART_WEIGHT) for word in name.added]
        replaced.update(name.replaced)
    if not replaced:
        return [*added, *words]
    for term, weight in words:
        alternatives = (term,) if isinstance(term, str) else term
        weight -= min(weight, max([replaced[alternative] for alternative in alternatives]))
        if weight:
            added.append((term, weight))
    return added


def _present_names(
    names: Iterable[_Name], frequency: Callable[[str], int]
) -> Iterator[_PresentName]:
    """Yield the terms for names that an index contains."""
    for forms, words, weight, replaces in names:
        found = [_occurs(word, frequency) for word in words]
        replaced: list[str] = []
        if weight is None:
            if all(found):  # the words are written as in the index
                continue
            weight = 1.0
        else:
            is_new_date = is_date(forms[0]) and not all(found)
            if weight >= 1 or not any(found) or is_new_date:
                weight = max(weight, 1.0)
                replaced = [*chain.from_iterable(words)]
        added = [] if replaces else replaced
        for form in forms:
            if frequency(form):
                yield _PresentName(form, weight, replaced, added)


@lru_cache(_LATEST)
def _weighed(
    analyzer: TextAnalyzer,
    text: str,
    form: int,
    languages: _Scripts,
) -> list[tuple[str | _Alternatives, float]]:
    """Compute the result of ``weigh`` for one form of a query and the languages of each script."""
    runs = _runs(text)[form]
    by_script = dict(languages)
    plain = analyzer._plain(runs, by_script)
    if plain:
        counts: dict[str | _Alternatives, float] = dict.fromkeys(plain, 1)
        if len(counts) < len(plain):
            counts.update(Counter(plain))
        return [*counts.items()]
    return [
        (alternatives if alternatives[1:] else alternatives[0], weight)
        for alternatives, weight in analyzer._alternatives(runs, by_script)
    ]


def _present(frequency: Callable[[str], int], size: int, script: str) -> tuple[Language, ...]:
    """Return the languages of a script in an index, most frequent first."""
    default, others = _default_and_others(script)
    if not others or not frequency(LANGUAGE_TERM):
        return (default,)
    counts = {language: count for language, term in others if (count := frequency(term))}
    languages = [default, *counts]
    counts[default] = size - sum(counts.values())
    languages.sort(key=lambda language: -counts[language])
    return tuple(language for language in languages if counts[language] > 0) or (default,)


@cache
def _default_and_others(script: str) -> tuple[Language, list[tuple[Language, str]]]:
    """Return the default language of a script, and its other languages with their terms."""
    default, *others = of_script(script)
    return default, [(language, language.term) for language in others]


def _without_function_words(segment: list[str] | str) -> list[str] | str:
    if isinstance(segment, str):
        return segment
    function_words = ENGLISH.function_words
    return [word for word in segment if word not in function_words]
