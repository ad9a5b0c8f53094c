"""Parse answers in prose: passages, short answers and final answers."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from ..templates import Language
from .answer_text import clean, is_no_answer, read_text
from .chinese_script import chinese_pattern
from .failures import failure_in, is_blank_value, is_error_value
from .json_values import TEXT_KEYS
from .lines import unwrap, without_label
from .refusals import MAX_REFUSAL_LENGTH, is_refusal
from .tags import leftover_tag
from .thoughts import CONTROL_TOKEN, may_begin_with_thoughts, without_leading_thoughts
from .unstated import is_unstated

MAX_PASSAGE_LENGTH = 2000
"""The maximum length in characters of a passage from a model. Longer passages are truncated."""

_NO = chinese_pattern(r"[\s*_\"'“”「」`]*(?:no|没有)[\s*_\"'“”「」`.。!！]*", re.I)


def parse_partial_answer(answer: str) -> str | None:
    """Return the answer that a model found in passages, or None if the passages do not contain it.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> parse_partial_answer("Answer: Cao Xueqin"), parse_partial_answer("资料中没有提到。")
        ('Cao Xueqin', None)
    """
    if not re.search(r"\w", text := clean(answer)):
        raise ValueError("the answer is empty")
    if _NO.fullmatch(text):
        return text
    try:
        text = content_of(answer)[:MAX_PASSAGE_LENGTH].rstrip()
    except ValueError:  # The answer is a refusal.
        return None
    if not text or is_unknown(text):
        return None
    return text


def is_unknown(text: str) -> bool:
    """Return whether a cleaned answer means that the passages do not answer the question.

    "No" and "没有" count as answers here, unlike in lists, in which they mean that there is nothing
    to list.

    Example:
        >>> is_unknown("Not mentioned in the passages."), is_unknown("Unknown Pleasures")
        (True, False)
        >>> [is_unknown(text) for text in ("None.", "No.", "没有")]
        [True, False, False]
    """
    if _NO.fullmatch(text):
        return False
    return is_no_answer(text) or is_unstated(text)


def content_of(answer: str, query: str = "", keys: Sequence[str] = TEXT_KEYS) -> str:
    """Return an answer without its label and quotation marks.

    Errors are raised as in ``read_json``.
    """
    text = read_text(answer, keys, query)
    return unwrap(without_label(text).strip().strip("`")).removesuffix("**")


NO_ANSWER_SIGNALS: Mapping[Language, str] = MappingProxyType({"zh": "无答案", "en": "NO_ANSWER"})
"""The keywords that prompts request from the model if the passages do not answer the question."""

_OPEN = r"[【「\[(（*`\"'“<]{0,4}"

_SHUT = r"[】」\])）*`\"'”>。.!！\s]{0,8}"

_ONLY_SIGNAL = chinese_pattern(rf"\s*{_OPEN}(?:无答案|no[_ ]answer){_SHUT}\Z", re.I)

_LEADING_SIGNAL = chinese_pattern(
    rf"\s*{_OPEN}(?:NO_ANSWER\b|无答案(?=[】」\])）*`。.！!，,：:；;\n])){_SHUT}[，,：:；;—–-]?\s*"
)

_TRAILING_SIGNAL = chinese_pattern(rf"{_OPEN}(?:(?<!\w)NO_ANSWER|无答案){_SHUT}\Z")

_MAX_ERROR = 10_000  # maximum number of characters of an error message in JSON

_MAX_SIGNAL = 40  # maximum number of characters of a keyword, including brackets and punctuation

# Matches a tag around the whole answer, and tokens of a chat template before or after it.
_WRAPPER = r"(?:answer|final_answer|response|final_response|output|result|回答|最终回答|答案)"

_HEAD = chinese_pattern(rf"(?:\s*(?:<{_WRAPPER}>|{CONTROL_TOKEN.pattern}))+\s*", re.I)

_TAIL = chinese_pattern(rf"(?:\s*(?:</{_WRAPPER}>|{CONTROL_TOKEN.pattern}))+\s*\Z", re.I)

# Matches the end of a text if later chunks may turn it into a keyword or into the end of the
# reasoning.
_UNCERTAIN = chinese_pattern(
    rf"(?:\n[ \t]{{0,9}}[<\[【◁][^<>\n]{{0,40}}|(?<=\S)(?:\[/|【/|◁/?|</)[a-zA-Z:_思考]{{0,40}}"
    rf"|{_OPEN}(?:\s*(?:</{_WRAPPER}>|{CONTROL_TOKEN.pattern})){{0,4}}\s*<[/|｜a-zA-Z_回答最终案]{{0,40}}"
    rf"|{_OPEN}(?:(?:[NO_ANSWER]{{1,9}}|无答?案?){_SHUT})?)\Z"
)

_MAX_UNCERTAIN = 160  # maximum number of characters


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The final answer of a model to the user's question.

    Attributes:
        text: The text of the answer, without the model's reasoning.
        answered: Whether the model answered the question. It is False if the model replied with the
            keyword for "no answer", or if the text is a refusal, an error message, or a statement
            that the answer is unknown.
        problem: A description of the text if it is not an answer but, for example, a refusal.
            Otherwise it is None.
    """

    text: str
    answered: bool
    problem: str | None = field(default=None, repr=False)


