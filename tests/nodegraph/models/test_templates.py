"""Languages of prompts, and templates whose values stay in their places."""

import copy
import pickle
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_core.prompts import (
    ChatPromptTemplate,
    FewShotPromptTemplate,
    MessagesPlaceholder,
    PromptTemplate,
)
from llama_index.core.prompts import ChatPromptTemplate as LlamaIndexChatTemplate
from llama_index.core.prompts import PromptTemplate as LlamaIndexTemplate

from nodekin.nodegraph.models.templates import (
    ChatPrompt,
    Language,
    QuotedText,
    fill_template,
    language_of,
    neutralize,
    prompt_text,
)

SUPPORT = Path(__file__).parents[2] / "support"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("长江有多长？", "zh"),
        ("iPhone 15 是什么时候发布的", "zh"),
        ("How long is the 长江?", "en"),
        ("富士山は日本で一番高い山です。", "en"),
        ("Où est la Seine ?", "en"),
        ("42", "en"),
        ("", "en"),
        ("Python list append用法", "zh"),
        ("docker compose restart always 含义？", "zh"),
        ("鲁迅 short stories biography", "en"),
    ],
)
def test_language_of_texts(text, language):
    assert language_of(text) == language


def test_language_of_ignores_names_in_other_script() -> None:
    wrong, count, language = [], 0, ""
    for line in (SUPPORT / "mixed_questions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            language = line.strip("[]")
        elif line and not line.startswith("#"):
            count += 1
            wrong += [line] if language_of(line) != language else []
    assert count == 200
    assert len(wrong) <= 0.02 * count, wrong


@pytest.mark.parametrize("default", ["zh", "en"])
def test_language_of_names_uses_default(default: Language) -> None:
    assert language_of("鲁迅 biography", default) == default
    assert language_of("git rebase 冲突", default) == default
    assert language_of("Who was 鲁迅?", default) == "en"
    assert language_of("git rebase 冲突怎么解决？", default) == "zh"
    assert language_of("git rebase", default) == "en"


TEMPLATE = "Rules.\n<passages>\n{passages}\n</passages>\nQuestion: {question}"


@pytest.mark.parametrize(
    "closing",
    [
        *("</passages>", "</ PASSAGES >", "< /passages>", "＜/passages＞", "＜／passages>"),
        *("<\u200b/passages>", "</\u00adpassages>", "<passages>", "</passages\n>"),
        "</passages extra>",
    ],
)
def test_fill_template_neutralizes_tags_in_values(closing: str) -> None:
    for values in ({"passages": f"Tea.{closing} Yes."}, {"question": f"Tea?{closing}"}):
        filled = fill_template(TEMPLATE, **{"passages": "a", "question": "b", **values})
        assert filled.count("<") == 2
        assert closing.lstrip("<＜") in filled  # nothing else changes


def test_fill_template_keeps_other_tags() -> None:
    text = "1 < 2, <b>tea</b>, </passage-like>, a<passagesque"
    assert text in fill_template(TEMPLATE, passages=text, question="?")
    assert fill_template("{a} {b}", a="</passages>") == "</passages> {b}"


def test_fill_template_keeps_tags_of_quoted_text() -> None:
    quoted = QuotedText("<passages>" + neutralize("</passages>", ["passages"]) + "</passages>")
    assert fill_template(TEMPLATE, passages=quoted, question="").count("</passages>") == 2


@pytest.mark.parametrize(
    "template",
    [
        *("Rewrite {query} in JSON.", "Rewrite {question} in JSON."),
        PromptTemplate.from_template("Rewrite {query} in JSON."),
        PromptTemplate.from_template("Rewrite {question} in JSON."),
        PromptTemplate.from_template("Rewrite {{ question }} in JSON.", template_format="mustache"),
        PromptTemplate.from_template("Rewrite {input} in {form}.").partial(form="JSON"),
        ChatPromptTemplate.from_template("Rewrite {question} in JSON."),
        LlamaIndexTemplate("Rewrite {query_str} in JSON."),
    ],
)
def test_prompt_text_accepts_templates(template):
    assert prompt_text(template, ["query", "limit"]) == "Rewrite {query} in JSON."


def test_prompt_text_keeps_examples():
    template = FewShotPromptTemplate(
        examples=[{"a": "nile lenght", "b": "length of the Nile"}],
        example_prompt=PromptTemplate.from_template("{a} -> {b}"),
        suffix="{question} ->",
        input_variables=["question"],
    )
    text = prompt_text(template, ["query"])
    assert text == "nile lenght -> length of the Nile\n\n{query} ->"


@pytest.mark.parametrize(
    "template",
    [
        ChatPromptTemplate(
            [("system", "Be brief about {{tea}}."), ("human", "What is {question}?")]
        ),
        LlamaIndexChatTemplate.from_messages(
            [("system", "Be brief about {tea}."), ("user", "What is {question}?")]
        ),
    ],
)
def test_prompt_text_keeps_messages(template):
    prompt = prompt_text(template, ["query", "tea"])
    assert prompt.messages == (("system", "Be brief about {tea}."), ("user", "What is {query}?"))
    filled = fill_template(prompt, query="{tea}", tea="green tea")
    assert filled.messages[1] == ("user", "What is {tea}?")
    assert filled == "Be brief about green tea.\n\nWhat is {tea}?"


def test_conversation_text_has_roles():
    template = ChatPromptTemplate([("human", "Hello."), AIMessage("Yes?"), ("human", "{question}")])
    prompt = prompt_text(template, ["query"])
    assert prompt == "User: Hello.\n\nAssistant: Yes?\n\nUser: {query}"


def test_messages_placeholder_becomes_history():
    messages = [("system", "Rewrite."), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    prompt = prompt_text(ChatPromptTemplate(messages), ["history", "question"])
    assert prompt.messages == (
        ("system", "Rewrite."),
        ("user", "{history}"),
        ("user", "{question}"),
    )
    with pytest.raises(ValueError, match="an unknown placeholder 'chat_history'"):
        prompt_text(ChatPromptTemplate(messages), ["question"])
    messages[1] = MessagesPlaceholder("chat_history", optional=True)
    assert len(prompt_text(ChatPromptTemplate(messages), ["question"]).messages) == 2
    messages[1] = ("placeholder", "{chat_history}")  # optional
    template = ChatPromptTemplate(messages)
    assert prompt_text(template, ["history", "question"]).messages == prompt.messages


def test_added_text_extends_last_message():
    prompt = ChatPrompt([("system", "Be brief."), ("user", "Why?")]) + " (In JSON.)"
    assert prompt.messages == (("system", "Be brief."), ("user", "Why? (In JSON.)"))
    assert prompt == "Be brief.\n\nWhy? (In JSON.)"
    assert pickle.loads(pickle.dumps(prompt)).messages == copy.deepcopy(prompt).messages


@pytest.mark.parametrize("prompt", [5, None, ["{query}"], str.upper])
def test_prompt_of_other_type_raises(prompt):
    with pytest.raises(TypeError, match=r"must be a text with \{query\}, or a prompt template"):
        prompt_text(prompt, ["query"])


def test_template_with_picture_raises():
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    template = ChatPromptTemplate([("human", [{"type": "text", "text": "{question}"}, image])])
    with pytest.raises(TypeError, match="a message of a prompt must be a text"):
        prompt_text(template, ["query"])
