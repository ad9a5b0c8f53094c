import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.analysis.normal_form import normalized
from nodekin.retrievers.analysis.segments import ascii_words, segments, sequences
from nodekin.retrievers.analysis.text_analyzer import TextAnalyzer


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Green tea, 绿茶 and ชา", [["green", "tea"], "绿茶", ["and"], "ชา"]),
        ("ชา茶", ["ชา", "茶"]),
        ("नमस्ते दुनिया", [["नमस्ते", "दुनिया"]]),
        ("বাংলা தமிழ் ქართული", [["বাংলা", "தமிழ்", "ქართული"]]),
        ("e\u0301te\u0301", [["été"]]),
        ("Sil\u00adben\u00adtren\u00adnung", [["silbentrennung"]]),
        ("ＦＵＬＬ ｶﾞ", [["full"], "ガ"]),
        ("한국어 ㄱ", ["한국어", ["ᄀ"]]),
        ("ꀀꀁ ㄅ", [["ꀀꀁ", "ㄅ"]]),
        ("น้ำชา", ["น้ำชา"]),
        ("", []),
    ],
)
def test_segments_returns_words_and_runs(text: str, result: list) -> None:
    assert segments(normalized(text)) == result


@pytest.mark.parametrize(
    ("run", "result"),
    [
        ("ชา", ["ช", "า", "ชา"]),
        ("กิน", ["กิ", "น", "กิน"]),
        ("ទឹក", ["ទឹ", "ក", "ទឹក"]),
        ("ខ្មែរ", ["ខ្មែ", "រ", "ខ្មែរ"]),
        ("ရေ", ["ရေ"]),
        ("ນ້ຳ", ["ນ້ຳ"]),
    ],
)
def test_sequences_keep_combining_signs(run: str, result: list[str]) -> None:
    assert sequences(run, is_query=False) == result
    assert sequences(run, is_query=True) == result[-1:]


def test_thai_query_drops_question_words() -> None:
    about, leaves = (sequences(run, is_query=True) for run in ("เกี่ยวกับชา", "ใบ"))
    assert TextAnalyzer().query("เกี่ยวกับชากี่ใบ") == [
        *about,
        *leaves,
    ]  # "how many" occurs in "about" as well
    assert TextAnalyzer().query("อะไร") == sequences("อะไร", is_query=True)


@given(st.text("aB1_'s +#\n."))
def test_ascii_words_equals_segments(text: str) -> None:
    normal = normalized(text)
    assert ascii_words(normal) == [word for run in segments(normal) for word in run]


@given(st.text("aß1_’–«é°+# ж\ud800"))
def test_words_with_usual_punctuation_equal_other_words(text: str) -> None:
    normal = normalized(text)
    words = [word for run in segments(normal) for word in run]
    assert words == re.findall(r"[^\W_]+(?:\+\+|#)?", normal)


@given(st.text())
def test_normalized_is_idempotent(text: str) -> None:
    normal = normalized(text.replace("_", " ").casefold())
    assert normalized(normal) == normalized(normalized(normal))
