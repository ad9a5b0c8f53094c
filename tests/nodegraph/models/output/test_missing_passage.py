"""Replies of models that did not receive a passage."""

import pytest

from nodekin.nodegraph.models.output.missing_passage import is_passage_missing

MISSING = [
    (
        "I'm sorry, but there is no passage in your message. Please provide the text "
        "from which I should extract keywords."
    ),
    (
        "I apologize, but the passage seems to be missing from your request. Please "
        "provide the text you'd like me to summarize."
    ),
    "It looks like you haven't provided a passage yet.",
    "It seems that the text was not included in your message.",
    "No text was provided.",
    "Please provide the passage you would like me to summarize.",
    "Could you please share the text?",
    "I don't see any passage in your message.",
    "The passage you provided appears to be empty.",
    "Sure! Please paste the text you want summarized.",
    "I'd be happy to help! Please share the passage.",
    "Without the passage, I can't extract keywords.",
    "There is no text to summarize.",
    "It appears that no passage was included.",
    "I need the actual text to create questions.",
    "Of course! Please provide the text.",
    "Hello! It looks like the passage didn't come through.",
    "I can't see any text in your message",
    "Your message doesn't contain a passage.",
    "You forgot to include the passage.",
    (
        "I'd be happy to create question-answer pairs! However, I don't see any "
        "passage in your message. Could you please paste it?"
    ),
    "您似乎没有提供文段。",
    "请提供需要总结的文本。",
    "抱歉，我没有看到任何文段。请提供内容。",
    "文段为空。",
    "您提供的段落是空的。",
    "请将文本发给我。",
    "很抱歉，由于文段为空，我无法生成问答对。请提供文段内容。",
    "您好，請提供需要摘要的內容。",
    "好的，请把文章粘贴给我。",
    "您似乎沒有提供文本。",
    "看起来您忘记粘贴文本了。",
    "当然可以！请您提供需要提取关键词的段落。",
    "未检测到文本内容。",
    "抱歉，您没有提供需要提取关键词的文段，请补充内容后我再为您处理。",
]

GIVEN = [
    "The text describes a missing ship.",
    "The passage describes how the town rebuilt its harbour.",
    "The author provides the text of the treaty.",
    "The letter asks the landlord to provide the text of the contract.",
    "Sorry, the band of the 1990s, reunited.",
    "No text was found in the tomb.",
    "The document is incomplete without a signature.",
    "本文介绍了三峡工程。",
    "文章没有提供具体的内容。",
    "公司未提供资料，法院驳回起诉。",
    "The article is missing a clear conclusion, critics say.",
    "用户需提供材料。",
    "Users must provide the document.",
    "The content of the report is empty rhetoric.",
    "There is no evidence.",
    "What documents are required?",
    "空调",
    "文本, 内容",
    "Provide feedback early.",
    "请愿书要求政府提供资料。",
]


@pytest.mark.parametrize("reply", MISSING)
def test_missing_passage_is_recognized(reply: str) -> None:
    assert is_passage_missing(reply)


@pytest.mark.parametrize("reply", GIVEN)
def test_text_about_passages_is_kept(reply: str) -> None:
    assert not is_passage_missing(reply)
