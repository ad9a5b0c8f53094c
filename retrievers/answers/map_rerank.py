"""Answer from each passage on its own, all at once, and take the answer that is surest."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...nodegraph import ModelError
from ...nodegraph.models.output import FinalAnswer, json_at, parse_final_answer
from ..plans import Each, Plan, ask_and_parse
from .context import Task, shown

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "confidence": {"type": "number"}},
    "required": ["answer", "confidence"],
    "additionalProperties": False,
}

_WORD = r"(?:confidence|certainty|score|把握(?:程度)?|置信度|信心|可信度|评分|得分|分数)"

_LINE = re.compile(
    rf"^[ \t*_#>\-]*(?:\w+ )?{_WORD}(?: (?:level|score))?\s*[*_]*\s*[:：=](?P<value>[^\n]*)$",
    re.I | re.M,
)

_NUMBER = re.compile(
    r"(?P<number>-?\d+(?:\.\d+)?)\s*(?P<percent>%)?\s*(?:(?:/|out\ of|of)\s*(?P<of>\d+))?", re.X
)

_IN_WORDS = {"high": 90.0, "高": 90.0, "medium": 60.0, "moderate": 60.0, "中": 60.0}

_IN_WORDS |= {"low": 20.0, "低": 20.0}

_BARE = re.compile(r"\n[ \t]*[*(（]*(\d{1,3}(?:\.\d+)?\s*(?:%|/\s*100|分)?)[*)）]*\s*\Z")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Hold an answer, and how sure the model says it is: 0 to 100, None where it does not say."""

    said: FinalAnswer
    confidence: float | None


def map_rerank(task: Task) -> Plan[FinalAnswer]:
    """Answer from each passage on its own, and take the answer that is surest.

    Of equals it is that of the better passage; answers without a number come last.

    Raises:
        ModelError: If every call fails.
    """
    parts = task.parts(lambda source: task.fits("rank", [source]))
    parts = task.keep(parts, task.max_calls)
    task.check_room("rank")
    outcomes = yield from Each(
        [
            ask_and_parse(
                task.llm,
                task.prompt("rank", passages=shown([part])),
                read_ranked,
                task.language,
                schema=SCHEMA,
                retries=1,
                timeout=task.timeout,
            )
            for part in parts
        ]
    )
    best: tuple[float, Ranked, int] | None = None
    failed: ModelError | None = None
    for part, outcome in zip(parts, cast("list[Any]", outcomes), strict=True):
        if isinstance(outcome, ModelError):
            failed = outcome
            task.notes.append(f"[{part.number}] did not take part: {outcome}")
        elif isinstance(outcome, BaseException):
            raise outcome
        elif outcome.said.answered:
            if outcome.confidence is None:
                task.notes.append(f"the answer from [{part.number}] came without a confidence")
            weight = -1.0 if outcome.confidence is None else outcome.confidence
            if best is None or weight > best[0]:
                best = weight, outcome, part.number
    if best is None:
        if failed is not None and all(isinstance(outcome, ModelError) for outcome in outcomes):
            raise failed
        return FinalAnswer("", False)
    _, ranked, number = best
    task.certain, task.confidence = (number,), ranked.confidence
    return ranked.said


def read_ranked(answer: str) -> Ranked:
    """Read an answer and its confidence, in JSON or in lines.

    Read are "Confidence: 80", "80 %", "8/10", "0.8", "high", and a number alone in the last line.

    Raises:
        ValueError: If there is no answer, or it says nothing.

    Example:
        >>> read_ranked("Answer: Tea [1].\\nConfidence: 8/10 (clear)")
        Ranked(said=FinalAnswer(text='Tea [1].', answered=True), confidence=80.0)
        >>> read_ranked("回答：茶[1]。\\n**把握：** 90").confidence
        90.0
    """
    text, confidence = answer, None
    begin = re.match(r"(?:.*</\w+>)?\s*(?:```\w*\s*)?(?=\{)", answer, re.S)
    value = json_at(answer, begin.end()) if begin else None
    if isinstance(value, Mapping):
        known = {str(key).casefold(): each for key, each in value.items()}
        text = next((str(known[key]) for key in ("answer", "回答", "答案") if key in known), "")
        for key in ("confidence", "score", "把握", "置信度"):
            if key in known:
                confidence = read_confidence(str(known[key]))
    elif lines := list(_LINE.finditer(answer)):
        line = lines[-1]
        confidence = read_confidence(line["value"])
        text = answer[: line.start()] if answer[: line.start()].strip() else answer[line.end() :]
    elif bare := _BARE.search(answer):
        confidence = read_confidence(bare[1])
        text = answer[: bare.start()]
    said = parse_final_answer(text)
    if said.answered and not said.text:
        raise ValueError("the answer is empty")
    return Ranked(said, confidence)


def read_confidence(text: str) -> float | None:
    """Return how sure an answer is, 0 to 100; None where the text does not tell.

    Example:
        >>> [read_confidence(text) for text in ("0.85", "7 out of 10", "95%", "很高", "?", "250")]
        [85.0, 70.0, 95.0, 90.0, None, 100.0]
    """
    text = unicodedata.normalize("NFKC", text)
    found = _NUMBER.search(text)
    if found is None:
        lowered = text.casefold()
        return next((value for word, value in _IN_WORDS.items() if word in lowered), None)
    number = float(found["number"])
    if found["of"] and float(found["of"]) > 0:
        number *= 100 / float(found["of"])
    elif "." in found["number"] and 0 <= number <= 1 and not found["percent"]:
        number *= 100
    return round(min(100.0, max(0.0, number)), 2)
