"""Remove bullets and numbers from list items, and split lists that are written in a single line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from .chinese_script import chinese_pattern

_CHINESE_NUMBER = "[一二三四五六七八九十]{1,3}"

# The patterns limit the number of spaces, because an answer may contain a million of them.
NUMBER = rf"""(?:\(?\d{{1,2}}\\?[.)](?!\d)|[（(【\[]?\d{{1,3}}[、）\]】]|\d{{1,3}}．(?!\d)
    |{_CHINESE_NUMBER}[、．)）](?!{_CHINESE_NUMBER}[、级和])|[（(]{_CHINESE_NUMBER}[)）]
    |第(?:{_CHINESE_NUMBER}|\d{{1,2}})[个条步点问句种]?(?:子?问题|查询)?(?:[，、：:,．]|\s?→\s?|(?<=步)\s)(?!{_CHINESE_NUMBER})
    |[①-⑳⑴-⒇⒈-⒛➀-➓❶-❿⓫-⓴⓵-⓾㈠-㈩㊀-㊉]|\d\ufe0f?\u20e3
    |\d{{1,2}}：|\d{{1,2}}(?::\ |\t|\ [-–—]\ )|\#\d{{1,2}}[.:)]?[ ]
    |\d{{1,2}}\.\d{{1,2}}[.)][ ]
    |[a-hA-H]\)|[(（][a-hA-H][)）]|[ivx]{{1,4}}\)|\([ivx]{{1,4}}\))"""

_SIGN = "[-*+•·●–—‣◦▪■□►▶→➤➢✓✔✅☐☑○◆◇★]"

_BULLET = chinese_pattern(
    rf"""\s{{0,9}}(?:>\s{{0,9}})?(?:\#{{1,6}}\s{{1,9}})?(?:{_SIGN}\s{{1,9}}|[•●▪►]|[-=]{{1,2}}>\s)?
    (?:\[[\ xX]?\]\s)?(?:[*_]{{0,2}}{NUMBER})?\s{{0,9}}""",
    re.X,
)

_ORDINAL = chinese_pattern(
    r"\s{0,9}(?:[-*]\s)?(first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth|fifth|next|then|finally"
    r"|last(?:ly)?|首先|第一|其次|第二|再次|接着|然后|最后|先问|再问|接着问|最后问"
    r"|まず|次に|最後に|먼저|다음으로)\s?[,，、:：]\s{0,9}",
    re.I,
)


def split_bullet(line: str) -> tuple[str, bool]:
    """Return a line without its bullet or number, and whether it had a bullet or number."""
    bullet = _BULLET.match(line)
    if bullet is None:
        return line.strip(), False
    sign = bullet[0].strip(" \t*_#>") or re.match(r"\s*\*\s", line)
    return line[bullet.end() :].strip(), bool(sign)


def indent_of(line: str) -> int:
    """Return the number of spaces at the start of a line."""
    return len(line) - len(line.lstrip())


def with_bullets(lines: Sequence[str]) -> list[str]:
    """Replace the letters, ordinal words and other markers of list items with bullets.

    Because a single letter may be the initial of a name, letters are replaced only if at least two
    consecutive letters occur.

    Example:
        >>> with_bullets(["A. Who wrote it?", "B. Who painted it?"])
        ['- Who wrote it?', '- Who painted it?']
        >>> with_bullets(["A. Einstein lived where?"])
        ['A. Einstein lived where?']
    """
    lines = _inline_items(_announced_items(_without_counters(lines)))
    lines = _counted_items(_signed_items(lines))
    ordinals = [found[1].casefold() for line in lines if (found := _ORDINAL.match(line))]
    if len(ordinals) > 1 and ordinals[0] in _FIRST_ORDINALS:
        lines = [_ORDINAL.sub("- ", line, count=1) for line in lines]
    return [*lines]


_FIRST_ORDINALS = ("first", "firstly", "首先", "第一", "先问", "まず", "먼저")

# Matches the number of a record in YAML: "- id: 1".
_COUNTER = chinese_pattern(
    r"(?P<bullet>\s{0,9}[-*]\s)(?:id|no|nr|number|step|index|order|rank|priority|序号|编号|步骤)"
    r"\s?[:：]\s?[\"']?[A-Za-z]{0,3}\d{1,2}[\"']?\s{0,9}",
    re.I,
)


def _without_counters(lines: Sequence[str]) -> Sequence[str]:
    """Remove the numbers of records in YAML lists, so that each bullet is followed by the text.

    Example:
        >>> _without_counters(["- id: 1", "  text: Who wrote it?"])
        ['- text: Who wrote it?']
    """
    kept: list[str] = []
    bullet = ""
    for line in lines:
        counter = _COUNTER.fullmatch(line)
        if counter is not None:
            bullet = counter["bullet"]
            continue
        kept.append(f"{bullet}{line.strip()}" if bullet else line)
        bullet = ""
    return kept


_ANNOUNCED = re.compile(r"([^\n:：]{1,100}[:：])\s{0,9}((?:\*\*)?\(?1[.)、）][^\d\s]?\s?\S.*)")

_SECOND = re.compile(r"\s{0,9}(?:\*\*)?\(?2[.)、）]")


def _announced_items(lines: Sequence[str]) -> Sequence[str]:
    """Split a line such as "Questions: 1. one" after the colon if the next line begins with "2"."""
    found = _ANNOUNCED.fullmatch(lines[0]) if lines else None
    if found is None or not any(_SECOND.match(line) for line in lines[1:]):
        return lines
    return [found[1], found[2], *lines[1:]]


_COUNTED_WORD = r"""
    (?:sub[-_\s]?)?(?:questions?|quer(?:y|ies)|Q)|SQ|S|[VRP](?=\d)|Alt|No\.?|Nr\.?|№
    |Steps?|Hops?|Part|Item|Point|Aspect|Options?|Versions?|Variations?|Variants?|Alternatives?|(?:Re)?phrasings?|Rewrites?|Searches
    |Search(?:[ ]query)?|Task|Frage|(?:Um)?Formulierung|Variante|Möglichkeit
    |Formulaci[oó]n|Versión|Opción|Alternativa|Reformulation|Формулировка|Вариант|言い換え|候補|パターン|Pregunta|Domanda|Pergunta|Vraag|Вопрос|质問|質問|질문
    |子?问题|步骤|查询|问法|改写|版本|方式|方案|选项|说法|表述|角度|其|1\.|I\."""

# Matches "Q1) ", "Part A: ", "№ 1. ", "1st: ", "1/ ", "1.1 ", "(I) ", "一：", "甲、", "Step One: ".
_COUNTED = chinese_pattern(
    rf"""\s{{0,9}}(?:[-*•]\s{{1,4}})?(?P<word>[*_(\[<【（]{{0,3}}(?:(?:{_COUNTED_WORD})[\s_.\#(\[-]{{0,2}})?)
    (?P<count>\d{{1,2}}|one|two|three|four|five|six|[A-Ha-h]|[ivxIVX]{{1,4}}|[а-з]|[α-θΑ-Θ]|[Ⅰ-Ⅻ]
      |[一二三四五六七八]|[甲乙丙丁戊己庚辛])(?:st|nd|rd|th)?
    (?P<end>[*_]{{0,2}}\s?[.．:：、)\]>】）/|]{{1,2}}[*_]{{0,2}}\s{{0,4}}|\s(?:[-–—→]|[-=]>)\s
      |(?<=\d)[-,，;；]\s{{0,4}}(?!\d)|(?<=[一二三四五])[是，]|\s)(?=\S)""",
    re.I | re.X,
)

_NEXT_COUNTS = {
    **{"1": "2", "01": "02", "one": "two", "a": "b", "i": "ii", "α": "β", "а": "б"},
    **{"ⅰ": "ⅱ", "一": "二", "甲": "乙"},
}

# A number that is not followed by a separator may be part of the text: "1 litre", "Part A of the
# law".
_BARE_COUNT = re.compile(
    r"[\s(\[<【（*_]{0,9}(?:(?:S?Q\.?|S|№)\s?\d|1\.\d|\d{1,2}\s(?=[A-Z\u3400-\u9fff]))"
)


def _counted_items(lines: Sequence[str]) -> Sequence[str]:
    """Replace numbered words such as "Step 1" with bullets if the numbers are consecutive."""
    by_kind: dict[tuple[str, str, bool], list[re.Match[str]]] = {}
    for line in lines:
        found = _COUNTED.match(line)
        if found is None:
            continue
        sign = found["end"].strip()
        if not sign and not _BARE_COUNT.match(line):
            continue
        kind = (found["word"].casefold(), sign, found["count"].isdigit())
        by_kind.setdefault(kind, []).append(found)
    prefixes: set[str] = set()
    for counted in by_kind.values():
        counts = [match["count"].casefold() for match in counted]
        follows = _NEXT_COUNTS.get(counts[0])
        if counts[1:2] == [follows]:
            prefixes |= {match[0] for match in counted}
    if not prefixes:
        return lines
    return [_without_prefix(line, prefixes) for line in lines]


def _without_prefix(line: str, prefixes: Collection[str]) -> str:
    """Replace any of the given prefixes at the start of a line with a bullet."""
    found = _COUNTED.match(line)
    if found is None or found[0] not in prefixes:
        return line
    return f"{' ' * indent_of(line)}- {line[found.end() :]}"


# A symbol before a space, or directly before a question. Quotes and brackets do not count as
# symbols.
_SIGNED = re.compile(
    r"""\s{0,9}(?!\*\*|__)(?P<sign>[-=]{1,2}>|»|o(?=\s(?:[A-Z]|[\u3400-\u9fff]))
    |[^\w\s"'“”‘’«»「」『』()（）\[\]【】<>《》{}#¿¡$@/\\.&%|`]{1,3}|\\item)
    (?:\ufe0f?\s{1,4}(?=\S)
      |(?<=[\U0001f000-\U0001faff])\ufe0f?(?=\w)
      |(?=(?:Who|What|When|Where|Which|Why|How|Is|Are|Do|Does|Did|Can)\b|[\u3400-\u9fff]))""",
    re.X,
)

_LATEX = re.compile(r"\s{0,9}\\(?:begin|end)\{\w{1,20}\}\s{0,9}")


def _signed_items(lines: Sequence[str]) -> Sequence[str]:
    """Replace a symbol at the start of lines with bullets if at least two lines begin with it."""
    lines = [line for line in lines if not _LATEX.fullmatch(line)]
    found = [_SIGNED.match(line) for line in lines]
    signs = Counter(match["sign"] for match in found if match is not None)
    result: list[str] = []
    for line, match in zip(lines, found, strict=True):
        is_item = match is not None and signs[match["sign"]] > 1
        if match is not None and is_item:
            line = f"{' ' * indent_of(line)}- {line[match.end() :]}"
        result.append(line)
    return result


_INLINE_NUMBER = re.compile(r"(?:^|(?<=[\s;；，,。:：]))[(（]?(\d{1,2})[.)、）](?!\d)\s?")


_CIRCLED = re.compile("[①-⑨]")

# Circled numbers that start items. In "①和②有什么区别", they are names.
_CIRCLED_ITEMS = re.compile(r"(?:^|[\s;；，,。:：?？])①[^①②]{3,}②")


def _with_plain_numbers(line: str) -> str:
    """Replace "①" by "1." in a line with several items."""
    if _CIRCLED_ITEMS.search(line):
        return _CIRCLED.sub(lambda found: f" {ord(found[0]) - ord('①') + 1}. ", line)
    return line


def _inline_items(lines: Sequence[str]) -> list[str]:
    """Split each line such as "1. one 2. two" into several lines."""
    result: list[str] = []
    for line in lines:
        parts = _INLINE_NUMBER.split(_with_plain_numbers(line))
        numbers = parts[1::2]
        counted = [str(at + 1) for at in range(len(numbers))]
        if len(numbers) > 1 and numbers == counted:
            if parts[0].strip():
                result.append(parts[0])
            texts = [text.strip().rstrip(";；,，") for text in parts[2::2]]
            result += [f"{number}. {text}" for number, text in zip(numbers, texts, strict=True)]
        else:
            result.append(line)
    return result
