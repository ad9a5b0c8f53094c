"""Languages of prompts, and templates whose values stay in their places."""

from pathlib import Path

import pytest

from nodekin.nodegraph.models.templates import (
    Language,
    QuotedText,
    fill_template,
    language_of,
    neutralize,
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


def test_neutralize_is_linear() -> None:
    for text in ("<" * 100_000, "< " * 100_000, "<" + "/ " * 100_000):
        assert neutralize(text, ["passages"]) == text