def _problem_of(text: str, query: str) -> str | None:
    """Return the kind of failure that a text represents, or None if it may be an answer."""
    if is_blank_value(text):
        return "an empty value"
    if is_refusal(text):
        return "a refusal"
    is_json = text.lstrip()[:1] in ("{", "[")
    if is_json and len(text) <= _MAX_ERROR:
        with suppress(ValueError, RecursionError):
            if is_error_value(json.loads(text)):
                return "the error of a server"
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            if is_error_value(ast.literal_eval(text)):  # as printed by Python
                return "the error of a server"
    if leftover_tag(text, query) == text.strip():
        return "a tag"
    failure = failure_in(text, query)
    if failure == "a URL":  # A URL may be the correct answer.
        return None
    return failure


def parse_final_answer(answer: str, query: str = "") -> FinalAnswer:
    """Parse the complete final answer of a model.

    The keyword for "no answer" is recognized if it is the whole answer, its beginning or its last
    sentence. Refusals, server errors, web pages, ``null`` and sentences such as "The passages do
    not mention it" do not count as answers.

    Args:
        answer: The text of the answer.
        query: The user's question. Text that occurs in it is not treated as a failure.

    Example:
        >>> parse_final_answer("<think>Nothing here.</think>NO_ANSWER. Ask the zoo.")
        FinalAnswer(text='Ask the zoo.', answered=False)
        >>> parse_final_answer("这道题无答案。")
        FinalAnswer(text='这道题无答案。', answered=True)
    """
    text, has_signal = _without_head(answer)
    tail = _TAIL.search(text)
    if tail is not None:
        text = text[: tail.start()]
    if _ONLY_SIGNAL.match(text):
        return FinalAnswer("", False)
    problem = _problem_of(text, query)
    if problem is not None:
        if is_blank_value(text):
            return FinalAnswer("", False, problem)
        return FinalAnswer(text.strip(), False, problem)
    body = text
    signal = _TRAILING_SIGNAL.search(text, max(0, len(text) - _MAX_SIGNAL))
    if signal is not None:
        before = text[: signal.start()].rstrip()
        has_break = "\n" in text[len(before) : signal.start()]
        is_sentence = has_break or before.endswith(tuple("。.!！?？"))
        if is_sentence or NO_ANSWER_SIGNALS["en"] in signal[0]:
            body = before
    is_answered = not has_signal and body == text
    said = _json_answer(body)
    if is_answered and (said is None or is_unstated(said, query)):
        return FinalAnswer(body.strip(), False, "a statement that the answer is unknown")
    return FinalAnswer(body.strip(), is_answered)


