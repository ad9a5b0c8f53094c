import pytest
from support.query_frames import LIST_FRAMES, QUERY_FRAMES, TOOL_FRAMES

from nodekin.nodegraph.models.output.frames import without_frames
from nodekin.nodegraph.models.output.queries import parse_rewrite, parse_sub_questions
from nodekin.nodegraph.models.output.tool_questions import parse_tool_questions

ENGLISH = {
    "o": "hi, whats the hight of mt everest",
    "q": "How high is Mount Everest?",
    "a": "Who wrote the play?",
    "b": "When was the painter born?",
    "t1": "plays",
    "t2": "people",
}
CHINESE = {
    "o": "你好想问下珠穆朗马峰到底有多高啊",
    "q": "珠穆朗玛峰有多高？",
    "a": "这部戏是谁写的？",
    "b": "画家生于哪一年？",
    "t1": "戏剧库",
    "t2": "人物库",
}
QUESTIONS = {
    "plays": "Which is older, the writer of the play or its painter?",
    "戏剧库": "这部戏的作者和画家谁年长？",
}
LANGUAGES = [ENGLISH, CHINESE]


def filled(form: str, words: dict[str, str]) -> str:
    return form.replace("⏎", "\n").replace("⇥", "\t").format(**words)


def outcomes(forms, language, read, items):
    """Return the forms with other items, and the forms that raise an error."""
    other = []
    errors = []
    for form in forms:
        try:
            found = read(filled(form, language))
        except ValueError:
            errors.append(form)
        else:
            if found != items:
                other.append((form, found))
    return other, errors


@pytest.mark.parametrize("language", LANGUAGES)
def test_frame_of_query_gives_query_or_error(language) -> None:
    def read(text):
        return parse_rewrite(text, language["o"])

    other, errors = outcomes(QUERY_FRAMES, language, read, language["q"])
    assert other == []
    assert len(errors) <= 0.03 * len(QUERY_FRAMES), errors


@pytest.mark.parametrize("language", LANGUAGES)
def test_frame_of_list_gives_its_items(language) -> None:
    question = QUESTIONS[language["t1"]]

    def read(text):
        return parse_sub_questions(text, question, 5)

    words = {**language, "o": question}
    other, errors = outcomes(LIST_FRAMES, words, read, [language["a"], language["b"]])
    assert (other, errors) == ([], [])


@pytest.mark.parametrize("language", LANGUAGES)
def test_frame_of_tool_questions_gives_pairs(language) -> None:
    def read(text):
        return parse_tool_questions(text, [language["t1"], language["t2"]])[0]

    pairs = [(language["t1"], language["a"]), (language["t2"], language["b"])]
    other, errors = outcomes(TOOL_FRAMES, language, read, pairs)
    assert other == []
    assert len(errors) <= 1, errors


@pytest.mark.parametrize(
    "text",
    ["New York New York", "谢谢谢谢", "require('fs')", "A → B mapping", "a // b", "echo 'hi'"],
)
def test_short_text_is_no_frame(text: str) -> None:
    assert without_frames(text, "What is that?") == text
