"""Answers with planted quotations in five languages, and what a check has to find in each."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodekin.nodegraph.splitters.chunking import UNSPACED
from nodekin.retrievers.answers.quote_matching import NEGATION

VOCABULARIES = {
    "en": "green tea steamed leaves water river north harvest winter mountain trader brought "
    "first autumn garden under old long village master careful pressed evening the of with from "
    "never before after between bridge harbour letter stone glass forest council measured",
    "de": "Grüner Tee Blätter gedämpft Wasser Fluss Norden Ernte Winter Gebirge Händler brachte "
    "zuerst Herbst Garten unter alt lang Dorf Meister sorgfältig gepresst Straße Größe der die "
    "nie vorher danach zwischen Brücke Hafen Brief Stein Gläser Wald Rat gemessen",
    "ar": "الشاي الأخضر أوراق الماء نهر الشمال حصاد الشتاء جبل تاجر أحضر أولا الخريف حديقة تحت "
    "قديم طويل قرية سيد بعناية مضغوط مساء من مع إلى أبدا قبل بعد بين جسر ميناء رسالة حجر زجاج "
    "غابة مجلس قيس مدينة بيت طريق سوق كتاب",
    "zh": "绿茶蒸青叶片水河流北方收获冬天山商人带来首先秋季花园之下古老漫长村庄师傅仔细压制"
    "傍晚从前以后桥梁港口书信石头玻璃森林议会测量城市道路市场",
    "ja": "緑茶は蒸した葉と水の川が北で収穫冬に山商人運ぶ最初秋庭園古い長い村師匠丁"
    "寧押す夕方前後橋港手紙石森議会測る都市道市場です",
}

_MARKS = {"en": "“”", "de": "„“", "ar": "«»", "zh": "“”", "ja": "「」"}

_SPACED = {"en", "de", "ar"}


@dataclass(frozen=True)
class Planted:
    """A quotation in an answer, and what it is.

    Attributes:
        text: The answer.
        status: What it is to be classed as.
        source: The number of the source that it stands in.
        kind: How it was planted.
    """

    text: str
    status: str
    source: int | None
    kind: str


class Planter:
    """Plant quotations of sources.

    Args:
        rng: The random numbers.
        sources: The texts, of some sentences each.
        language: Of the sources.
    """

    def __init__(self, rng: random.Random, sources: Sequence[str], language: str) -> None:
        self.rng, self.sources, self.language = rng, sources, language
        self._plain = [plain(text) for text in sources]
        self.kinds: Sequence[Callable[[], Planted | None]] = (
            *(self._exact,) * 5,
            *(self._same_letters,) * 4,
            *(self._elided,) * 2,
            *(self._stitched,) * 3,
            *(self._other_source,) * 3,
            *(self._other_number,) * 2,
            *(self._other_word,) * 2,
            self._other_document,
        )

    def next(self) -> Planted:
        """Return the next answer."""
        while True:
            planted = self.rng.choice(self.kinds)()
            if planted is not None:
                return planted

    def _answer(
        self, quote: str, cited: int, status: str, source: int | None, kind: str
    ) -> Planted:
        start, stop = _MARKS[self.language]
        if start in quote or stop in quote:
            start, stop = ("『", "』") if self.language == "ja" else ("“", "”")
        before = self.rng.choice(["It says ", "据此，", "", "So heißt es: "])
        text = f"{before}{start}{quote}{stop} [{cited + 1}]."
        return Planted(
            text,
            status,
            None if source is None else source + 1,
            kind,
        )

    def _span(self, least: int = 4, most: int = 14) -> tuple[int, str] | None:
        """Return some words in a row of a source, and its index."""
        at = self.rng.randrange(len(self.sources))
        found = self._part(self.sources[at], least, most)
        return None if found is None else (at, found)

    def _part(self, text: str, least: int, most: int) -> str | None:
        words = list(re.finditer(r"\S+" if self.language in _SPACED else r"\d+|\w", text))
        scale = 1 if self.language in _SPACED else 3
        length = self.rng.randint(least * scale, most * scale)
        if len(words) < length:
            return None
        first = self.rng.randrange(len(words) - length + 1)
        part = text[words[first].start() : words[first + length - 1].end()]
        part = part.strip(" ,;:.\"'“”„«»「」()[]|")
        usable = not re.search(r"\.\s*\.|…|\n\s*\n|\[\d|[“”„«»「」『』\"]", part)
        return (
            part
            if usable and len(re.findall(r"\w", part)) >= 8 and self._whole(text, part)
            else None
        )

    def _whole(self, text: str, part: str) -> bool:
        """Return whether a part cuts no number, which would be another one."""
        at = text.find(part)
        before, behind = text[max(0, at - 2) : at], text[at + len(part) : at + len(part) + 2]
        word = r"\w" if self.language in _SPACED else rf"[^\W{UNSPACED}]"
        number = r"\d〇零一二三四五六七八九十百千万亿萬億"
        cut = (re.match(word, part) and re.search(rf"(?:{word}|[.,:+-])$", before)) or (
            re.search(rf"{word}$", part) and re.match(rf"{word}|[.,:]\d", behind)
        )
        cut = cut or (re.match(rf"[{number}]", part) and re.search(rf"[{number}−–±/分]", before))
        cut = cut or (
            re.search(rf"[{number}]$", part) and re.match(rf"\s?[{number}%％/点]", behind)
        )
        return not cut

    def _stands_in(self, quote: str) -> set[int]:
        return {at for at, text in enumerate(self._plain) if plain(quote) in text}

    def _exact(self) -> Planted | None:
        found = self._span()
        if found is None:
            return None
        at, quote = found
        return self._answer(quote, at, "exact", at, kind="exact")

    def _same_letters(self) -> Planted | None:
        found = self._span()
        if found is None:
            return None
        at, wording = found
        quote, kind = self._rewritten(wording)
        if quote == wording or quote in self.sources[at]:
            return None
        return self._answer(quote, at, "same_letters", at, kind=kind)

    def _rewritten(self, text: str) -> tuple[str, str]:
        kind = self.rng.choice(["case", "spaces", "width", "hyphens", "quotation marks", "several"])
        if kind == "case":
            return text.swapcase(), kind
        if kind == "spaces":
            return re.sub(
                r"\s+", lambda _: self.rng.choice(["  ", "\n", "\u00a0", "\u2009"]), text
            ), kind
        if kind == "width":
            wide = {
                code: code + 0xFEE0 for code in range(ord("0"), ord("z") + 1) if chr(code).isalnum()
            }
            return (
                text.translate(wide)
                if self.rng.random() < 0.5
                else unicodedata.normalize("NFD", text)
            ), kind
        if kind == "hyphens":
            return re.sub(
                rf"(?<=[^\W\d_{UNSPACED}]{{3}})(?=[a-zäöü]{{3}})",
                self.rng.choice(["\u00ad", "-\n"]),
                text,
                count=1,
            ), kind
        if kind == "quotation marks":
            return text.replace("'", "’"), kind
        return text.upper().replace(" ", "  ").replace("'", "’"), kind

    def _elided(self) -> Planted | None:
        found = self._span(10, 20)
        if found is None:
            return None
        at, wording = found
        parts = [
            self._part(half, 5, 7)
            for half in (wording[: len(wording) // 2], wording[len(wording) // 2 :])
        ]
        if None in parts:
            return None
        first, second = map(str, parts)
        between = wording[wording.find(first) + len(first) : wording.rfind(second)]
        if not between or NEGATION.search(between):
            return None
        if not all(self._whole(self.sources[at], str(part)) for part in parts):
            return None
        quote = self.rng.choice([" … ", "...", " [...] ", "……"]).join(map(str, parts))
        return self._answer(quote, at, "same_letters", at, kind="elision")

    def _stitched(self) -> Planted | None:
        at = self.rng.randrange(len(self.sources))
        parts = [self._part(self.sources[at], 5, 9) for _ in range(2)]
        if None in parts:
            return None
        one, two = map(str, parts)
        text = self.sources[at]
        if (
            min(len(re.findall(r"\w+", part)) for part in (one, two)) < 4
            and self.language in _SPACED
        ):
            return None
        if max(text.find(one), text.find(two)) < min(
            text.find(one) + len(one), text.find(two) + len(two)
        ):
            return None
        quote = f"{one} {two}" if self.language in _SPACED else one + two
        is_number = one[-1].isdigit() and two[0].isdigit()  # which joined are another one
        if self._stands_in(quote) or (is_number and self.language not in _SPACED):
            return None
        return self._answer(quote, at, "not_found", None, kind="stitched")

    def _other_source(self) -> Planted | None:
        found = self._span(5, 14)
        others = [
            n for n in range(len(self.sources)) if found and n not in self._stands_in(found[1])
        ]
        if found is None or not others:
            return None
        quote = found[1]
        first = next(n for n, text in enumerate(self.sources) if quote in text)
        return self._answer(
            quote, self.rng.choice(others), "other_source", first, kind="other source"
        )

    def _other_number(self) -> Planted | None:
        found = self._span(6, 14)
        if found is None or not re.search(r"\d", found[1]):
            return None
        at, text = found
        numbers = list(re.finditer(r"\d+", text))
        number = self.rng.choice(numbers)
        new = str(int(number[0]) + self.rng.choice([1, 10, 100]))
        if new in self.sources[at]:  # so that both halves might stand there
            return None
        quote = text[: number.start()] + new + text[number.end() :]
        return self._not_found(quote, at, "other number")

    def _other_word(self) -> Planted | None:
        found = self._span(6, 14)
        if found is None:
            return None
        at, text = found
        new = {"zh": "鯨鯢", "ja": "鯨鯢", "ar": "حوت"}.get(self.language, "whale")
        words = list(re.finditer(r"\S+" if self.language in _SPACED else r"\w", text))
        word = self.rng.choice(words[1:-1])
        return self._not_found(text[: word.start()] + new + text[word.end() :], at, "other word")

    def _other_document(self) -> Planted | None:
        """A sentence of the same words that no source has."""
        found = self._span(6, 12)
        if found is None:
            return None
        at, text = found
        words = text.split() if self.language in _SPACED else list(text)
        self.rng.shuffle(words)
        quote = (" " if self.language in _SPACED else "").join(words)
        return self._not_found(quote, at, "other order")

    def _not_found(self, quote: str, at: int, kind: str) -> Planted | None:
        if self._stands_in(quote) or re.search(r"\w", quote) is None:
            return None
        return self._answer(quote, at, "not_found", None, kind=kind)


def plain(text: str) -> str:
    """Return only the letters and digits of a text: a simpler form than the one that is tested."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[^\w]|_", "", text)


