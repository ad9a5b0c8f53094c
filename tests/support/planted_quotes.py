"""Answers that contain generated quotations in five languages, with the expected check results."""

from __future__ import annotations

import random
import re
import unicodedata
from dataclasses import dataclass

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

_FOREIGN = {"zh": "鯨鯢", "ja": "鯨鯢", "ar": "حوت"}

_ELLIPSES = [" … ", "...", " [...] ", "……"]

_WIDE = {code: code + 0xFEE0 for code in range(ord("0"), ord("z") + 1) if chr(code).isalnum()}


@dataclass(frozen=True)
class Planted:
    """An answer with one quotation, its expected status, and the number of its source."""

    text: str
    status: str
    source: int | None


class Planter:
    """A generator of random sources in one language, and of answers that quote them.

    One source is a near copy of another source with different numbers.
    """

    def __init__(self, rng: random.Random, language: str, count: int = 6) -> None:
        self.rng, self.language = rng, language
        self.space = " " if language in ("en", "de", "ar") else ""
        vocabulary = VOCABULARIES[language]
        self.vocabulary = vocabulary.split() if self.space else [*vocabulary]
        self.tokens = [self._passage() for _ in range(count - 1)]
        self.tokens.append([str(int(t) + 7) if t.isdigit() else t for t in self.tokens[0]])
        self.sources = [self._text(tokens) for tokens in self.tokens]

    def next(self) -> Planted:
        """Return an answer that quotes words of one source, either exactly or with changes."""
        while True:
            at = self.rng.randrange(len(self.sources))
            words = self._span(at, 6, 14)
            kind = self.rng.choice([self._exact, self._same_letters, self._moved, self._wrong])
            made = kind(at, words)
            if made is not None:
                quote, status, cited, source = made
                start, stop = _MARKS[self.language]
                text = f"{self.rng.choice(['It says ', '据此，', ''])}{start}{quote}{stop}"
                return Planted(f"{text} [{cited + 1}].", status, source)

    def _passage(self) -> list[str]:
        tokens = []
        for _ in range(self.rng.randint(5, 9)):
            words = self.rng.choices(self.vocabulary, k=self.rng.randint(9, 16) * self._scale)
            number = self.rng.randrange(3, len(words) - 3)
            tokens += [*words[:number], str(self.rng.randint(1, 2_099)), *words[number:], "\n"]
        return tokens

    @property
    def _scale(self) -> int:
        return 1 if self.space else 3

    def _text(self, tokens: list[str]) -> str:
        end = ". " if self.space else "。"
        text = self.space.join(tokens).replace(f"{self.space}\n{self.space}", end)
        return text.strip() if self.rng.random() < 0.7 else text.replace(end, f"{end[0]}\n\f", 1)

    def _span(self, at: int, least: int, most: int) -> list[str]:
        """Return adjacent tokens of a sentence in a source. The first and last tokens are words."""
        tokens = self.tokens[at]
        while True:
            length = self.rng.randint(least, most) * self._scale
            start = self.rng.randrange(max(1, len(tokens) - length))
            span = tokens[start : start + length]
            ends = [span[0], span[-1], *tokens[max(0, start - 1) : start]]
            if "\n" not in span and not any(token.isdigit() for token in ends):
                return span

    def _sources_of(self, quote: str) -> list[int]:
        return [at for at, text in enumerate(self.sources) if plain(quote) in plain(text)]

    def _exact(self, at: int, words: list[str]) -> tuple[str, str, int, int | None] | None:
        return self.space.join(words), "exact", at, at + 1

    def _same_letters(self, at: int, words: list[str]) -> tuple[str, str, int, int | None] | None:
        text, half = self.space.join(words), len(words) // 2
        gap = self.rng.choice(["  ", "\n", "\u00a0", "\u2009"])
        hyphen = self.rng.choice(["\u00ad", "-\n"])
        first, last = words[: half - 1], words[half + 1 :]
        elided = self.rng.choice(_ELLIPSES).join(map(self.space.join, (first, last)))
        numbers = any(token.isdigit() for token in (first[-1], last[0]))
        usable = not numbers
        quote = self.rng.choice(
            [
                text.swapcase(),
                text.upper().replace(" ", "  "),
                text.replace(" ", gap),
                text.translate(_WIDE),
                unicodedata.normalize("NFD", text),
                re.sub(r"(?<=[a-z]{3})(?=[a-z]{3})", hyphen, text, count=1),
                elided if usable else text,
            ]
        )
        if quote in self.sources[at]:
            return None
        status = "shortened" if quote == elided else "same_letters"
        return quote, status, at, at + 1

    def _moved(self, at: int, words: list[str]) -> tuple[str, str, int, int | None] | None:
        """Cite a source that does not contain the quotation."""
        quote = self.space.join(words)
        found = self._sources_of(quote)
        cited = self.rng.choice([n for n in range(len(self.sources)) if n not in found])
        return quote, "other_source", cited, found[0] + 1

    def _wrong(self, at: int, words: list[str]) -> tuple[str, str, int, int | None] | None:
        """Change the number or a word, shuffle the words, or join two parts of the source."""
        changed = words.copy()
        numbers = [n for n, token in enumerate(words) if token.isdigit()]
        kind = self.rng.choice(["number", "word", "order", "stitched"])
        if kind == "number" and numbers:
            changed[numbers[0]] = str(int(words[numbers[0]]) + self.rng.choice([1, 10, 100]))
            # the changed quotation might occur in the source
            if changed[numbers[0]] in self.sources[at]:
                return None
        elif kind == "word":
            changed[self.rng.randrange(1, len(words) - 1)] = _FOREIGN.get(self.language, "whale")
        elif kind == "order":
            self.rng.shuffle(changed)
        else:
            changed += self._span(at, 6, 9)
        quote = self.space.join(changed)
        return None if self._sources_of(quote) else (quote, "not_found", at, None)


def plain(text: str) -> str:
    """Return only the letters and digits of a text.

    This is a simpler version of the tested function.
    """
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text).casefold())
