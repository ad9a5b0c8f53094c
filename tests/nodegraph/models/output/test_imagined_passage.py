"""Passages that a model imagines, in all usual forms."""

import pytest
from support.answer_forms import Scripted, filled

from nodekin.retrievers import HyDE

PASSAGE = "Ibsen lived in Skien. He wrote Brand."

FORMS = r"""
{0}
<passage>{0}</passage>
<passage>⏎{0}⏎</passage>
<hypothetical_document>{0}</hypothetical_document>
<answer>{0}</answer>
<document><text>{0}</text></document>
Passage: {0}
**Passage:** {0}
**Passage**⏎⏎{0}
Passage:⏎{0}
Here is a passage: {0}
Here is a short passage that answers the question:⏎⏎{0}
Sure! Here's a passage:⏎{0}
Hypothetical passage: {0}
Hypothetical answer: {0}
Hypothetical document:⏎{0}
Answer: {0}
Document: {0}
Text: {0}
Paragraph: {0}
Response: {0}
# Passage⏎⏎{0}
## Answer⏎{0}
{{"passage": "{0}"}}
{{"text": "{0}"}}
{{"answer": "{0}"}}
{{"document": "{0}"}}
{{"hypothetical_document": "{0}"}}
{{"hypothetical_answer": "{0}"}}
{{"response": "{0}"}}
{{"content": "{0}"}}
{{"question": "Where?", "passage": "{0}"}}
["{0}"]
```⏎{0}⏎```
```json⏎{{"passage": "{0}"}}⏎```
"{0}"
“{0}”
> {0}
*{0}*
<think>x</think>{0}
<think>x</think>⏎<passage>{0}</passage>
段落：{0}
段落⏎{0}
段落（两三句话）：{0}
问题：易卜生住在哪里？⏎⏎段落（两三句话）：{0}
以下是一段话：⏎{0}
好的，以下是段落：{0}
答案：{0}
回答：{0}
【段落】{0}
Question: Where did Ibsen live?⏎Passage: {0}
Where did Ibsen live?⏎{0}
{0}⏎⏎I hope this helps!
{0}⏎⏎Let me know if you need more.
{0}⏎⏎(This is a hypothetical passage.)
{0}⏎⏎Note: this is made up.
Passage (two or three sentences): {0}
1. {0}
- {0}
{0}</passage>
<p>{0}</p>
<result>{0}</result><note>made up</note>
""".strip().split("\n")


@pytest.mark.parametrize("form", FORMS)
def test_passage_of_all_forms_is_searched(form: str) -> None:
    answer = filled(form, PASSAGE)
    transform = HyDE(lambda prompt: answer, include_query=False, on_error="raise")
    assert transform("wher did ibsn live") == [PASSAGE]


@pytest.mark.parametrize(
    "passage",
    [
        "Text: the medium of literature is text.",
        "Who was Ibsen? He was a writer. Where did he live? In Skien.",
        "Ibsen lived in Skien.\nHe wrote Brand.",
        "1. FC Köln was founded in 1948.",
    ],
)
def test_words_of_passage_stay(passage: str) -> None:
    found = HyDE(lambda prompt: passage, include_query=False)("ibsn")
    assert found[0].split()[-3:] == passage.split()[-3:]


@pytest.mark.parametrize(
    "form",
    [
        '{{"passage": "{}',
        "Title: Ibsen\nPassage: {}",
        "**Hypothetical document:**\n\n{}\n\n---\n*This passage is hypothetical.*",
        "[Passage]\n{}",
        '<think>x</think><passage title="Ibsen">{}</passage>',
        "好的，以下是一段假设性文档：\n\n{}",
        "{}\n\n注：以上内容为假设。",
        "{}\n\nQuestion: What is tea?\n\nPassage: Tea is a drink.",
        "{}\n\n(2 sentences)",
        "{}\n\nIs there anything else you would like to know?",
    ],
)
@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("Where did Ibsen live?", "Henrik Ibsen lived in Skien, where he was born in 1828."),
        ("易卜生住在哪里？", "易卜生住在希恩，他于1828年出生在那里，后来去了意大利。"),
    ],
)
def test_usual_form_gives_passage(form: str, question: str, passage: str) -> None:
    model = Scripted(form.format(passage))
    assert HyDE(model, on_error="raise", include_query=False)(question) == [passage]


@pytest.mark.parametrize(
    "answer",
    [
        "The passage does not answer the question.",
        "This question cannot be answered. It is about tea.",
        "The provided text doesn't contain enough information.",
        "I don't know.",
        "Not enough information.",
        "该段落没有回答问题。",
        "资料中没有提到。",
    ],
)
def test_remark_that_there_is_no_answer_is_not_searched(answer: str) -> None:
    assert HyDE(Scripted(answer), include_query=False)("ibsn") == ["ibsn"]


@pytest.mark.parametrize(
    "passage",
    [
        "The text of the treaty does not mention slavery.",
        "The question of his birthplace cannot be settled, but Skien is likely.",
        "I don't know how she does it is a novel of 2002.",
        "资料显示，他出生在希恩。",
        "未知数用x表示。",
    ],
)
def test_passage_about_unknown_things_is_searched(passage: str) -> None:
    assert HyDE(Scripted(passage), include_query=False)("ibsn") == [passage]
