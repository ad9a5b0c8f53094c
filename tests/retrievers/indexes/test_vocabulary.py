"""Terms and numbers: the same whether they come from a dictionary or from stored bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes import vocabulary
from nodekin.retrievers.indexes.vocabulary import StoredTerms, Vocabulary, stored_terms

TERMS = st.lists(st.text(st.characters(categories=None), max_size=4), unique=True, max_size=30)


@given(TERMS)
def test_stored_terms_have_their_numbers(terms: list[str]) -> None:
    stored = StoredTerms(stored_terms(terms))
    assert stored.words() == terms
    assert [stored.find(term) for term in terms] == list(range(len(terms)))
    assert stored.find("no such term") == -1


@given(TERMS, TERMS, st.booleans())
def test_numbers_go_on_after_loading(first: list[str], more: list[str], many: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "_LOOKUPS", 0 if many else 10**6)
        loaded, plain = Vocabulary(StoredTerms(stored_terms(first))), Vocabulary()
        assert [plain[term] for term in first] == list(range(len(first)))
        assert [loaded[term] for term in more] == [plain[term] for term in more]
        assert loaded.size == plain.size == len(plain)
        assert loaded.words() == plain.words()
        assert [loaded.find(term) for term in first] == list(range(len(first)))
        again = StoredTerms(loaded.arrays())
        assert again.words() == plain.words()


def test_arrays_that_do_not_fit() -> None:
    arrays = stored_terms(["tea", "river"])
    with pytest.raises(ValueError, match="don't fit its 2 terms"):
        StoredTerms({**arrays, "terms": np.zeros(3, np.uint8)})
    with pytest.raises(KeyError, match="term_buckets"):
        StoredTerms({name: arrays[name] for name in ("terms", "term_starts")})
