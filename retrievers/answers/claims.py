"""Check what an answer says in its own words by its numbers and names, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ...nodegraph.extractors.entity_names import name_key, parse
from ...nodegraph.models.templates import Language
from ...nodegraph.splitters.chunking import UNSPACED
from ..analysis.languages import detect, script_of

_NUMBER = re.compile(
    rf"(?<![^\W_\d{UNSPACED}])\d+(?:[.,'’٫٬\u00a0\u202f ]\d+)*(?!\d|(?:st|nd|rd|th)\b)"
)

_THOUSANDS = re.compile(r"\d{1,3}(?P<mark>[.,'’٬\u00a0\u202f ])\d{3}(?:(?P=mark)\d{3})*")

_WORD = re.compile(rf"[^\W_{UNSPACED}]+(?:['’][^\W_{UNSPACED}]+)*")

_SAMPLE = 1_000  # characters that tell the language

_ENDING = 2  # letters by which a name's form may differ

_LISTED = 8  # numbers or names in a note


class ClaimCheck:
    """Look up the numbers and names of sentences in sources.

    Args:
        texts: The sources' texts.
        titles: Their titles.
        answer: What the answer says in its own words, whose language is compared with theirs.

    Example:
        >>> check = ClaimCheck(["The Nile is 6,650 km long."], ["Rivers"], "It has 7,000 km.")
        >>> check.notes(["It has 6650 km.", "At Khartoum it has 7,000 km."])
        ['no source has the number 7,000', 'no source has the name Khartoum']
    """

    def __init__(self, texts: Sequence[str], titles: Sequence[str], answer: str) -> None:
        self._texts, self._titles = texts, titles
        sample = answer[:_SAMPLE]
        self.same_language = any(_same_language(sample, text[:_SAMPLE]) for text in texts)

    @cached_property
    def _numbers(self) -> set[str]:
        texts = (*self._texts, *self._titles)
        return {value for text in texts for _, values in _numbers(text) for value in values}

    @cached_property
    def _words(self) -> set[str]:
        words = {word for text in (*self._texts, *self._titles) for word in _WORD.findall(text)}
        return {part for word in words for part in name_key(word).split()}

    @cached_property
    def _joined(self) -> str:
        return "\n".join([*self._texts, *self._titles]).casefold()

    def notes(self, claims: Iterable[str], language: Language = "en") -> list[str]:
        """Return what no source has, and whether the language is another one.

        Args:
            claims: The sentences.
            language: Of the notes.
        """
        claims = list(claims)
        numbers = [
            written
            for claim in claims
            for written, values in _numbers(claim)
            if not values & self._numbers
        ]
        number, name = ("数字", "名称") if language == "zh" else ("number", "name")
        notes = [_missing(number, numbers, language)]
        if not self.same_language:
            notes.append(
                "回答与来源的语言不同：只核对了引文和数字"
                if language == "zh"
                else "the answer is in another language than its sources: only its quotations and "
                "numbers were checked"
            )
        else:
            names = [key for claim in claims for key in self._missing_names(claim)]
            notes.append(_missing(name, names, language))
        return [note for note in notes if note]

    def _missing_names(self, claim: str) -> Iterator[str]:
        for key, name in parse(claim).names(lambda _: True).items():
            words = _WORD.findall(key)
            others = [part for part in key.split() if not _WORD.match(part)]
            if not all(map(self._has_word, words)) or any(p not in self._joined for p in others):
                yield name

    def _has_word(self, word: str) -> bool:
        if word in self._words or len(word) < 2:
            return True
        stems = [word[: len(word) - cut] for cut in range(1, _ENDING + 1) if len(word) - cut > 3]
        if any(stem in self._words for stem in stems):
            return True
        return len(word) > 3 and any(
            other.startswith(word) and len(other) - len(word) <= _ENDING for other in self._words
        )


def _missing(what: str, values: Iterable[str], language: Language) -> str:
    listed = list(dict.fromkeys(values))
    if not listed:
        return ""
    if language == "zh":
        more = f"等 {len(listed)} 个" if len(listed) > _LISTED else ""
        return f"来源中没有这样的{what}：{'、'.join(listed[:_LISTED])}{more}"
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return f"no source has the {what}{'s' * (len(listed) > 1)} {', '.join(listed[:_LISTED])}{more}"


def _numbers(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the numbers of a text, and what each may be: 1.500 is a thousand, or one and a half."""
    text = unicodedata.normalize("NFKC", text)
    for match in _NUMBER.finditer(text):
        number = match[0]
        plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in number)
        values = {re.sub(r"[,٫]", ".", plain)}
        if _THOUSANDS.fullmatch(plain):
            values.add(re.sub(r"\D", "", plain))
        else:
            grouped = re.sub(r"[.,'’٬\u00a0\u202f ](?=\d{3}(?!\d))", "", plain)
            values.add(re.sub(r"[,٫]", ".", grouped))
            values.update(re.split(r"[ \u00a0\u202f]", plain) if " " in plain else ())
        yield number, values


def _same_language(text: str, other: str) -> bool:
    """Return whether two texts may be in the same language, a fifth of the first at least."""
    letters, scripts = _scripts(text), _scripts(other)
    if not letters or not scripts:
        return True
    script = scripts.most_common(1)[0][0]
    if 5 * letters[script] < letters.total():
        return False
    languages = [detect(_WORD.findall(each.lower()), script) for each in (text, other)]
    return None in languages or languages[0] == languages[1]


def _scripts(text: str) -> Counter[str]:
    """Count the letters of each script. A text with kana is in Japanese, its Han characters too."""
    scripts = Counter(map(script_of, re.findall(r"[^\W\d_]", text)))
    if 10 * (scripts["hiragana"] + scripts["katakana"]) > scripts.total():
        japanese = sum(scripts.pop(name, 0) for name in ("hiragana", "katakana", "cjk"))
        scripts["japanese"] = japanese
    return scripts
