import pytest

from nodekin.retrievers import Retriever
from nodekin.retrievers.similarities.bm25 import Bm25
from nodekin.retrievers.similarities.registry import Cosine, get_similarity


def test_get_similarity_accepts_names_and_objects(library) -> None:
    assert get_similarity(None) == get_similarity("bm25") == Bm25()
    assert get_similarity("bm25_chinese") == Bm25(name="bm25_chinese")
    assert get_similarity("cosine") == Cosine()
    similarity = Bm25(b=0.5)
    assert get_similarity(similarity) is similarity
    assert Retriever(library, "line", Bm25(k1=0.9)).similarity == Bm25(k1=0.9)


def test_bm25_names_return_equal_scores(library) -> None:
    for query in ("river bank", "长江", "最长的茶"):
        one, other = (
            Retriever(library, "line", name).retrieve(query) for name in ("bm25", "bm25_chinese")
        )
        assert [(r.node, r.score) for r in one] == [(r.node, r.score) for r in other] != []


def test_unknown_similarity_raises() -> None:
    with pytest.raises(
        ValueError, match=r"unknown similarity 'bm52'; known: 'bm25', .* and 'auto' for"
    ):
        get_similarity("bm52")


@pytest.mark.parametrize("similarity", [5, len, Bm25])
def test_similarity_of_wrong_type_raises(similarity: object) -> None:
    with pytest.raises(TypeError, match=r"'exact',.* a function .*, or an object with open\(\)"):
        get_similarity(similarity)