def made_sources(rng: random.Random, language: str, count: int) -> list[str]:
    """Return passages of made sentences: running text, tables, code, page breaks, near copies."""
    sources = [_passage(rng, language) for _ in range(count)]
    for at in range(0, count - 1, 5):  # nearly equal: one number is another one
        sources[at + 1] = re.sub(r"\d+", lambda match: str(int(match[0]) + 7), sources[at])
    return sources


def _passage(rng: random.Random, language: str) -> str:
    sentences = [_sentence(rng, language) for _ in range(rng.randint(5, 9))]
    separator = " " if language in _SPACED else ""
    if rng.random() < 0.2:
        sentences.insert(2, f"\n\n| {_words(rng, language, 2)} | {rng.randint(10, 9_999)} |\n")
    if rng.random() < 0.2:
        sentences.insert(
            3, f"\n\ndef area_{rng.randint(1, 99)}(width, height):\n    return width * height\n\n"
        )
    text = separator.join(sentences)
    if rng.random() < 0.3:
        at = text.find(" ", len(text) // 2)
        text = f"{text[:at]}\n\f{text[at + 1 :]}" if at > 0 else text
    return text


def _sentence(rng: random.Random, language: str) -> str:
    words = _words(rng, language, rng.randint(6, 12))
    number = rng.choice([str(rng.randint(1, 2_099)), f"{rng.randint(1, 99)}.{rng.randint(1, 9)}"])
    end = {"zh": "。", "ja": "。"}.get(language, ".")
    space = " " if language in _SPACED else ""
    return f"{words}{space}{number}{space}{_words(rng, language, 3)}{end}"


def _words(rng: random.Random, language: str, count: int) -> str:
    vocabulary = VOCABULARIES[language]
    if language in _SPACED:
        return " ".join(rng.choice(vocabulary.split()) for _ in range(count))
    return "".join(rng.choice(vocabulary) for _ in range(2 * count))


def real_sources(data: Path, language: str) -> list[str]:
    """Return paragraphs of public data sets."""
    if language == "en":
        text = (data / "chroma" / "wikitexts.md").read_text(encoding="utf-8")
        return [part for part in re.findall(r"[^\n]+(?:\n[^\n]+){0,3}", text) if len(part) > 200]
    files = {"zh": "cmrc2018/dev.json", "ja": "languages/jsquad_valid.json"}
    file = data / files.get(language, f"xquad/xquad.{language}.json")
    articles = json.loads(file.read_text(encoding="utf-8"))["data"]
    contexts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    return list(dict.fromkeys(contexts))
