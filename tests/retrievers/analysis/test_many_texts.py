"""Many texts at once have the terms that each has alone, whatever it is written in."""

import json
import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.retrievers import TextAnalyzer
from nodekin.retrievers.analysis import many_texts
from tests.support.inverted_texts import counted

PIECES = st.sampled_from(
    [
        *("the river and that tea which", "running", "C++", "c#b", "x+++", "dog's", "dog’S,"),
        *("HTTPServer2", "getUserName", "run_target", "McDonald", "iPhone", "_", "A", "1/2", "½"),
        *(
            "长江",
            "长，江",
            "茶tea茶",
            "茶c#",
            "…",
            "．",
            "　",
            "々",
            "カタｶﾞ",
            "한국",
            "𠀀𠀁",
            "〱",
        ),
        *("café", "cafe\u0301", "naïve", "Straße", "İstanbul", "Ünïcode", "ﬁne", "ªº", "ŉ", "łódź"),
        *("Fluß der die und ist in dem", "das", "la casa de los que es", "Kỳ họp của", "được"),
        *("Ёлка", "ёлка реки", "αβγ", "שָלוֹם", "العَرَبِيَّة", "हिन्दी", "ไทย", "ภาษา长", "ქართული"),
        *("\0", "\ud800", "\u0301", "\ufeff", "a\u00adb", "\n", " ", "", "-", "'s", "😀", "\x1c"),
    ]
)
TEXTS = st.lists(st.lists(PIECES, max_size=6).map(" ".join), max_size=20)
GLUED = st.lists(st.lists(PIECES, max_size=4).map("".join), max_size=20)
ANY = st.lists(st.text(st.characters(categories=None), max_size=30), max_size=12)
ANALYZERS = st.sampled_from(
    [
        TextAnalyzer(),
        TextAnalyzer(stem=False),
        *map(lambda name: TextAnalyzer(language=name), ("english", "german", "russian")),
    ]
)


def check(texts: list[str], analyzer: TextAnalyzer) -> None:
    expected = [Counter(analyzer.indexed(text)) for text in texts]
    assert counted(analyzer.invert(texts)) == expected


@settings(max_examples=300)
@given(st.one_of(TEXTS, GLUED, ANY), ANALYZERS)
def test_terms_are_those_of_each_text(texts: list[str], analyzer: TextAnalyzer) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nodekin.retrievers.analysis.text_analyzer._MIN_TOGETHER", 0)
        check(texts, analyzer)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["ar", "de", "ru", "vi"])
def test_terms_of_real_texts(data: Path, language: str) -> None:
    path = data / "xquad" / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip("no XQuAD")
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paragraphs = [row for article in articles for row in article["paragraphs"]]
    questions = [qa["question"] for row in paragraphs for qa in row["qas"]]
    check([row["context"] for row in paragraphs] + questions[:300], TextAnalyzer())


def test_terms_of_real_chinese_and_of_this_repository(data: Path) -> None:
    paragraphs = [path.read_text(encoding="utf-8") for path in data.glob("cmrc2018/kb/part_1*")]
    code = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")]
    check([line for text in paragraphs for line in text.splitlines()] + code, TextAnalyzer())


def test_the_language_is_told_by_the_first_words() -> None:
    english, german = "the and that with " * 60, "der und die ist nicht " * 60
    texts = [english + german, german + english, "tea " * 199 + german, "a " * 200 + german]
    check(texts * 4, TextAnalyzer())


def test_words_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_texts, "_REMEMBERED", 3)
    for begin in range(0, 40, 10):
        check([f"word{n} of the tea" for n in range(begin, begin + 10)], TextAnalyzer())


def test_threads_analyse_at_the_same_time() -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                texts = [f"running {number} rivers{n * turn} 长江{turn}" for n in range(200)]
                check(texts, TextAnalyzer())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
