"""Find the names in a query, such as codes, dates and compound words, and weight their terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

from .character_kinds import kinds_of, may_have_codes_apart
from .identifiers import identifiers, is_common, is_date
from .normal_form import HAN, LATEST, normalized_query
from .numerals import codes_apart, has_roman_numbers, roman_numbers
from .segments import RUNS, Segments, sequences_of_han

Alternatives = tuple[str, ...]
"""The possible forms of a query word in an index, one per language."""

# The weights of names with digits, of the parts of names, and of short decimals and dates in words,
# which are often in other passages than the answer; a word weighs 1. Selected on XQuAD, HotpotQA,
# Python's documentation and code.
_NUMBER_WEIGHT = 1.4
_PART_WEIGHT = 0.8
_COMMON_WEIGHT = 0.1

Forms = Sequence[str]
"""The forms of a word, one per language."""

FormsOf = Callable[[Iterable[str]], list[Forms]]
"""A function that returns the forms of each of several words."""


class Name(NamedTuple):
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

    forms: Forms
    words: Sequence[Forms]
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


def occurs(term: str | Forms, frequency: Callable[[str], int]) -> bool:
    """Return whether an index contains at least one form of a term."""
    if isinstance(term, str):
        return frequency(term) > 0
    return any([frequency(form) for form in term])


def names_in(text: str, normal: str, is_spaced: bool = True) -> list[str]:
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


@lru_cache(LATEST)
def found_names(text: str) -> list[tuple[str, str]]:
    """Return the terms of the names in a query, each with the name as it is written.

    The result is cached and must not be changed.
    """
    return [*dict.fromkeys(_terms_of_names(text, normalized_query(text), is_spaced=False))]


def names_in_query(text: str, forms_of: FormsOf) -> list[Name]:
    """Return the names in a query.

    Args:
        text: The query.
        forms_of: A function that returns the forms of words.
    """
    names = []
    for term, name in found_names(text):
        is_han = HAN.search(name) is not None
        parts = sequences_of_han(name) if is_han else RUNS.findall(name)
        forms, *words = forms_of([term, *parts])
        is_numeral = is_han or (term.isdigit() and name.isalpha())
        is_spelling = name.isalnum() and not is_numeral
        weight = None if is_spelling else _weight_of(term, name)
        replaces = is_han and not is_date(term)
        names.append(Name(forms, words, weight, replaces))
    return names


def _weight_of(term: str, name: str) -> float:
    """Return the weight of a term for a name."""
    if is_common(term, name):
        return _COMMON_WEIGHT
    if any(character.isdigit() for character in name):
        return _NUMBER_WEIGHT
    return 1.0


def missing_words(
    weighed: Iterable[tuple[str | Alternatives, float]], frequency: Callable[[str], int]
) -> set[str]:
    """Return the first form of each word of a query that an index does not contain."""
    missing: set[str] = set()
    for term, weight in weighed:
        if weight < 1:
            continue
        if isinstance(term, str):
            if not frequency(term):
                missing.add(term)
        elif not occurs(term, frequency):
            missing.add(term[0])
    return missing


def joined_pairs(
    segments: Segments,
    forms_of: FormsOf,
    missing: Collection[str],
    frequency: Callable[[str], int],
) -> Iterator[Name]:
    """Yield pairs of adjacent words of a query that an index contains as one word.

    Two words that the index both contains are not joined.

    Args:
        segments: The words of the query without function words.
        forms_of: A function that returns the forms of words.
        missing: The first forms of the words that the index does not contain.
        frequency: A function that returns the document frequency of a term.
    """
    pairs: dict[tuple[str, str], tuple[Forms, Forms]] = {}
    for segment in segments:
        if isinstance(segment, list):
            pairs |= _pairs(segment, forms_of(segment), missing)
    if not pairs:
        return
    joined = forms_of([first + second for first, second in pairs])
    for forms, words in zip(joined, pairs.values(), strict=True):
        if any([frequency(form) for form in forms]):
            yield Name(forms, words, None)


def _pairs(
    words: Sequence[str], forms: Sequence[Forms], missing: Collection[str]
) -> dict[tuple[str, str], tuple[Forms, Forms]]:
    """Return the pairs of adjacent words with a missing word, and the forms of both words."""
    pairs: dict[tuple[str, str], tuple[Forms, Forms]] = {}
    for pair, of_pair in zip(pairwise(words), pairwise(forms), strict=True):
        of_first, of_second = of_pair
        if of_first[0] in missing or of_second[0] in missing:
            first, second = pair
            if len(first) > 1 and len(second) > 1:
                pairs[pair] = of_pair
    return pairs


def with_names(
    names: Iterable[Name],
    words: Iterable[tuple[str | Alternatives, float]],
    frequency: Callable[[str], int],
) -> Iterable[tuple[str | Alternatives, float]]:
    """Insert names that an index contains before the words of a query.

    The words of a name come after it and weigh less than other words. Short decimal numbers and
    dates in words are added with a low weight, and their words keep their weights.
    """
    added: list[tuple[str | Alternatives, float]] = []
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
    names: Iterable[Name], frequency: Callable[[str], int]
) -> Iterator[_PresentName]:
    """Yield the terms for names that an index contains."""
    for forms, words, weight, replaces in names:
        found = [occurs(word, frequency) for word in words]
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
