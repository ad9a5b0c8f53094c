"""Summaries in the forms that models use."""

import pytest

from nodekin.nodegraph.models.output.summary import parse_summary

# Each row has a reply and its summary.
ROWS = [
    (
        (
            "The passage describes how the town rebuilt its harbour after the storm of "
            "1953 and how the new dyke has protected it since."
        ),
        [
            (
                "The passage describes how the town rebuilt its harbour after the storm of "
                "1953 and how the new dyke has protected it since."
            )
        ],
    ),
    (
        (
            "Here is a summary of the passage:\n\nThe council approved the budget for 2025 "
            "by a narrow margin. Most of the money goes to schools and roads.\n"
            "\nLet me know if you'd like a shorter version!"
        ),
        [
            (
                "The council approved the budget for 2025 by a narrow margin. Most of the "
                "money goes to schools and roads."
            )
        ],
    ),
    (
        (
            "<think>\nThe passage is about the printing press. I'll keep it to two "
            "sentences.\n</think>\n\nGutenberg's press made books cheap and spread "
            "literacy. Within fifty years there were presses in over 200 cities."
        ),
        [
            (
                "Gutenberg's press made books cheap and spread literacy. Within fifty years "
                "there were presses in over 200 cities."
            )
        ],
    ),
    (
        "```\nTea came to Europe in the seventeenth century through Dutch traders.\n```",
        ["Tea came to Europe in the seventeenth century through Dutch traders."],
    ),
    (
        (
            "<summary>\nThe letter asks the landlord to repair the heating by Friday and "
            "threatens a rent reduction.\n</summary>"
        ),
        [
            (
                "The letter asks the landlord to repair the heating by Friday and threatens a "
                "rent reduction."
            )
        ],
    ),
    (
        (
            "## TL;DR\n\nRust checks memory safety at compile time through ownership and "
            "borrowing. The cost is a steeper learning curve."
        ),
        [
            (
                "Rust checks memory safety at compile time through ownership and borrowing. "
                "The cost is a steeper learning curve."
            )
        ],
    ),
    (
        (
            "Sorry, the band of the 1990s, reunited for a single concert in Leeds, and the "
            "passage reviews it warmly."
        ),
        [
            (
                "Sorry, the band of the 1990s, reunited for a single concert in Leeds, and the "
                "passage reviews it warmly."
            )
        ],
    ),
    (
        "本文介绍了三峡工程的建设历程及其在防洪、发电和航运方面的作用。",
        ["本文介绍了三峡工程的建设历程及其在防洪、发电和航运方面的作用。"],
    ),
    (
        (
            "好的，以下是这段文字的摘要：\n\n新规要求外卖平台公开算法规则，"
            "并保障骑手的休息时间。\n\n如果您需要更详细的摘要，请随时告诉我。"
        ),
        ["新规要求外卖平台公开算法规则，并保障骑手的休息时间。"],
    ),
    (
        '{"摘要": "公司上半年营收增长12%，净利润下降3%。"}',
        ["公司上半年营收增长12%，净利润下降3%。"],
    ),
    (
        "The passage describes a summary: it has three parts.",
        ["The passage describes a summary: it has three parts."],
    ),
    (
        "Sorry, the band of the 1990s, reunited for a single concert.",
        ["Sorry, the band of the 1990s, reunited for a single concert."],
    ),
    (
        "The text says that the summary is missing a page.",
        ["The text says that the summary is missing a page."],
    ),
    (
        "Overview effects change astronauts. They feel awe.",
        ["Overview effects change astronauts. They feel awe."],
    ),
    ("Tea:\n- It is old.\n- It is green.", ["Tea:\n- It is old.\n- It is green."]),
    ("Abstract art began in 1910.", ["Abstract art began in 1910."]),
    ("总结经验很重要。", ["总结经验很重要。"]),
    ("Title fights are rare. Boxing changed.", ["Title fights are rare. Boxing changed."]),
    ("The passage is about an empty house.", ["The passage is about an empty house."]),
]