def _json_answer(text: str) -> str | None:
    """Return the answer in a JSON object with an answer, which may be null, or the whole text."""
    if text.lstrip()[:1] != "{" or len(text) > _MAX_ERROR:
        return text
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        keys = [key for key in _ANSWER_KEYS if key in value]
        inner = value[keys[0]] if keys else text
        if inner is None or isinstance(inner, str):
            return inner
    return text


_ANSWER_KEYS = ("answer", "final_answer", "response", "答案", "回答")


def _without_head(answer: str) -> tuple[str, bool]:
    """Remove the reasoning and a keyword for "no answer" from the start of an answer.

    The second value is True if the keyword was found.
    """
    text = without_leading_thoughts(answer).lstrip()
    head = _HEAD.match(text)
    if head is not None:
        text = text[head.end() :]
    signal = _LEADING_SIGNAL.match(text)
    if signal is None:
        return text, False
    return text[signal.end() :], True


def _certain_text(answer: str) -> str:
    """Return the part of an incomplete answer that later chunks cannot change."""
    if may_begin_with_thoughts(answer):
        return ""
    text = _without_head(answer)[0].rstrip()
    if may_begin_with_thoughts(text):  # A tag around the answer is incomplete.
        return ""
    tail = _TAIL.search(text)
    if tail is not None:
        text = text[: tail.start()]
    if len(text) <= MAX_REFUSAL_LENGTH and is_blank_value(text):
        return ""
    if len(text) <= _MAX_SIGNAL:
        words = re.sub(r"[\s*_:：]+", " ", text.lstrip(" \t\r\n【「[(（*`\"'“<")).strip().casefold()
        signals = ("no answer", NO_ANSWER_SIGNALS["zh"])
        if _ONLY_SIGNAL.match(text) or any(signal.startswith(words) for signal in signals):
            return ""
    # A keyword may precede the start of a tag, as in "NO_ANSWER<|im_end".
    return _without_uncertain_end(_without_uncertain_end(text)).rstrip()


def _without_uncertain_end(text: str) -> str:
    """Remove the end of a text that may become a keyword, a tag or the end of the reasoning."""
    uncertain = _UNCERTAIN.search(text, max(0, len(text) - _MAX_UNCERTAIN))
    if uncertain is None:
        return text
    return text[: uncertain.start()]


class FinalAnswerParser:
    """A parser for an answer that is streamed in chunks.

    The concatenation of the returned texts equals the ``text`` that ``parse_final_answer`` returns.
    The only exception is reasoning without an opening tag, which cannot be recognized until its end
    is found.

    Example:
        >>> parser = FinalAnswerParser()
        >>> [parser.feed(chunk) for chunk in ("<thi", "nk>Hm.</think>", "Te", "a", ". ")]
        ['', '', 'Te', 'a', '.']
        >>> parser.close()
        ''
    """

    def __init__(self, query: str = "") -> None:
        self._query = query
        self._answer = ""
        self._returned = ""

    def feed(self, chunk: str) -> str:
        """Add a chunk, and return the additional text that later chunks cannot change."""
        self._answer += chunk
        return self._new(_certain_text(self._answer))

    def close(self) -> str:
        """Finish parsing, and return the remaining text."""
        text = parse_final_answer(self._answer, self._query).text
        body = _without_head(self._answer)[0]
        if text and self._returned.startswith(text) and not body.startswith(self._returned):
            return f"\n\n{text}"  # The text that was returned before was part of the reasoning.
        return self._new(text)

    def _new(self, text: str) -> str:
        """Return the part of a text that was not returned before.

        If the text returned before was reasoning without an opening tag, the whole text is
        returned.
        """
        if self._returned.startswith(text):  # The end of the text is no longer certain.
            return ""
        returned = self._returned
        self._returned = text
        if text.startswith(returned):
            return text[len(returned) :]
        return f"\n\n{text}"
