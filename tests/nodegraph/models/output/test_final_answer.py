import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph.models.output.free_text import (
    FinalAnswer,
    FinalAnswerParser,
    parse_final_answer,
)

BITS = [
    *("NO_ANSWER", "NO_", "ANSWER", "无答案", "无", "答案", "no answer", "No", " ", "\n", "  \n"),
    *("Tea. ", "茶。", "**", "[1]", "(", ")", '"', "The ", ".", "。", "x"),
    *("<think>", "Hm.", "</think>", "<", "```"),
]

# The marks of thoughts, with the mark that ends them.
THOUGHTS = [
    *("<think>{}</think>", "[THINK]{}[/THINK]", "◁think▷{}◁/think▷", "<seed:think>{}</seed:think>"),
    *("<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",),
    *("<|channel>thought{}<channel|>", "<|START_THINKING|>{}<|END_THINKING|>"),
    *("<details><summary>Thinking</summary>{}</details>", "Thinking...\n{}\n...done thinking."),
    *("**Thinking**\n{}\n**Answer**\n", "### Reasoning\n{}\n### Answer\n"),
    *("> Thinking...\n> {}\n\n", "> 💭 {}\n\n", "<analysis>{}</analysis>", "【思考】{}【/思考】"),
]


@pytest.mark.parametrize(
    ("raw", "text", "answered"),
    [
        ("Tea is a drink [1].", "Tea is a drink [1].", True),
        ("NO_ANSWER", "", False),
        ("no answer.", "", False),
        ("**NO_ANSWER**", "", False),
        ("【无答案】", "", False),
        ("无答案。", "", False),
        ("NO_ANSWER. The passages are about tea.", "The passages are about tea.", False),
        ("无答案，资料没有提到。", "资料没有提到。", False),
        ("The passages do not say. NO_ANSWER", "The passages do not say.", False),
        ("资料没有提到。\n无答案", "资料没有提到。", False),
        ("The question has no answer.", "The question has no answer.", True),
        ("No answers were given in 1999.", "No answers were given in 1999.", True),
        ("这个方程无答案。", "这个方程无答案。", True),
        ("无答案的题有三道。", "无答案的题有三道。", True),
        ("NO_ANSWERS is a constant.", "NO_ANSWERS is a constant.", True),
        ("<think>NO_ANSWER?</think>\n\nTea.", "Tea.", True),
        ("Hm, tea.\n</think>\nTea.", "Tea.", True),
        ("<think>for ever", "", True),
        ('He said "tea" NO_ANSWER', 'He said "tea"', False),
        ("```py\nprint(1)\n```", "```py\nprint(1)\n```", True),
    ],
)
def test_parse_final_answer_finds_signals_and_text(raw, text, answered) -> None:
    assert parse_final_answer(raw) == FinalAnswer(text, answered)


@given(st.lists(st.sampled_from(BITS), max_size=12).map("".join), st.data())
def test_chunks_equal_parsed_answer(raw, data) -> None:
    reader = FinalAnswerParser()
    text, at = "", 0
    while at < len(raw):
        step = data.draw(st.integers(1, 6))
        text += reader.feed(raw[at : at + step])
        at += step
    text += reader.close()
    # Thoughts without an opening tag are returned before their end.
    assert text.endswith(parse_final_answer(raw).text)
    if "</think>" not in raw or raw.lstrip().startswith("<think>"):
        assert text == parse_final_answer(raw).text


@pytest.mark.parametrize("form", THOUGHTS)
@pytest.mark.parametrize("size", range(1, 8))
def test_streamed_thoughts_are_left_out(form: str, size: int) -> None:
    raw = form.format("Perhaps [2]?") + "He lived in Skien [1]."
    parser = FinalAnswerParser()
    text = "".join(parser.feed(raw[at : at + size]) for at in range(0, len(raw), size))
    assert text + parser.close() == "He lived in Skien [1]."
    assert parse_final_answer(raw).text == "He lived in Skien [1]."


MARKS = [
    *(
        "<details><summary>Thinking</summary>",
        "**Thinking**\n",
        "**",
        "### Reasoning\n",
        "### Answer\n",
    ),
    *("> ", "Thinking...\n", "💭", "**Answer**\n", "\n\n", "Hm.", "Tea. ", "x", "[1]", "NO_ANSWER"),
    *(
        "[THINK]",
        "◁think▷",
        "<|channel>thought",
        "<|START_THINKING|>",
        "analysis",
        "assistantfinal",
    ),
]


@given(st.lists(st.sampled_from(MARKS), max_size=10).map("".join), st.integers(1, 7))
def test_chunks_with_marks_of_thoughts_equal_parsed_answer(raw: str, size: int) -> None:
    parser = FinalAnswerParser()
    text = "".join(parser.feed(raw[at : at + size]) for at in range(0, len(raw), size))
    assert text + parser.close() == parse_final_answer(raw).text


@pytest.mark.parametrize("tag", ["<|im_end|>", "<|START_THINKING|>", "</answer>"])
def test_streamed_keyword_before_a_tag_is_removed(tag: str) -> None:
    raw = f"Tea is a drink.\nNO_ANSWER{tag}"
    parser = FinalAnswerParser()
    text = "".join(parser.feed(letter) for letter in raw)
    assert text + parser.close() == parse_final_answer(raw).text == "Tea is a drink."


def test_chunks_are_returned_immediately() -> None:
    reader = FinalAnswerParser()
    text = [reader.feed(piece) for piece in ("Tea is", " a drink", ". N", "o more. ", "NO_ANS")]
    assert text == ["Tea is", " a drink", ".", " No more.", ""]
    assert reader.close() == " NO_ANS"


@pytest.mark.parametrize("start", ["", "<think>", "Tea.", "NO_ANSWER. "])
@pytest.mark.parametrize("chunk", ["a", " ", "\n", ":", "(", "* ", "无", "<"])
def test_long_streams_equal_parsed_answer(start: str, chunk: str) -> None:
    parser = FinalAnswerParser()
    text = parser.feed(start)
    for _ in range(1_000):
        text += parser.feed(chunk)
    assert text + parser.close() == parse_final_answer(start + 1_000 * chunk).text


def test_split_end_of_thoughts_is_recognized() -> None:
    reader = FinalAnswerParser()
    pieces = ("It is warm.\n", "</thi", "nk>", "Tea.")
    assert [reader.feed(piece) for piece in pieces][2:] == ["", "\n\nTea."]
