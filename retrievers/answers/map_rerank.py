"""Answer from each passage by itself, and choose the answer that the model is surest of."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...nodegraph.models.output.final_answer import FinalAnswer, parse_final_answer
from ...nodegraph.models.output.json_values import json_at
from ..plans.plan import Plan
from ..plans.prompting import ask_and_parse
from .context import AnswerContext, format_sources

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "confidence": {"type": "number"}},
    "required": ["answer", "confidence"],
    "additionalProperties": False,
}

_WORD = r"(?:confidence|certainty|score|把握(?:程度)?|置信度|信心|可信度|评分|得分|分数)"

_LINE = re.compile(
    rf"^[ \t*_#>\-]{{0,12}}(?:\w{{1,20}} )?{_WORD}(?: (?:level|score))?"
    r"\s{0,9}[*_]{0,3}\s{0,9}[:：=](?P<value>[^\n]*)$",
    re.I | re.M,
)

_NUMBER = re.compile(
    r"""(?P<number>-?\d{1,20}(?:\.\d{1,20})?)\s{0,9}(?P<percent>%)?\s{0,9}
    (?:(?:/|out\ of|of)\s{0,9}(?P<of>\d{1,20}))?""",
    re.X,
)

_IN_WORDS = {"high": 90.0, "高": 90.0, "medium": 60.0, "moderate": 60.0, "中": 60.0}

_IN_WORDS |= {"low": 20.0, "低": 20.0}

_LAST_LINE = re.compile(
    r"\n[ \t]{0,9}[*(（]{0,3}"
    r"(\d{1,3}(?:\.\d{1,9})?\s{0,9}(?:%|/\s{0,9}100|分)?)[*)）]{0,3}\s{0,9}\Z"
)


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """Hold an answer, and how sure the model says it is: 0 to 100, None where it does not say."""

    answer: FinalAnswer
    confidence: float | None


def map_rerank(context: AnswerContext) -> Plan[FinalAnswer]:
    """Answer from each passage by itself, and choose the answer that the model is surest of.

    Of equals it is that of the better passage; answers without a number come last.

    Raises:
        ModelError: If every call fails.
    """
    parts = context.number_parts(lambda source: context.has_room("rank", [source]))
    parts = context.limit_parts(parts, context.settings.max_calls)
    context.check_room("rank")
    ranked = yield from context.gather(
        [
            ask_and_parse(
                context.llm,
                context.prompt("rank", passages=format_sources([part])),
                parse_ranked_answer,
                context.language,
                schema=SCHEMA,
                timeout=context.settings.timeout,
            )
            for part in parts
        ],
        [f"[{part.number}]" for part in parts],
    )
    best = FinalAnswer("", False)
    best_confidence = -2.0
    for part, candidate in zip(parts, ranked, strict=True):
        if candidate is None or not candidate.answer.answered:
            continue
        if candidate.confidence is None:
            context.notes.append(f"the answer from [{part.number}] came without a confidence")
        confidence = -1.0 if candidate.confidence is None else candidate.confidence
        if confidence > best_confidence:
            best, best_confidence = candidate.answer, confidence
            context.certain, context.confidence = (part.number,), candidate.confidence
    return best


def parse_ranked_answer(answer: str) -> RankedAnswer:
    """Parse an answer and its confidence, in JSON or in lines.

    A confidence is "Confidence: 80", "80 %", "8/10", "0.8", "high", or a last line that is a
    number.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> parse_ranked_answer("Answer: Tea [1].\\nConfidence: 8/10 (clear)")
        RankedAnswer(answer=FinalAnswer(text='Tea [1].', answered=True), confidence=80.0)
        >>> parse_ranked_answer("回答：茶[1]。\\n**把握：** 90").confidence
        90.0
    """
    text, confidence = answer, None
    begin = re.match(r"(?:.*</\w+>)?\s*(?:```\w*\s*)?(?=\{)", answer, re.S)
    value = json_at(answer, begin.end()) if begin else None
    if isinstance(value, Mapping):
        fields = {str(name).casefold(): str(content) for name, content in value.items()}
        text = next((fields[name] for name in ("answer", "回答", "答案") if name in fields), "")
        for name in ("confidence", "score", "把握", "置信度"):
            if name in fields:
                confidence = parse_confidence(fields[name])
    elif lines := list(_LINE.finditer(answer)):
        line = lines[-1]
        confidence = parse_confidence(line["value"])
        text = answer[: line.start()] if answer[: line.start()].strip() else answer[line.end() :]
    elif last_line := _LAST_LINE.search(answer := answer.rstrip()):
        confidence = parse_confidence(last_line[1])
        text = answer[: last_line.start()]
    final = parse_final_answer(text)
    if final.answered and not final.text:
        raise ValueError("the answer is empty")
    return RankedAnswer(final, confidence)


def parse_confidence(text: str) -> float | None:
    """Return how sure an answer is, 0 to 100; None where the text has none.

    Example:
        >>> texts = "0.85", "7 out of 10", "95%", "很高", "?", "250"
        >>> [parse_confidence(text) for text in texts]
        [85.0, 70.0, 95.0, 90.0, None, 100.0]
    """
    text = unicodedata.normalize("NFKC", text)
    match = _NUMBER.search(text)
    if match is None:
        lowered = text.casefold()
        return next((value for word, value in _IN_WORDS.items() if word in lowered), None)
    number = float(match["number"])
    if match["of"] and float(match["of"]) > 0:
        number *= 100 / float(match["of"])
    elif "." in match["number"] and 0 <= number <= 1 and not match["percent"]:
        number *= 100
    return round(min(100.0, max(0.0, number)), 2)