# Replies with the same summary.
FORMS: list[tuple[list[str], list[str]]] = [
    (
        ["Tea is a drink. It is old."],
        [
            "Tea is a drink. It is old.",
            "## TL;DR\n\nTea is a drink. It is old.",
            "TL;DR: Tea is a drink. It is old.",
            "**TL;DR:** Tea is a drink. It is old.",
            "**Summary**\n\nTea is a drink. It is old.",
            "# Summary\nTea is a drink. It is old.",
            "Summary: Tea is a drink. It is old.",
            "**Summary:** Tea is a drink. It is old.",
            "Here is a summary of the passage:\n\nTea is a drink. It is old.",
            (
                "Here's a concise summary:\n\nTea is a drink. It is old.\n"
                "\nLet me know if you'd like a shorter version!"
            ),
            "> Tea is a drink. It is old.",
            "```\nTea is a drink. It is old.\n```",
            "<summary>Tea is a drink. It is old.</summary>",
            (
                "<analysis>It is about tea.</analysis>\n"
                "<summary>Tea is a drink. It is old.</summary>"
            ),
            '{"summary": "Tea is a drink. It is old."}',
            '{"summary": "Tea is a drink. It is old.", "keywords": ["tea"]}',
            '{"abstract": "Tea is a drink. It is old."}',
            '{"result": {"summary": "Tea is a drink. It is old."}}',
            "Title: Tea\nSummary: Tea is a drink. It is old.",
            "**Title:** Tea\n\n**Summary:** Tea is a drink. It is old.",
            "Tea is a drink. It is old.\n\nKeywords: tea, drink",
            "Tea is a drink. It is old.\n\n(8 words)",
            "Tea is a drink. It is old.\n\n**Word count:** 8",
            "Summary (2 sentences): Tea is a drink. It is old.",
            "Tea is a drink. It is old.\n\n---\n\nWould you like a longer version?",
            "**Summary of the passage:** Tea is a drink. It is old.",
            "In short: Tea is a drink. It is old.",
            "【摘要】Tea is a drink. It is old.",
            "摘要：Tea is a drink. It is old.",
            "**摘要**\nTea is a drink. It is old.",
            "总结：Tea is a drink. It is old.",
            "內容摘要：Tea is a drink. It is old.",
            "好的，以下是这段文字的摘要：\n\nTea is a drink. It is old.",
            "一句话总结：Tea is a drink. It is old.",
            "Tea is a drink. It is old.\n\n如需更详细的摘要，请告诉我。",
            "Tea is a drink. It is old.\n（共50字）",
            '{"总结": "Tea is a drink. It is old."}',
            "### 摘要\n\nTea is a drink. It is old.\n\n### 关键词\n茶",
            "Sure! Tea is a drink. It is old.",
            '"Tea is a drink. It is old."',
            "**Tea is a drink. It is old.**",
            "概要：\nTea is a drink. It is old.",
            "📝 Summary: Tea is a drink. It is old.",
            "The summary is as follows:\n\nTea is a drink. It is old.",
            "This is the summary: Tea is a drink. It is old.",
            "以下是摘要：\nTea is a drink. It is old.\n\n是否需要我补充细节？",
            "Summary\n-------\nTea is a drink. It is old.",
            "Summary\n\nTea is a drink. It is old.",
            "[Summary] Tea is a drink. It is old.",
            "Passage summary: Tea is a drink. It is old.",
            "Summary in one sentence: Tea is a drink. It is old.",
            "用一句话概括：Tea is a drink. It is old.",
            "这段话的大意是：Tea is a drink. It is old.",
            "Summary:\nTea is a drink. It is old.",
            "**Summary:**\n\nTea is a drink. It is old.",
            "TLDR: Tea is a drink. It is old.",
            "TL;DR — Tea is a drink. It is old.",
            "## Summary\n\nTea is a drink. It is old.\n\n## Keywords\ntea, drink",
            '{"summary": "Tea is a drink. It is old.", "word_count": 7}',
            "{'summary': 'Tea is a drink. It is old.'}",
            "<response>\n<summary>Tea is a drink. It is old.</summary>\n</response>",
            "<summary>Tea is a drink. It is old.",
            "summary: Tea is a drink. It is old.",
            "Summary: Tea is a drink. It is old.\n\nNote: This is short.",
            "*Summary:* Tea is a drink. It is old.",
            "“Tea is a drink. It is old.”",
            "Okay, here is the summary:\n\nTea is a drink. It is old.",
            "**总结：** Tea is a drink. It is old.",
            "總結：Tea is a drink. It is old.",
            "【总结】\nTea is a drink. It is old.",
            "以下是对该段落的总结：\n\nTea is a drink. It is old.",
            "Here's a one-sentence summary: Tea is a drink. It is old.",
            "The summary of the passage is:\nTea is a drink. It is old.",
            "Tea is a drink. It is old.\n\n[Word count: 7]",
            "Tea is a drink. It is old.\n\nHope this helps!",
            "Tea is a drink. It is old.\n\n*(7 words)*",
            "**In short:** Tea is a drink. It is old.",
        ],
    ),
]

INVALID = [
    (
        "I apologize, but the passage seems to be missing from your request. Please "
        "provide the text you'd like me to summarize."
    ),
    "您好，我无法给到相关内容。",
    "请提供需要总结的文本。",
    "I can't summarize this without the passage. Please share it.",
    "文段为空。",
    "There is no text provided to summarize.",
    "No content to summarize.",
    "You have not provided any text.",
    "由于您没有提供文段，我无法生成摘要。",
    "未提供文本，无法生成摘要。",
    "It seems you forgot to include the passage!",
    "The passage is empty, so there's nothing to summarize.",
    "Please paste the passage here.",
    "请粘贴您要总结的文章。",
    "",
]


@pytest.mark.parametrize(
    ("reply", "expected"), [*ROWS, *((reply, value) for value, all in FORMS for reply in all)]
)
def test_parse_summary_reads_usual_forms(reply: str, expected: list[str]) -> None:
    assert parse_summary(reply) == expected


@pytest.mark.parametrize("reply", INVALID)
def test_reply_without_summary_raises(reply: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_summary(reply)
