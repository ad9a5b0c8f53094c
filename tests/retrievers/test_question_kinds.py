import pytest

from nodekin.retrievers.question_kinds import QuestionKind, has_numeral


@pytest.mark.parametrize(
    "question",
    [
        "How many people live there?",
        "When was it built?",
        "Wie viele Menschen wohnen dort?",
        "In welchem Jahr wurde es gebaut?",
        "Сколько там людей?",
        "Vào năm nào?",
        "Nó được xây dựng khi nào?",
        "كم عدد السكان؟",
        "متى بني؟",
        "东关街有多长？",
        "哪一年重修的？",
    ],
)
def test_question_for_number_is_recognized(question):
    assert QuestionKind.of(question) == (True, False)


@pytest.mark.parametrize(
    "question",
    ["Why did it end?", "Warum?", "Почему?", "Tại sao vậy?", "لماذا انتهى؟", "原因是什么？"],
)
def test_question_for_reason_is_recognized(question):
    assert QuestionKind.of(question) == (False, True)


@pytest.mark.parametrize("question", ["", "Who led it?", "Whenever", "حكم المدينة", "谁？"])
def test_other_questions_have_no_kind(question):
    assert QuestionKind.of(question) == (False, False)


def test_has_numeral():
    assert has_numeral("built in 1905", 0, 13)
    assert not has_numeral("built in 1905", 0, 8)
    assert has_numeral("共十二人", 0, 4)
    assert has_numeral("عام ١٩٠٥", 0, 8)
