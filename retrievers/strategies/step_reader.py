"""Extract an answer and the next question from the passages that a search step found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...nodegraph.models.output.answer_text import (
    clean,
    is_no_answer,
    read_json,
    usable_text,
)
from ...nodegraph.models.output.chinese_script import chinese_pattern
from ...nodegraph.models.output.frames import is_asked
from ...nodegraph.models.output.free_text import is_unknown
from ...nodegraph.models.output.json_values import find_json, objects_in
from ...nodegraph.models.output.lines import (
    label_pattern,
    strip_markup,
    without_label,
    without_pictogram,
)
from ...nodegraph.models.output.queries import parse_sub_questions
from ...nodegraph.models.output.questions import MAX_QUERY_LENGTH, without_remark
from ...nodegraph.models.output.tables import read_table
from ...nodegraph.models.output.tags import check_no_tag, tagged_value
from ...nodegraph.models.output.verdict_words import is_yes
from ...nodegraph.models.templates import Language
from ...nodegraph.splitters.chunking import count_tokens
from ..plans.prompting import PromptReplacement
from ..prompts.step_prompts import STEP
from ..validation import whole
from .model_prompt import ModelPrompt, OnError
from .outcome import (
    StepReading,
    SubResults,
    result_key,
)
from .passages import fit_passages, neutralize

MAX_LENGTH = 4000
"""The maximum number of characters of a model's answer that are parsed, without its reasoning."""


MAX_TOKENS = 1500
"""The default maximum number of tokens of the passages in a prompt."""


MAX_ANSWER = 300
"""The maximum length of the answer of a step, in characters."""


_NO_ANSWER = {"zh": "（尚无答案）", "en": "(no answer yet)"}


_VERDICTS = {True: "Yes", False: "No"}


_NOTHING = {"zh": "（无）", "en": "(none)"}


_LABELS = {
    "known": "known|已知",
    "missing": r"(?:still\ )?missing|还?缺少?|缺失",
    "answer": r"(?:short\ )?answer|答案|回答",
    "answered": r"(?:fully\ )?(?:answered|done|是否已?回答|已回答|判断)",
    "question": (
        r"next[\ _]question|follow[-\ _]?up(?:[\ _]question)?|next|question|下一个小?问题|下一问"
    ),
}


_LABEL = label_pattern("|".join(f"(?P<{name}>{words})" for name, words in _LABELS.items()))


