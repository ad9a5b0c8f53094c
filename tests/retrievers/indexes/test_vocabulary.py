"""Terms and numbers, equal for dictionaries and stored bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes.postings import Vocabulary

TERMS = st.lists(st.text(st.characters(categories=None), max_size=4), unique=True, max_size=30)


@given(TERMS, TERMS)
def test_packed_vocabulary_continues_numbers(first: list[str], more: list[str]) -> None:
    packed, plain = Vocabulary.of(first), Vocabulary()
    assert packed.terms() == first
    assert [packed.find(term) for term in first] == list(range(len(first)))
    assert packed.find("no such term") == -1
    assert [plain.add(term) for term in first] == list(range(len(first)))
    assert [packed.add(term) for term in more] == [plain.add(term) for term in more]
    assert len(packed) == len(plain)
    assert packed.terms() == plain.terms()
    assert [packed.find(term) for term in first] == list(range(len(first)))
    assert Vocabulary.from_arrays(packed.arrays()).terms() == plain.terms()


def test_vocabulary_refuses_arrays_that_do_not_fit() -> None:
    arrays = Vocabulary.of(["tea", "river"]).arrays()
    with pytest.raises(ValueError, match="do not fit"):
        Vocabulary.from_arrays({**arrays, "terms": np.zeros(3, np.uint8)})
    with pytest.raises(KeyError, match="term_hashes"):
        Vocabulary.from_arrays({name: arrays[name] for name in ("terms", "terms_starts")})
