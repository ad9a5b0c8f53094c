import pytest

from nodekin.retrievers.analysis.languages import (
    folded,
    named,
    stems,
)


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("german", ["Fluss", "Flüsse", "Flüssen"]),
        ("russian", ["книга", "книги", "книгу", "книгой"]),
        ("arabic", ["كتاب", "الكتاب"]),
        ("turkish", ["nehir", "nehirler", "nehirleri"]),
        ("finnish", ["talo", "talon", "talossa"]),
        ("spanish", ["montaña", "montañas"]),
        ("greek", ["ποταμός", "ποταμοί"]),
        ("hindi", ["नदी", "नदियों"]),
        ("french", ["montagne", "montagnes"]),
    ],
)
def test_stems_of_word_forms_are_equal(language: str, forms: list[str]) -> None:
    words = [form.casefold() for form in forms]
    assert len(set(stems(words, named(language)[0]))) == 1


@pytest.mark.parametrize(
    ("language", "word", "result"),
    [
        ("german", "flüsse", "flusse"),
        ("english", "møller", "moller"),
        ("turkish", "ığdır", "igdir"),
        ("polish", "łódź", "lodz"),
        ("russian", "ёж", "еж"),
        ("russian", "йод", "йод"),
        ("russian", "за\u0301мок", "замок"),
        ("greek", "οδύσσεια", "οδυσσεια"),
        ("arabic", "أَحْمَد", "احمد"),
        ("arabic", "كــتاب", "كتاب"),
        ("hebrew", "שָׁלוֹם", "שלום"),
        ("hindi", "हिन्दी", "हिन्दी"),
        ("vietnamese", "mạ", "mạ"),
    ],
)
def test_folded_removes_accents_without_meaning(language: str, word: str, result: str) -> None:
    assert folded([word], named(language)[0]) == [result]
