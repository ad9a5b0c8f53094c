"""Parse a hypothetical passage that a model wrote to answer a query."""

from __future__ import annotations

import re

from .answer_text import clean, normalize
from .bullets import split_bullet
from .chinese_script import chinese_pattern
from .failures import failure_in
from .free_text import MAX_PASSAGE_LENGTH, content_of
from .lines import unwrap, without_label
from .tags import check_no_tag
from .unstated import is_unstated

_PASSAGE_KEYS = (
    "passage",
    "hypothetical_passage",
    "hypothetical_document",
    "hypothetical_answer",
    "document",
    "paragraph",
    "text",
    "answer",
    "response",
    "content",
    "result",
    "output",
    "段落",
    "答案",
    "回答",
)

_PASSAGE_WORDS = (
    r"(?:(?:hypothetical|short|imagined)\s)?(?:passage|document|answer|text|paragraph|response)"
    r"(?:\s\([^()\n]{1,60}\))?|(?:段落|答案|回答)(?:\s?[(（][^()（）\n]{1,60}[)）])?"
)

# A heading or a label before a passage, or the question above it.
_PASSAGE_HEAD = chinese_pattern(
    rf"""\s{{0,9}}(?:(?:question|问题)\s?[:：][^\n]{{1,400}}\n\s{{0,9}})?
    (?:(?:(?:\#{{1,6}}|title:|标题[:：])\s?[^\n]{{1,200}}|\*\*[^*\n]{{1,100}}\*\*\s{{0,4}})\n\s{{0,9}})?
    (?:(?:\#{{1,6}}\s|\*\*|【)?(?:{_PASSAGE_WORDS})(?:\*\*|】)?\s{{0,4}}\n|
      (?:\*\*)?(?:{_PASSAGE_WORDS})(?:\*\*)?\s?[:：](?:\*\*)?)?\s{{0,9}}(?=\S)""",
    re.I | re.X,
)

# An announcement with the word for a text in any of several languages, such as "Hier ist ein
# Textabschnitt:", or a label in brackets. Other sentences before a colon belong to the passage.
_PREAMBLE = chinese_pattern(
    r"\A(?=[^\n]{0,150}(?:text|absatz|abschnitt|passag|paragra|pasaje|párrafo|fragment|extrait|brano"
    r"|passo|trecho|tekst|alinea|текст|отрывок|абзац|段落|文字|文本|文章|内容|一節|テキスト|본문|구절|단락|글))"
    r"[^\n:：]{8,150}[:：]\s?\n\s{0,9}\n(?=[^\n]{40})|\A【[^【】\n]{1,12}】\s{0,9}\n",
    re.I,
)

_PASSAGE_TAIL = chinese_pattern(
    r"\n\s{0,9}(?:-{3,9}\s{1,9})?[(（*_]{0,2}(?:note\b|this\sis\sa|this\spassage|注[:：]|说明[:：])[^\n]{0,300}\Z"
    r"|\n\s{0,9}[(（]\d{1,3}\s?(?:sentences|words|句话?|字)[)）]\s{0,9}\Z",
    re.I,
)


# JSON that was truncated inside the passage. The beginning of a passage can be searched.
_CUT_OBJECT = re.compile(
    r"\s{0,9}\{\s{0,9}\"(?:hypothetical_)?(?:passage|document|text|answer|段落)\"\s{0,9}:\s{0,9}\""
    r"(?P<text>[^\"\\{}]{20,20000})",
)


_RULE = re.compile(r"^[ \t]{0,9}[-*_=]{3,20}[ \t]{0,9}$", re.M)


def _between_rules(text: str) -> str:
    """Return the text below a horizontal rule that starts a text or follows an announcement.

    The longest part is returned if there are several rules. Other rules divide the passage.
    """
    first, *rest = _RULE.split(text)
    is_announced = first.rstrip().endswith((":", "："))
    if not rest or (first.strip() and not is_announced):
        return text
    return max(rest, key=len)


def _without_frame(text: str) -> str:
    """Remove a heading, label, bullet, repeated question or remark around a passage."""
    text = without_label(without_label(text, _PREAMBLE), _PASSAGE_HEAD)
    first, _, rest = text.partition("\n")
    is_answered = rest.strip() and not re.search("[?？]", rest)
    if is_answered and first.rstrip().endswith(("?", "？")):
        text = without_label(rest, _PASSAGE_HEAD)
    text = _between_rules(_PASSAGE_TAIL.sub("", text)).strip()
    if "\n" in text:
        return text
    return unwrap(split_bullet(text)[0])


# A request for details instead of a passage.
_ASKED_BACK = chinese_pattern(
    r"(?:(?:(?:could|can|would) you (?:please )?|please )"
    r"(?:clarify|specify|tell me|provide|share|give me) [^.\n]{0,80}?"
    r"(?:\b(?:more|additional|further|some|any) (?:\w+ )?(?:details?|context|information)\b"
    r"|\b(?:the|your) (?:question|topic|context)\b|\b(?:which|what|who)\b[^.\n]{0,60}\byou\b)"
    r"|(?:请问(?:您|你)|(?:您|你)(?:说|指|问|想问)的)[^。\n]{0,60}(?:哪|什么|谁|何)"
    r"|(?:请问(?:您|你)|(?:您|你)(?:说|指|问|想问)的)(?=[^\n]*(?:[？?]\Z|请(?:提供|说明|告诉|补充))))"
    r"[^\n]{0,200}\Z",
    re.I,
)


def parse_passage(answer: str, query: str) -> str:
    """Return the hypothetical passage that a model wrote for a query.

    Raises:
        ValueError: If the reply is empty, is a question, or states that the answer is unknown.

    Example:
        >>> parse_passage("Passage: The Nile is 6,650 km long.", "How long is the Nile?")
        'The Nile is 6,650 km long.'
    """
    cut = _CUT_OBJECT.fullmatch(clean(answer, query))
    if cut is not None:
        answer = cut["text"]
    text = _without_frame(content_of(answer, query, _PASSAGE_KEYS))
    check_no_tag(text, query)
    if failure_in(text, query) is not None:
        raise ValueError(f"the answer is {failure_in(text, query)}")
    if is_unstated(text, query):
        raise ValueError("the answer says that there is no answer")
    if not re.search(r"[^\W\d_]{2}|[\u3400-\u9fff]", text):
        raise ValueError("the answer has no words")
    is_query = normalize(text).strip("?？") == normalize(query).strip("?？")
    is_asked_back = _ASKED_BACK.match(text) is not None
    if is_query or is_asked_back or ("\n" not in text and text.endswith(("?", "？"))):
        raise ValueError("the answer is a question and no passage")
    return text[:MAX_PASSAGE_LENGTH].rstrip()
