"""What ``LLMExtractor`` asks a model, in Chinese and English."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from .language import Language

Task = Literal["summary", "keywords", "questions", "qa"]

EDITION = 1
"""Count up when prompts or parsing are changed so that all groups should be made again."""

LIMITS: Mapping[Task, int] = MappingProxyType(
    {"summary": 3, "keywords": 8, "questions": 5, "qa": 5}
)
"""How many sentences, keywords, questions or pairs are asked for."""

_CHINESE: Mapping[Task, str] = {
    "summary": """\
请用中文概括下面的文本，写一段比原文短得多的摘要，最多 {limit} 句话，不要照抄原文。
保留最重要的人名、地名、数字和日期，只写文本中有的内容。直接输出摘要，不要加标题或说明。

文本：
<text>
{text}
</text>

摘要：""",
    "keywords": """\
请从下面的文本中提取最多 {limit} 个关键词：最能代表内容的名称、术语和概念，
用中文，尽量使用原文的写法。只输出一行，关键词之间用逗号分隔，不要编号，不要解释。如果没有，只输出：无

文本：
<text>
{text}
</text>

关键词：""",
    "questions": """\
请根据下面的文本用中文提出最多 {limit} 个不同的问题，答案必须能在文本中找到。
每个问题都要写明所问的对象，离开文本也能看懂，不要出现“文中”“本文”“它”等说法。
每行一个问题，以问号结尾，不要写答案。如果无法提问，只输出：无

文本：
<text>
{text}
</text>

问题：""",
    "qa": """\
请根据下面的文本用中文写出最多 {limit} 个不同的问答对，答案必须来自文本，完整而简明。
每个问题都要写明所问的对象，离开文本也能看懂，不要出现“文中”“本文”“它”等说法。
格式如下，不要输出其他内容：
问：（问题）
答：（答案）
如果无法提问，只输出：无

文本：
<text>
{text}
</text>

问答对：""",
}
_ENGLISH: Mapping[Task, str] = {
    "summary": """\
Summarize the text below in your own words, {in_language}: at most {limit} sentences, and much
shorter than the text. Keep the most important names, places, numbers and dates, and say only what
the text says. Write the summary itself, without a heading or remarks.

The text:
<text>
{text}
</text>

Summary:""",
    "keywords": """\
Extract at most {limit} keywords from the text below: the names, terms and concepts that stand for
it best, {in_language}, as the text writes them. Write them in one line with commas between them,
without numbers or explanations. If there are none, write only: NONE

The text:
<text>
{text}
</text>

Keywords:""",
    "questions": """\
Write at most {limit} different questions that the text below answers, {in_language}. Name what is
asked about in every question, so that it is understood without the text: "How long is the Nile?",
never "How long is it?" or "What does the text say?". One question a line, ending with a question
mark, without answers. If nothing can be asked, write only: NONE

The text:
<text>
{text}
</text>

Questions:""",
    "qa": """\
Write at most {limit} different pairs of a question and its answer from the text below,
{in_language}. Name what is asked about in every question, so that it is understood without the
text: "How long is the Nile?", never "How long is it?" or "What does the text say?". Answers are
complete and short, and say only what the text says. Write nothing but this form:
Q: (question)
A: (answer)
If nothing can be asked, write only: NONE

The text:
<text>
{text}
</text>

Pairs:""",
}
PROMPTS: Mapping[Language, Mapping[Task, str]] = MappingProxyType({"zh": _CHINESE, "en": _ENGLISH})

AGAIN: Mapping[Language, str] = MappingProxyType(
    {
        "zh": "\n\n（上一次的回答无法使用：{why}。请严格按照要求的格式重新回答。）",
        "en": "\n\n(The last answer could not be used: {why}. Answer again, in exactly that form.)",
    }
)


def fill(prompt: str, **values: object) -> str:
    """Put values in their places, ``{name}``; other braces stay as they are.

    Example:
        >>> fill('Write {"k": 1} for {text}', text="{limit}", limit=3)
        'Write {"k": 1} for {limit}'
    """
    parts: list[tuple[str, bool]] = [(prompt, False)]
    for name, value in values.items():
        marked: list[tuple[str, bool]] = []
        for part, done in parts:
            if done:
                marked.append((part, True))
                continue
            for at, piece in enumerate(part.split(f"{{{name}}}")):
                marked += [(str(value), True)] if at else []
                marked.append((piece, False))
        parts = marked
    return "".join(part for part, _ in parts)
