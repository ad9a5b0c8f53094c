"""Take bullets, numbers, labels and tables from the lines of a model's answer."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Collection, Sequence

_CHINESE_NUMBER = "[一二三四五六七八九十]{1,3}"

# Spaces are limited in patterns: an answer may be a million spaces.
_NUMBER = rf"""(?:\(?\d{{1,3}}\\?[.)](?!\d)|[（(【\[]?\d{{1,3}}[、）\]】]|\d{{1,3}}．(?!\d)
    |{_CHINESE_NUMBER}[、．)）](?!{_CHINESE_NUMBER}[、级和])|[（(]{_CHINESE_NUMBER}[)）]
    |第(?:{_CHINESE_NUMBER}|\d{{1,2}})[个条步点问句]?(?:子?问题|查询)?[，、：:,．](?!{_CHINESE_NUMBER})
    |[①-⑳⑴-⒇⒈-⒛➀-➉❶-❿㈠-㈩]|\d\ufe0f?\u20e3
    |\d{{1,2}}：|\d{{1,2}}(?::\ |\t|\ [-–—]\ )|\#\d{{1,2}}[.:)]?[ ]
    |\d{{1,2}}\.\d{{1,2}}[.)][ ]
    |[a-hA-H]\)|[(（][a-hA-H][)）]|[ivx]{{1,4}}\)|\([ivx]{{1,4}}\))"""

_SIGN = "[-*+•·●–—‣◦▪■□►▶→➤➢✓✔✅☐☑○◆◇★]"

_BULLET = re.compile(
    rf"""\s{{0,9}}(?:>\s{{0,9}})?(?:\#{{1,6}}\s{{1,9}})?(?:{_SIGN}\s{{1,9}}|[•●▪►]|=>\s)?
    (?:\[[\ xX]?\]\s)?(?:[*_]{{0,2}}{_NUMBER})?\s{{0,9}}""",
    re.X,
)

_LETTERED = re.compile(r"\s{0,9}[*_]{0,2}([a-hA-H]|[ivIV]{1,4})[.:、．][*_]{0,2}\s{0,9}(?=\S)")

_ORDINAL = re.compile(
    r"\s{0,9}(?:[-*]\s)?(first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth|fifth|next|then|finally"
    r"|last(?:ly)?|首先|第一|其次|第二|再次|接着|然后|最后)\s?[,，:：]\s{0,9}",
    re.I,
)

_LETTER_STARTS = {"a": "b", "i": "ii"}

_SEPARATOR_ROW = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")

_ROW = re.compile(r"\s*\|.*\|\s*")

_TEXT_COLUMN = re.compile(
    r"\W*(?:(?:sub|new|next|search|rewritten)[ _-]?)?"
    r"(?:questions?|quer(?:y|ies)|phrasings?|rewrites?|rewritten|改写后"
    r"|alternatives?|variants?|子?问题|查询|改写|问法)\W*",
    re.I,
)

_QUESTION_WORDS = (
    r"(?:sub-?)?questions?|quer(?:y|ies)|phrasings?|alternatives?|versions?|variants?|passages?"
    r"|summary|key\ ?words?|answers?|steps?|results?|rewrites?|rewording|paraphrases?"
    r"|reformulations?|search(?:\ terms?)?|action\ input|outputs?"
)

_VERB = (
    r"(?:\ (?:is|are|becomes?|follows?|to\ (?:ask|search)(?:\ is|\ next)?"
    r"|(?:should|would|could|might|can|will)\ be|(?:i|you|we)\ (?:should|would|could|can)\ ask))?"
)


def label_pattern(words: str) -> re.Pattern[str]:
    """Compile the pattern of a label at the start of a line: "**Answer 2:** ", "- 1. 问题：".

    Args:
        words: The words of the label, as a verbose regular expression.

    Example:
        >>> label_pattern("answer").match("**Answer:** Tea").end()
        12
    """
    return re.compile(
        rf"""^\s{{0,9}}(?:[-*+•>\#]{{1,6}}\s{{1,9}})?(?:{_NUMBER}\s{{0,9}})?[*_【\[]{{0,3}}(?:{words})
        \s?(?:\#?\d{{1,3}}|[一二三四五六七八九十]{{1,3}})?[*_]{{0,3}}
        (?:\]?\s?[:：]|】|\](?=\s?\S)|\s?=(?=\s?["']))[*_]{{0,3}}\s{{0,9}}""",
        re.I | re.M | re.X,
    )


LABEL = label_pattern(
    rf"""(?:[^\W_](?:[^\W_]|['-]){{0,14}}[\s_]){{0,3}}(?:{_QUESTION_WORDS}){_VERB}
    |rewritten|corrected|improved|revised|assistant|user|human|did\ you\ mean|next
    |[\u4e00-\u9fff]{{0,6}}(?:问题|问法|查询|改写|关键词|摘要|段落|答案|回答)(?:应该?)?(?:是|为|如下)?
    |[\u4e00-\u9fff]{{0,4}}(?:改写|修改|优化)后|[\u4e00-\u9fff]{{0,6}}应该?问|[QA问答]"""
)
"""A label of a text that a prompt asks for."""

# "Based on this, the next question should be: ", "I would rewrite it as "
_ANNOUNCEMENT = re.compile(
    r"""(?:[^:：?？\n"“”「」*]{0,300}[.!]\s)?(?:
    (?:[\w,'’-]{1,20}\s){0,12}(?:questions?|query)\s(?:is|are|(?:should|would|could|might|can)\sbe)
    (?:\s(?:re)?(?:phrased|written|stated))?(?:\sas(?:\sfollows)?)?
    |(?:i|you|we)(?:\s(?:would|could|should|can|might|may)|['’]d)\s(?:also\s)?(?:ask|search(?:\sfor)?
      |(?:re)?(?:write|phrase|formulate|state)(?:\s(?:it|this|that|the\s(?:question|query)))?\sas)
    |did\syou\smean)
    (?:\s?[:：]\s?|\s(?=["“「『'`*]))
    |(?:new|next|rewritten|improved|final|standalone)\s(?:query|question)(?:\s[-–—]\s|[:：])""",
    re.I | re.X,
)

# A line with nothing but a label: "**Rewritten question**", "Question 2"
_LABEL_LINE = re.compile(
    r"""[\s*_\#>\[【-]{0,9}(?:(?:final|rewritten|improved|clarified|new|next|standalone|search|user)\s)?
    (?:(?:sub-?)?questions?|quer(?:y|ies)|(?:sub-?question|question|query|step|part)\s?\#?\d{1,2}
    |改写后的(?:问题|查询)|子?问题\s?(?:\d{1,2}|[一二三四五六七八九十])?|final\ answer)
    [\s*_\]】:：]{0,9}""",
    re.I | re.X,
)

QUESTION_LABEL = label_pattern(r"questions?|Q|问题?|提问")

ANSWER_LABEL = label_pattern(r"answers?|A|答案?|回答")

REMARK = label_pattern(
    r"""[(（]?(?:explanations?|reason(?:ing)?|notes?|rationale|original(?:\ question|\ query)?
    |answers?|A|thoughts?|thinking|changes(?:\ made)?|action|observation|analysis
    |confidence|language|intent|why|purpose
    |说明|解释|理由|备注|注|原因|原问题|原查询|答案?|回答|思考|分析|目的)"""
)
"""A label of a text that is no item."""

_WRAPPED = re.compile(
    r"""\*\*([^*]+)\*\*|\*([^*]+)\*|"([^"]+)"|'([^']+)'|“([^“”]+)”|‘([^‘’]+)’|「([^「」]+)」|『([^『』]+)』|`([^`]+)`
    |«\s?([^«»]+?)\s?»|\[\[([^\[\]]+)\]\]|<<([^<>]+)>>|\\boxed\{([^{}]+)\}|\$([^$]+)\$
    |\[search[:：]\s?([^\[\]]+)\]|print\((.+)\)|(?:[a-z]{1,20}[._])?(?:search|query|find|ask|retrieve|lookup)(?:[._][a-z]{1,20})?
      (?:\((?:\w{1,20}\s?=\s?)?["']([^"']+)["']\)|\(([^()"']+[?？])\)|\[([^\[\]]+[?？])\])
    |<(?:b|strong|i|em|u|p|q|span|mark|code|h[1-6])>([^<>]+)
      </(?:b|strong|i|em|u|p|q|span|mark|code|h[1-6])>""",
    re.X | re.I,
)


def without_label(text: str, label: re.Pattern[str] = LABEL) -> str:
    """Return a text without the label at its start."""
    found = label.match(text)
    return text[found.end() :] if found else text


def without_announcement(text: str) -> str:
    """Return a text without a label or an announcement of the text at its start.

    Example:
        >>> without_announcement("I know this. The next question should be: Who wrote it?")
        'Who wrote it?'
        >>> without_announcement('I would ask "Who wrote it?"')
        'Who wrote it?'
    """
    found = _ANNOUNCEMENT.match(text)
    if found is None:
        return without_label(text)
    rest = text[found.end() :].strip()
    is_whole = re.search(r"[:：–—-]\s?\Z", found[0]) is not None
    bare = rest.rstrip(".。?？") if rest[-1:] in ".。?？" else rest
    if unwrap(bare) != bare:
        return unwrap(bare)
    return rest if is_whole else text


def is_label_line(line: str) -> bool:
    """Return whether a line is only a label, such as a heading above a question."""
    return _LABEL_LINE.fullmatch(line) is not None


# "**Author:** ", "**Author** – "
_BOLD_LABEL = re.compile(r"\*\*([^*\n]{1,60}?)(?:[:：]\*\*|\*\*\s?[:：]|\*\*\s[-–—])\s{0,9}(?=\S)")


def without_bold_label(text: str) -> str:
    """Return a question without the bold words before it. Before other texts, only the bold goes.

    Example:
        >>> without_bold_label("**Author:** Who wrote it?")
        'Who wrote it?'
        >>> without_bold_label("**Green tea**: its history")
        'Green tea: its history'
    """
    found = _BOLD_LABEL.match(text)
    if found is None:
        return text
    rest = text[found.end() :]
    if re.search(r"[?？][\"'”’」*_)）]{0,3}\s{0,9}(?:[(（–—-].{0,80})?\Z", rest):
        return rest
    return f"{found[1].strip()}: {rest}"


def split_bullet(line: str) -> tuple[str, bool]:
    """Return a line without its bullet or number, and whether it had one."""
    bullet = _BULLET.match(line)
    if bullet is None:
        return line.strip(), False
    sign = bullet[0].strip(" \t*_#>") or re.match(r"\s*\*\s", line)
    return line[bullet.end() :].strip(), bool(sign)


def indent_of(line: str) -> int:
    """Return the number of spaces before a line."""
    return len(line) - len(line.lstrip())


# "`ls -la` output", "__init__ method"
_CODE_FIRST = re.compile(r"`[^`]+`\s[^`]*\w[^`]*\Z|__\w+__(?!\w)")


def strip_markup(text: str) -> str:
    """Return an item without its number, bold, quotes and full stop."""
    text = split_bullet(text)[0].strip(" \t")
    is_code = _CODE_FIRST.match(text) is not None
    text = text if is_code else text.strip(" \t*_`")
    text = unwrap(text if text.endswith(("...", "…")) else text.rstrip("。,，;；:：*_`"))
    return text[:-1] if re.search(r"[^.\s]{2}\.$", text[-3:]) else text


def unwrap(text: str) -> str:
    """Return a text without the quotes or bold around all of it."""
    while match := _WRAPPED.fullmatch(text := text.strip()):
        text = "".join(filter(None, match.groups()))
    return text


def with_bullets(lines: Sequence[str]) -> list[str]:
    """Return lines in which letters and ordinal words of a list are bullets.

    One letter may be the initial of a name, so two in sequence are required.

    Example:
        >>> with_bullets(["A. Who wrote it?", "B. Who painted it?"])
        ['- Who wrote it?', '- Who painted it?']
        >>> with_bullets(["A. Einstein lived where?"])
        ['A. Einstein lived where?']
    """
    lines = _inline_items(_announced_items(lines))
    lines = _counted_items(_signed_items(lines))
    letters = [found[1].casefold() for line in lines if (found := _LETTERED.match(line))]
    if len(letters) > 1 and _LETTER_STARTS.get(letters[0]) == letters[1]:
        lines = [_LETTERED.sub("- ", line, count=1) for line in lines]
    ordinals = [found[1].casefold() for line in lines if (found := _ORDINAL.match(line))]
    if len(ordinals) > 1 and ordinals[0] in ("first", "firstly", "首先", "第一"):
        lines = [_ORDINAL.sub("- ", line, count=1) for line in lines]
    return [*lines]


_ANNOUNCED = re.compile(r"([^\n:：]{1,100}[:：])\s{0,9}((?:\*\*)?\(?1[.)、）][^\d\s]?\s?\S.*)")

_SECOND = re.compile(r"\s{0,9}(?:\*\*)?\(?2[.)、）]")


def _announced_items(lines: Sequence[str]) -> Sequence[str]:
    """Return lines in which "Questions: 1. one" is two lines if the line below begins with 2."""
    found = _ANNOUNCED.fullmatch(lines[0]) if lines else None
    if found is None or not any(_SECOND.match(line) for line in lines[1:]):
        return lines
    return [found[1], found[2], *lines[1:]]


# "Q1) ", "Part A: ", "№ 1. ", "1st: ", "1/ ", "1.1 ", "一：", "甲、"
_COUNTED = re.compile(
    r"""\s{0,9}(?:[-*•]\s{1,4})?(?P<word>[*_(\[<【（]{0,3}
    (?:S?Q|S|No\.?|Nr\.?|№|Steps?|Part|Item|Point|Aspect|Query|(?:sub-?)?question|子?问题|步骤|查询
      |1\.|I\.)?\s?)
    (?P<count>\d{1,2}|[A-Ha-h]|[一二三四五六七八]|[甲乙丙丁戊己庚辛])(?:st|nd|rd|th)?
    (?P<end>[*_]{0,2}\s?[.:：、)\]>】）/|]{1,2}[*_]{0,2}\s{0,4}|\s[-–—]\s|\s)(?=\S)""",
    re.I | re.X,
)

_FIRST_COUNTS = {"1": "2", "a": "b", "一": "二", "甲": "乙"}


def _counted_items(lines: Sequence[str]) -> Sequence[str]:
    """Return lines in which a counted word is a bullet if the first two counts are in sequence."""
    found = [match for line in lines if (match := _COUNTED.match(line))]
    if len(found) < 2:
        return lines
    first = found[0]
    kind = (first["word"].casefold(), first["end"].strip())
    counted = [match for match in found if (match["word"].casefold(), match["end"].strip()) == kind]
    counts = [match["count"].casefold() for match in counted]
    if len(counts) < 2 or _FIRST_COUNTS.get(counts[0]) != counts[1]:
        return lines
    if not kind[0].strip() and not kind[1]:
        return lines  # "1 litre", "2 litres"
    prefixes = {match[0] for match in counted}
    return [_without_prefix(line, prefixes) for line in lines]


def _without_prefix(line: str, prefixes: Collection[str]) -> str:
    """Return a line with a bullet instead of one of some prefixes."""
    found = _COUNTED.match(line)
    if found is None or found[0] not in prefixes:
        return line
    return f"- {line[found.end() :]}"


_SIGNED = re.compile(r"\s{0,9}(?P<sign>[^\w\s])\ufe0f?\s{1,4}(?=\S)|\s{0,9}\\item\s{1,4}(?=\S)")

_LATEX = re.compile(r"\s{0,9}\\(?:begin|end)\{\w{1,20}\}\s{0,9}")


def _signed_items(lines: Sequence[str]) -> Sequence[str]:
    """Return lines in which symbols are bullets if two lines begin with a symbol."""
    lines = [line for line in lines if not _LATEX.fullmatch(line)]
    signed = [match for line in lines if (match := _SIGNED.match(line)) and _is_symbol(match)]
    if len(signed) < 2:
        return lines
    result: list[str] = []
    for line in lines:
        found = _SIGNED.match(line)
        is_item = found is not None and _is_symbol(found)
        result.append(f"- {line[found.end() :]}" if found and is_item else line)
    return result


def _is_symbol(found: re.Match[str]) -> bool:
    """Return whether the sign at the start of a line is a symbol, such as an emoji."""
    sign = found["sign"]
    return sign is None or unicodedata.category(sign) == "So" or sign in "∙⁃‣⋅"


_INLINE_NUMBER = re.compile(r"(?:^|(?<=[\s;；，,。:：]))[(（]?(\d{1,2})[.)、）](?!\d)\s?")


def _inline_items(lines: Sequence[str]) -> list[str]:
    """Return lines in which "1. one 2. two" in one line is two lines."""
    result: list[str] = []
    for line in lines:
        parts = _INLINE_NUMBER.split(line)
        numbers = parts[1::2]
        if len(numbers) > 1 and numbers == [str(at + 1) for at in range(len(numbers))]:
            if parts[0].strip():
                result.append(parts[0])
            texts = [text.strip().rstrip(";；,，") for text in parts[2::2]]
            result += [f"{number}. {text}" for number, text in zip(numbers, texts, strict=True)]
        else:
            result.append(line)
    return result


def read_table(lines: Sequence[str]) -> list[dict[str, str]] | None:
    """Return the rows of a Markdown or CSV table, by the names of its columns. None: no table.

    Example:
        >>> read_table(["| # | question |", "|---|---|", "| 1 | Who wrote it? |"])
        [{'#': '1', 'question': 'Who wrote it?'}]
    """
    filled = [line for line in lines if line.strip()]
    rows = [line for line in filled if _ROW.fullmatch(line) or _SEPARATOR_ROW.fullmatch(line)]
    bars = [line for line in rows if "|" in line]
    if len(bars) > 1:
        return _markdown_rows(bars)
    return _csv_rows(filled)


def _markdown_rows(lines: Sequence[str]) -> list[dict[str, str]]:
    cells = [
        [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")]
        for line in lines
        if not _SEPARATOR_ROW.fullmatch(line)
    ]
    has_header = len(lines) > 1 and _SEPARATOR_ROW.fullmatch(lines[1]) is not None
    if has_header or any(_TEXT_COLUMN.fullmatch(cell) for cell in cells[0]):
        header = cells[0]
        body = cells[1:]
    else:
        header = [str(number) for number in range(len(cells[0]))]
        body = cells
    return [dict(zip(header, row, strict=False)) for row in body]


def _csv_rows(lines: Sequence[str]) -> list[dict[str, str]] | None:
    if len(lines) < 2:
        return None
    delimiter = next((sign for sign in "\t;,|" if sign in lines[0]), None)
    if delimiter is None:
        return None
    without_nul = [line.replace("\0", "") for line in lines]  # Python 3.10 cannot read NUL
    try:
        table = [*csv.reader(without_nul, delimiter=delimiter, skipinitialspace=True)]
    except csv.Error:  # a cell is longer than the limit of the csv module
        return None
    header = [cell.strip() for cell in table[0]]
    if not any(_TEXT_COLUMN.fullmatch(cell) for cell in header):
        return None
    if any(len(cell.split()) > 3 for cell in header):
        return None
    return [dict(zip(header, row, strict=False)) for row in table[1:]]


def text_column(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the texts of the column of queries: by its name, else the longest texts."""
    names = [*rows[0]] if rows else []
    named = [name for name in names if _TEXT_COLUMN.fullmatch(name)]
    if named:
        name = named[0]
    else:
        name = max(names, key=lambda name: sum(len(row.get(name, "")) for row in rows), default="")
    return [row[name] for row in rows if row.get(name, "").strip()]
