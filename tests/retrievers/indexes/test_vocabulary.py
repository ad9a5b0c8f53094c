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
