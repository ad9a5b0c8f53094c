"""Read the yes-or-no decisions in numbered lines, in labeled lines or in a list in one line."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from .chinese_script import chinese_pattern
from .lines import label_pattern, without_label
from .verdict_words import is_bare_verdict, read_decision, read_verdict

MAX_LINES = 5_000
"""The maximum number of lines of an answer that are read."""

VERDICT_WORDS = (
    r"verdict|decision|judge?ment|supported|is\ supported|relevant|correct|conclusion|label|answer"
    r"|result|assessment|evaluation|yes\s?/\s?no|判断(?:结果)?|结论|结果|判定"
    r"|裁决|是否\w{1,8}|评[价估]|答案|回答"
)
"""A pattern for the words of a label before a decision, as a verbose regular expression."""

_SAID = r"[*_】\])]{0,3}\s?(?:[:=?]|】|=>|->|→)[*_]{0,3}\s{0,9}(?P<said>[^\n]{0,400})"

# A label at the start of a line or after a sentence: "… is not there. Verdict: no".
_LABEL = chinese_pattern(
    rf"""(?:(?:^|(?<=[.。;；!)|—–])|(?<=\s-))[\s*_\[(【\#>|-]{{0,9}}(?:final\s)?(?:{VERDICT_WORDS})
    |(?<=\s)[*_(\[]{{0,3}}(?:final\s)?(?:verdict|decision|judge?ment|判断|结论)){_SAID}""",
    re.I | re.M | re.X,
)

_REASON_LABEL = label_pattern(
    r"reason(?:ing)?|explanation|quote|evidence|rationale|justification|理由|原因|依据|引文|原文|解释"
)

# Matches "2. ", "**Statement 2:** ", "第二条：", "S2 – ", "[2] ".
MARK = chinese_pattern(
    r"""[\s>\#*_|\-–•·+\[(【{"'`]{0,12}
    (?:(?:the\ )?(?:statement|claim|sentence|assertion|item|fact|point|answer|verdict|number|id
        |no\.?|nr\.?|[scq](?=\d))[\s_*"']{0,3}\#?\s?:?\s?
      |\#|第\s?|(?:陈述|声明|语句|句子|命题|论断|说法
        |编号|序号|结论)\s?:?\s?)?
    (?P<number>\d{1,3}|[一二三四五六七八九十]{1,3})(?!\d|\.\d|[%年月日])
    (?:\s?(?:条|句|个|项|点)(?:陈述|声明|说法)?)?
    (?P<end>["'`*_]{0,3}\s?(?:[.:、)\]】>|,]|[-–—=→]{1,2}>?\s|\Z|is\ |(?=[✓✔✅√✗✘❌✖]))|\s{1,9})""",
    re.I | re.X,
)
"""A pattern for the number of a statement at the start of a line.

Its groups are ``number`` and ``end``, the characters after the number.
"""

# A decision at the end of a line: "… – yes", "… (not supported)".
_AT_END = re.compile(
    r"(?:(?<!\w)-|[–—→➜➡:=|>(\[【;；]|[.。!](?=\s|[^\W\da-z]))[\s*_`\"'“”]{0,9}"
    r"(?P<said>[^\s\-–—→➜➡:=|>()\[\]【】;；.。!?][^\-–—→➜➡:=|>()\[\]【】;；.。!?\n]{0,40})"
    r"[\s*_`\"'“”)\]】.。!|]{0,9}\Z",
    re.I,
)

_SURELY = r"(?:(?:fully|clearly|directly|explicitly|completely|entirely|therefore|thus|also)\s)?"

# A sentence about the statement: "so the statement is not supported".
_STATED = chinese_pattern(
    rf"""\b(?:is|are|was)\s{_SURELY}(?P<said>(?:not\s{_SURELY})?(?:un)?supported)\b
    |\b(?:statement|claim)(?:\s\d{{1,3}})?\sis\s{_SURELY}
      (?P<judged>(?:not\s)?(?:true|false|correct|incorrect|accurate|inaccurate|contradicted))\b
    |\b(?:passages?|context|text|sources?|document)\s(?:\[\d{{1,3}}\]\s)?
      (?P<source>{_SURELY}(?:supports?|confirms?|contradicts?)
        |(?:do(?:es)?\snot|do(?:es)?n['’]t)
          \s(?:support|confirm|mention|say|state|specify|contain|provide))\b
    |\b(?:answer|verdict|decision|conclusion|judge?ment)\s(?:is|would\sbe)\s["'*]{{0,3}}
      (?P<direct>yes|no|true|false)(?=["'*\s]{{0,3}}(?:[.,;!]|\Z))
    |(?:因此|所以|故|[该此]陈述|[,，。])
      (?P<zh>(?:[不未]|没有|未能)?(?:被|得到)?支持)(?=[,，。\s]|\Z)""",
    re.I | re.X,
)

# Words that make a sentence about the statement unclear.
_DOUBT = chinese_pattern(
    r"\b(?:not?|never|neither|whether|if|false|wrong|but|however|only|part\w*|most\w*|would|could"
    r"|might|may|cannot|hardly|barely|unless|except)\b|n['’]t\b|[?？]|但|不|若|如果|是否|部分|没|未|可能",
    re.I,
)

_CHINESE_DIGITS = "零一二三四五六七八九十"


class NumberedVerdict(NamedTuple):
    """A decision about a numbered statement.

    Attributes:
        number: The number of the statement, or None if the answer has no number.
        yes: Whether the decision is positive, or None if it is unclear.
        reason: The quotation or reason.
    """

    number: int | None
    yes: bool | None
    reason: str


# A list in one line, with separators that do not occur inside a decision.
_LEAD = chinese_pattern(
    rf"\A[\s*_]{{0,5}}(?:[^:\n]{{0,60}}\b)?(?:{VERDICT_WORDS})(?:s|列表)?[*_]{{0,3}}\s?:[\s*_]{{0,5}}",
    re.I | re.X,
)

_PART = re.compile(r"\s?(?:[,;、；|\n]|\s/\s|\s{2,9}|\t)\s?(?:and\s)?")

_PART_NUMBER = chinese_pattern(
    r"[\[(]?(?:statement|claim|陈述|第|[sc](?=\d))?\s?\#?(\d{1,3})[\])]?\s?条?\s?[.:)=、-]?>?\s?(?=\D)",
    re.I,
)

# Three or more decisions. "Yes/no" is a choice and not two decisions.
_SLASHED = re.compile(r"[^\W\d]{1,20}(?:/[^\W\d]{1,20}){2,99}")

# The first word of a decision that is given twice: "No, not supported".
_REPEATED = re.compile(r"\b(?:yes|no),\s(?=(?:not\s|un)?supported\b)", re.I)

_BARE_RUN = re.compile(r"(?:(?:yes|no|true|false|y|n)\s){1,99}(?:yes|no|true|false|y|n)", re.I)


def listed_verdicts(text: str) -> list[NumberedVerdict] | None:
    """Return the decisions in lines, or in a line such as "[yes, no]", without further words.

    If no line or several lines consist of such lists, None is returned.
    """
    plain = unicodedata.normalize("NFKC", text.replace("\ufe0f", "")).strip()
    lines = plain.split("\n")[:MAX_LINES]
    alone = [_bare(line.strip(" \t*_`.[]")) for line in lines if line.strip()]
    if len(alone) > 1 and all(verdict is not None for verdict in alone):
        return [verdict for verdict in alone if verdict is not None]
    found: list[list[NumberedVerdict]] = []
    for line in lines:
        body = _LEAD.sub("", line).strip(" \t*_`.。()[]{}【】\"'")
        body = _REPEATED.sub("", body)
        if _SLASHED.fullmatch(body):
            body = body.replace("/", ", ")
        if _BARE_RUN.fullmatch(body):
            body = ", ".join(body.split())
        if re.fullmatch(r"[✓✔✅☑√✗✘❌✖×\s]{2,200}", body):
            body = ", ".join("".join(body.split()))
        parts = [part.strip(" *_`\"'“”") for part in _PART.split(body)]
        if len(parts) < 2:
            continue
        verdicts = [verdict for part in parts if (verdict := _bare(part)) is not None]
        is_numbered = {verdict.number is not None for verdict in verdicts}
        if len(verdicts) == len(parts) and len(is_numbered) == 1:
            found.append(verdicts)
    if len(found) != 1:
        return None
    return found[0]


def _bare(part: str) -> NumberedVerdict | None:
    """Return the decision of a text that consists of a decision and perhaps its number."""
    number = _PART_NUMBER.match(part)
    said = part[number.end() :] if number is not None else part
    if not is_bare_verdict(said):
        return None
    yes, _ = read_verdict(said)
    if number is None:
        return NumberedVerdict(None, yes, "")
    return NumberedVerdict(int(number[1]), yes, "")


def number_of(value: Any) -> int | None:
    """Return the number of a statement, or None if the value is not a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    digits = _NUMBER.fullmatch(value)
    if digits is not None:
        return int(digits[1])
    if value in _CHINESE_DIGITS and len(value) == 1:
        return _CHINESE_DIGITS.index(value)
    if value[:1] == "十" and value[1:2] in _CHINESE_DIGITS:
        return 10 + _CHINESE_DIGITS.index(value[1:2])
    return None


_NUMBER = chinese_pattern(
    r"\W{0,3}(?:statement|claim|sentence|item|s|c|no\.?|陈述|第)?[\s_#]{0,3}(\d{1,3})"
    r"\s?条?\W{0,3}",
    re.I,
)


def verdicts_of_blocks(lines: Sequence[str], count: int) -> list[NumberedVerdict]:
    """Return the decisions in blocks of lines that begin with the numbers 1 to ``count``."""
    blocks: list[tuple[int, list[str]]] = []
    for line in lines:
        number, rest = _marked(line)
        if number is not None:
            blocks.append((number, [rest]))
        elif blocks:
            blocks[-1][1].append(line)
    if sorted(number for number, _ in blocks) != [*range(1, count + 1)]:
        return []
    return [NumberedVerdict(number, *decide(block)) for number, block in blocks]


_LETTER = re.compile(r"\A[\s(*_>-]{0,9}[a-hA-H][.)]\s{1,4}")


def _marked(line: str) -> tuple[int | None, str]:
    """Return the number of a statement at the start of a line, and the rest of the line."""
    mark = MARK.match(line)
    if mark is None:
        return None, _LETTER.sub("", line)
    rest = line[mark.end() :]
    if mark["end"].isspace() and read_decision(rest).yes is None:
        return None, line
    return number_of(mark["number"]), rest


_OVERALL = chinese_pattern(
    r"[\s*_#>]{0,9}(?:overall|in\ (?:total|summary)|summary|总[体结计]|综上)", re.I
)


def decide(lines: Sequence[str]) -> tuple[bool | None, str]:
    """Return the decision in the lines about one statement, and its reason."""
    kept = [line for line in lines if not _OVERALL.match(line)]
    yes, said = _decision_of(kept)
    reasons = [without_label(line, _REASON_LABEL) for line in kept if _REASON_LABEL.match(line)]
    is_unclear = yes is None and said is None
    if is_unclear or not reasons or not reasons[0]:
        return yes, said or ""
    return yes, reasons[0]


def _decision_of(lines: Sequence[str]) -> tuple[bool | None, str | None]:
    """Return the decision in lines, and the words after it.

    The words are None if the first line revokes its decision, as in "Yes, but ...".
    """
    text = "\n".join(lines)
    first = read_decision(lines[0]) if lines else read_decision("")
    is_first = first.yes is not None and first.is_alone
    labeled = _labeled(text, is_bare=is_first)
    if labeled:
        said = [(first.yes, first.reason)] if is_first else []
        return _agreed([*said, *labeled]), (said or labeled)[0][1]
    if first.yes is None and first.is_alone:
        return None, None
    unquoted = [_QUOTATION.sub("", line) for line in lines] if is_first else lines
    ends = [(end, "") for line in unquoted if (end := _at_end(line)) is not None]
    if is_first:
        return _agreed([(first.yes, ""), *ends[:1]]), first.reason
    if ends:
        return _agreed(ends), ""
    if first.yes is not None:
        return first.yes, first.reason
    others = [read_verdict(line) for line in lines[1:] if not _REASON_LABEL.match(line)]
    clear = [(yes, words) for yes, words in others if yes is not None]
    if clear:
        return _agreed(clear), clear[0][1]
    return _agreed(_stated(text)), ""


def _agreed(decisions: Sequence[tuple[bool | None, str]]) -> bool | None:
    """Return the decision if all decisions are equal, otherwise None."""
    found = {yes for yes, _ in decisions}
    return found.pop() if len(found) == 1 else None


# Words in quotation marks, which may end with a word such as "no".
_QUOTATION = re.compile('["“「][^"“”「」]*["”」]')


def _labeled(text: str, *, is_bare: bool = False) -> list[tuple[bool | None, str]]:
    """Return the decisions after labels, such as "Verdict: yes".

    Args:
        text: The lines about one statement.
        is_bare: Whether labels before other words than a decision are ignored, such as "Result: no
            survivors".
    """
    labels = [*_LABEL.finditer(text)]
    if is_bare:
        labels = [label for label in labels if is_bare_verdict(label["said"])]
    said = [read_decision(label["said"]) for label in labels]
    return [(decision.yes, decision.reason) for decision in said]


def _at_end(line: str) -> bool | None:
    """Return the decision at the end of a line, or None if the line ends with other words."""
    if _REASON_LABEL.match(line):
        return None
    found = _AT_END.search(line)
    if found is None or not is_bare_verdict(found["said"]):
        return None
    return read_verdict(found["said"])[0]


def _stated(text: str) -> list[tuple[bool | None, str]]:
    """Return the decisions in sentences such as "The statement is supported"."""
    found: list[tuple[bool | None, str]] = []
    for sentence in _SENTENCE.split(text):
        for match in _STATED.finditer(sentence):
            said = next(group for group in match.groups() if group is not None)
            if match["source"]:
                said = _of_source(said)
            yes = read_verdict(said)[0]
            if yes and _DOUBT.search(sentence):
                yes = None
            found.append((yes, ""))
    return found


_SENTENCE = re.compile(r"(?<=[.!?])\s|(?<=[。！？\n])")


def _of_source(words: str) -> str:
    """Return the decision in words about the passage, such as "does not mention"."""
    is_negative = re.search(r"not\s|n['’]t\s|contradict", words) is not None
    return "no" if is_negative else "yes"


def verdicts_of_lines(lines: Sequence[str]) -> list[NumberedVerdict]:
    """Return the decisions in lines without consecutive numbers."""
    labeled = _labeled("\n".join(lines))
    if labeled:
        return [NumberedVerdict(None, yes, reason) for yes, reason in labeled]
    verdicts: list[NumberedVerdict] = []
    for line in lines:
        number, rest = _marked(line)
        yes, reason, is_alone = read_decision(rest)
        if yes is None and not is_alone:
            yes = _at_end(rest)
        if yes is not None or is_alone:
            verdicts.append(NumberedVerdict(number, yes, reason))
    if not verdicts:
        stated = [found for line in lines if (found := _stated(line))]
        verdicts = [NumberedVerdict(None, _agreed(found), "") for found in stated]
    numbered = [verdict for verdict in verdicts if verdict.number is not None]
    return numbered or verdicts
