"""The numbers of terms: restored vocabularies count on."""

from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes.vocabulary import Vocabulary

TERMS = st.lists(st.sampled_from(["tea", "cup", "茶", "\ud800", "", *"abcdefgh"]), max_size=20)


@given(st.lists(TERMS, max_size=4), st.booleans())
def test_restored_vocabulary_numbers_like_plain(parts: list[list[str]], loads: bool) -> None:
    restored, plain = Vocabulary(), Vocabulary()
    for terms in parts:
        restored = Vocabulary.from_arrays(restored.arrays())
        if loads:
            restored.load()
        assert [restored[term] for term in terms] == [plain[term] for term in terms]
        assert restored.terms() == plain.terms()
        assert restored.size == plain.size == len(plain.terms())
        assert [restored.find(term) for term in plain.terms()] == list(range(plain.size))
        assert restored.find("missing") == -1


@given(TERMS, TERMS, TERMS, st.booleans())
def test_shared_vocabulary_numbers_like_plain(
    known: list[str], before: list[str], terms: list[str], is_stored: bool
) -> None:
    other, shared, plain = Vocabulary(), Vocabulary(), Vocabulary()
    for term in known:
        assert other[term] >= 0
    if is_stored:
        other = Vocabulary.from_arrays(other.arrays())
    size = other.size
    assert [shared[term] for term in before] == [plain[term] for term in before]
    with shared.sharing(other):
        assert [shared[term] for term in terms] == [plain[term] for term in terms]
    assert shared.terms() == plain.terms()
    assert other.size == size


def test_vocabularies_share_their_strings() -> None:
    other, vocabulary = Vocabulary(), Vocabulary()
    terms = ["green tea"[:5], "green tea"[6:], "coffee cup"[:6]]
    copies = ["".join([*term]) for term in terms]
    for term in copies[1:]:
        assert other[term] >= 0
    with vocabulary.sharing(other):
        assert [vocabulary[term] for term in terms] == [0, 1, 2]
    assert [mine is copy for mine, copy in zip(vocabulary, copies, strict=True)] == [
        False,
        True,
        True,
    ]
