"""Terms and numbers: the same whether they come from a dictionary or from stored bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes import vocabulary
from nodekin.retrievers.indexes.vocabulary import StoredTerms, Vocabulary, sorted_terms

TERMS = st.lists(st.text(st.characters(categories=None), max_size=4), unique=True, max_size=30)


@given(TERMS)
def test_stored_terms_are_found_by_number(terms: list[str]) -> None:
    order, arrays = sorted_terms(terms)
    stored = StoredTerms(arrays)
    assert stored.words() == [terms[number] for number in order.tolist()]
    assert [stored.find(term) for term in stored.words()] == list(range(len(terms)))
    assert stored.find("no such term") == -1


@given(TERMS, TERMS, st.booleans())
def test_numbers_go_on_after_loading(first: list[str], more: list[str], many: bool) -> None:
    stored = StoredTerms(sorted_terms(first)[1])
    words = stored.words()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "_LOOKUPS", 0 if many else 10**6)
        loaded, plain = Vocabulary(stored=stored), Vocabulary(words)
        assert [loaded[term] for term in more] == [plain[term] for term in more]
        assert loaded.size == plain.size == len(plain)
        assert loaded.words() == plain.words()
        assert [loaded.find(term) for term in words] == list(range(len(words)))


def test_arrays_that_do_not_fit() -> None:
    _, arrays = sorted_terms(["tea", "river"])
    with pytest.raises(ValueError, match="don't fit its 2 terms"):
        StoredTerms({**arrays, "terms": np.zeros(3, np.uint8)})
    with pytest.raises(KeyError, match="term_buckets"):
        StoredTerms({name: arrays[name] for name in ("terms", "term_lengths")})