class StepReader(ModelPrompt):
    """A prompt that evaluates one step of a multi-step search in a single model call.

    The model answers the latest question, decides whether the original question is answered, and
    writes the next question.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        max_tokens: The maximum total length of the passages in the prompt.
        length: The function that measures the length of a passage.
        prompt: A prompt that replaces the built-in one. It has the placeholders ``{question}`` and
            ``{passages}``, and optionally ``{steps}``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.
    """

    name = "step"
    subject = "question"
    PROMPT = STEP
    # The keys for known and missing facts come first, because a small model bases its decision on
    # the text that it has just written.
    FORM = (
        '{"known": "...", "missing": "...", "question": "...", "answered": "yes or no", '
        '"answer": "..."}'
    )

    def __init__(
        self,
        llm: object,
        *,
        max_tokens: int = MAX_TOKENS,
        length: Callable[[str], int] = count_tokens,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(
            llm,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        self.max_tokens = whole(max_tokens, "max_tokens", 1)
        if not callable(length):
            raise TypeError(f"length must be a function, got {length!r:.80}")
        self.length = length

    async def read(self, question: str, steps: Sequence[SubResults]) -> StepReading:
        """Return the model's conclusions from the results of the last step.

        Args:
            question: The original question.
            steps: The search for the original question, followed by the further searches.

        Raises:
            ModelError: If the model fails, or none of its answers can be parsed.
        """
        language = self.prompt_language(question)
        further = (step for step in steps if step.question != question)
        lines = [
            f"{number}. {_line(step.question)} -> {_line(step.answer or _NO_ANSWER[language])}"
            for number, step in enumerate(further, 1)
        ]
        texts: dict[tuple[str, str], str] = {}
        for step in reversed(steps):
            texts.update({result_key(result): result.node.text for result in step.results})
        passages, _ = fit_passages(texts.values(), self.max_tokens, self.length)
        return await self.ask(
            question,
            parse_step,
            steps=neutralize("\n".join(lines)) or _NOTHING[language],
            passages=passages or _NOTHING[language],
        )


def parse_step(answer: str) -> StepReading:
    """Parse an answer that consists of JSON, labeled lines, or only a question.

    Raises:
        ValueError: If the answer contains neither a question nor a decision.
    """
    answer = (clean(answer) or answer)[:MAX_LENGTH]
    text, _ = read_json(answer, ())
    text = text or usable_text(answer)
    fields = _in_json(text) or _in_table(text) or _in_five_lines(text) or _in_lines(text)
    is_only_answer = fields.keys() == {"answer"} and text.startswith("{")
    if is_only_answer and not is_asked(str(fields["answer"])):
        raise ValueError("the JSON in the answer is cut off")
    if not fields.keys() & {"answered", "question"}:
        fields = {"question": next(iter(parse_sub_questions(answer, "", 1)), None)}
    # If the model answers "yes" but names a missing fact and a next question, the answer is treated
    # as "no". At worst, this costs one more step.
    lacking = _has_content(fields.get("missing")) and _has_content(fields.get("question"))
    answered = _is_answered(fields.get("answered")) and not lacking
    question = None if answered else as_question(fields.get("question"))
    return StepReading(as_answer(fields.get("answer")), answered, question)


# "Yes" and "nothing", as models write them if the question is in one of these languages.
_YES_ABROAD = re.compile(r"\W*(?:ja|oui|sí|si|sì|sim|да|はい|예|네|نعم)\W*", re.I)

_NOTHING_ABROAD = re.compile(
    r"\W*(?:keine?|nichts|aucune?|rien|ningun[ao]|nada|nessun[ao]|niente|nulla|nenhuma?"
    r"|geen|niets|нет|ничего|なし|ない|없음|لا شيء)\W*",
    re.I,
)


def _is_answered(value: object) -> bool:
    if isinstance(value, str) and _YES_ABROAD.fullmatch(value):
        return True
    return is_yes(value)


def _has_content(value: object) -> bool:
    if not isinstance(value, str) or not re.search(r"\w", value):
        return False
    return not _is_nothing(strip_markup(value))


def _is_nothing(text: str) -> bool:
    return is_no_answer(text) or _NOTHING_ABROAD.fullmatch(text) is not None


def _in_json(text: str) -> dict[str, object]:
    value = tagged_value(text)
    if not isinstance(value, Mapping):
        value = find_json(text)
    if not isinstance(value, Mapping):
        return {}
    fields: dict[str, object] = {}
    for record in objects_in(value):  # The fields may be the arguments of a function call.
        for key, field in record.items():
            name = _field_of(str(key).replace("_", " "))
            if name is not None and field is not None and not isinstance(field, Mapping):
                fields.setdefault(name, field)
    return fields


def _in_table(text: str) -> dict[str, object]:
    """Return the fields in a table with one field per column or one field per row."""
    rows = read_table(text.split("\n")) or []
    fields: dict[str, object] = {}
    for row in rows:
        cells = [*row.values()]
        if len(cells) == 2 and (name := _field_of(cells[0])):
            fields.setdefault(name, cells[1])
    if not fields and len(rows) == 1:
        for column, cell in rows[0].items():
            if name := _field_of(column):
                fields.setdefault(name, cell)
    return fields


def _field_of(label: str) -> str | None:
    """Return the name of the field for a label, or None if the label is unknown."""
    found = _LABEL.match(f"{label}:")
    if found is None or found.end() <= len(label):
        return None
    return found.lastgroup


# A label alone on a line, or a label before a dash.
_OTHER_LABEL = re.compile(
    r"[ \t]{0,9}(?:#{1,6}\s|[-*]\s)?[*_「]{0,2}(?P<label>[^\W\d][\w ]{1,20}?)"
    r"(?:\s[-–—]\s|」\s?|[*_]{0,2}\s{0,9}\Z)"
)

_NEXT_FIELD = chinese_pattern(
    r"(?:[;；]|\s[|｜])\s?(?=[^\W\d][\w ]{1,20}[:：])"
    r"|(?<=[.?!。？！])\s?(?=(?:Missing|Next question|Answered|Answer)[:：]"
    r"|(?:还缺|下一个问题|已回答|答案)[:：])"
)


# The label of a line in any language.
_ANY_LABEL = re.compile(r"\W{0,9}[^\W\d][^:：\n]{0,40}?\s?[:：][*_]{0,2}\s{0,9}(?P<value>.*)")

_MAX_KNOWN = 2  # Words of another language may equal the labels of a prompt.

_ORDER = ("known", "missing", "question", "answered", "answer")


def _in_five_lines(text: str) -> dict[str, object]:
    """Return the fields in five lines with labels in another language, in the requested order."""
    lines = [line for line in text.split("\n") if line.strip()]
    labels = [_ANY_LABEL.match(line) for line in lines]
    found = [label for label in labels if label is not None]
    if len(lines) != len(_ORDER) or len(found) < len(lines):
        return {}
    known = [_LABEL.match(without_pictogram(line)) for line in lines]
    if len(known) - known.count(None) > _MAX_KNOWN:
        return {}
    is_ordered = all(
        label is None or label.lastgroup in (None, name)
        for name, label in zip(_ORDER, known, strict=True)
    )
    question = found[_ORDER.index("question")]["value"]
    decision = found[_ORDER.index("answered")]["value"]
    is_question = re.search("[?？؟]", question) is not None or not _has_content(question)
    if not is_ordered or not (is_question or _is_answered(decision)):
        return {}
    return {name: label["value"] for name, label in zip(_ORDER, found, strict=True)}


def _labeled_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text. Each label starts a line and is followed by a colon."""
    for line in text.split("\n"):
        for part in _NEXT_FIELD.split(without_pictogram(line)):
            found = _OTHER_LABEL.match(part)
            if found is not None and _field_of(found["label"]):
                yield f"{found['label']}: {part[found.end() :]}"
            else:
                yield part


def _in_lines(text: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    name = ""
    for line in _labeled_lines(text):
        label = _LABEL.match(line)
        if label is not None and label.lastgroup:
            name = label.lastgroup if label.lastgroup not in fields else ""
            if name:
                fields[name] = line[label.end() :].strip()
        elif name and not fields[name]:  # the text is on the line below its label
            fields[name] = line.strip()
    return fields


# The numbers of the passages after an answer.
_CITATIONS = re.compile(
    r"(?:(?<=\s)|(?<=[\u3400-\u9fff。.]))(?:[\[【]\d{1,2}[\]】][,，、\s]?){1,9}[.。]?\Z"
)


def as_question(value: object) -> str | None:
    """Return the question in the text of a model, or None if the text contains no question.

    Raises:
        ValueError: If the question is too long or contains a tag.
    """
    if not isinstance(value, str):
        return None
    text = strip_markup(without_label(_line(value)))
    check_no_tag(text)
    text = without_remark(text)
    if not re.search(r"\w", text) or _is_nothing(text):
        return None
    if len(text) > MAX_QUERY_LENGTH:
        raise ValueError(f"the question is longer than {MAX_QUERY_LENGTH} characters")
    return text


def as_answer(value: object) -> str | None:
    """Return the short answer in the text of a model, or None if the text contains no answer."""
    value = _VERDICTS[value] if isinstance(value, bool) else value
    is_answer = isinstance(value, str | int | float)
    text = strip_markup(_CITATIONS.sub("", _line(str(value)))) if is_answer else ""
    if not re.search(r"\w", text) or is_unknown(text):
        return None
    if len(text) <= MAX_ANSWER:
        return text
    return f"{text[: MAX_ANSWER - 4]} ..."


def _line(text: str) -> str:
    return " ".join(text.split())
