"""Convert texts and queries to terms, by splitting them into words and stemming the words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import chain, groupby, islice, pairwise
from typing import Protocol

from ...nodegraph.errors import nearest_names
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
    stems,
    terms,
)
from .normal_form import LATEST, normalized, normalized_query
from .query_names import (
    Alternatives,
    Forms,
    Name,
    found_names,
    joined_pairs,
    missing_words,
    names_in,
    names_in_query,
    occurs,
    with_names,
)
from .segments import (
    CHINESE,
    RAW_RUNS,
    Segments,
    ascii_words,
    by_script,
    run_length,
    segments,
    sequences,
    word_script,
)

# E106, zq2x; longer words are often written apart: Windows 10.
_CODE = re.compile(r"[^\W\d_]{1,3}[0-9]+[a-z0-9]{0,9}")

# Question words, which are not in the answer. Some characters also begin other words (哪吒,
# 几何, 吗啡). They match only with neighbors or positions of question words.
_QUESTION_WORDS = re.compile(
    "什[么麼]时候|什麼時候|[为為]什[么麼]|什[么麼]样|什麼樣|[什甚][么麼]|[为為]何|怎[么麼][样樣]?|怎[样樣]"
    "|如何|何[时時]|何地|何[处處]|何人|何[种種]|何年|[请請][问問]|是否"
    "|哪[里裡裏儿兒些个個位]|哪(?![吒咤])|多少|多久|[谁誰]"
    "|[几幾](?=[个個年月天次种種岁歲位人名条條座部届屆场場大世])|[吗嗎呢](?=\\W*$)"
    "|อะไร|ใคร|ทำไม|ที่ไหน|ไหน|ใด|(?<!เ)กี่(?!ย)|หรือไม่|(?:เมื่อ|เท่า)(?:ไหร่|ไร|ใด)|อย่างไร|ยังไง"
)

Scripts = tuple[tuple[str, tuple[Language, ...]], ...]
"""The languages of each script in a query."""


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
    ) -> Iterable[tuple[str | Alternatives, float]]:
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
        names: Sequence[Name] = ()
        if found_names(text):
            names = _names(self, text, by_script)
        missing = missing_words(weighed, frequency)
        if missing:
            words = _runs(text)[_ENGLISH_CONTENT]
            forms_of = partial(self._forms, scripts=by_script)
            names = [*names, *joined_pairs(words, forms_of, missing, frequency)]
        if not names:
            return weighed
        return with_names(names, weighed, frequency)

    def unknown_codes(self, text: str, frequency: Callable[[str], int]) -> dict[str, set[str]]:
        """Return the codes in a query that an index does not contain, with the numbers in each
        code.

        Example:
            >>> TextAnalyzer().unknown_codes("What does E-106 mean?", lambda term: 0)
            {'E-106': {'106'}}
        """
        codes: dict[str, set[str]] = {}
        for term, name in found_names(text):
            code = name if name.isalnum() else term
            forms = [code, *self._stems([code], ENGLISH)]
            if _CODE.fullmatch(code) and not occurs(forms, frequency):
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
        return [match.span() for match in RAW_RUNS.finditer(text)]

    def _analyze(
        self, text: str, parts: bool = True, runs: list[str] | None = None
    ) -> tuple[list[str], Collection[Language], int]:
        """Return the terms of a text, the language of each script, and the length of the text."""
        normal = normalized(text)
        if normal.isascii():
            words = ascii_words(normal)
            language = self._language(words, "latin")
            terms = self._word_terms(words, language, parts)
            if parts and (found := names_in(text, normal)):
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
            names = names_in(text, normal, is_spaced=not unspaced)
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

    def _forms(self, words: Iterable[str], scripts: Scripts) -> list[Forms]:
        """Return the forms of each word in the languages of its script."""
        if dict(scripts) == _ENGLISH_CANDIDATES:  # the most frequent case
            return [[form] for form in self._stems([*words], ENGLISH)]
        result: list[Forms] = []
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
    ) -> Iterator[tuple[Alternatives, float]]:
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

_ENGLISH_CANDIDATES = {"latin": (ENGLISH,)}


_EVERY, _ASKED, _ENGLISH_CONTENT = range(3)


@lru_cache(LATEST)
def _runs(text: str) -> tuple[Segments, Segments, Segments]:
    """Split a query into words and sequences without spaces. The cached result must not be changed.

    Returns:
        All segments, the segments without question words of scripts without spaces, and these
        segments without English function words.
    """
    normal = normalized_query(text)
    every = segments(normal)
    asked = every
    if not normal.isascii():
        asked = segments(_QUESTION_WORDS.sub(" ", normal))
    return every, asked, [_without_function_words(segment) for segment in asked]


@lru_cache(LATEST)
def _names(analyzer: TextAnalyzer, text: str, scripts: Scripts) -> list[Name]:
    """Return the names in a query. The cached result must not be changed."""
    return names_in_query(text, partial(analyzer._forms, scripts=scripts))


@lru_cache(LATEST)
def _weighed(
    analyzer: TextAnalyzer,
    text: str,
    form: int,
    languages: Scripts,
) -> list[tuple[str | Alternatives, float]]:
    """Compute the result of ``weigh`` for one form of a query and the languages of each script."""
    runs = _runs(text)[form]
    by_script = dict(languages)
    plain = analyzer._plain(runs, by_script)
    if plain:
        counts: dict[str | Alternatives, float] = dict.fromkeys(plain, 1)
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
