"""Results with and without keywords, and near-duplicate results."""

import pytest
from support.fixed_retriever import ids, scored

from nodekin.nodegraph import Node
from nodekin.retrievers.rerankers.keyword_filter import KeywordFilter, NearDuplicateFilter
from nodekin.retrievers.rerankers.reranker import Reranker
from nodekin.retrievers.results import ScoredNode

TEXTS = {
    "en": "The Rivers of China: green tea, and running shoes.",
    "zh": "长江与黄河，还有 iPhone 手机。",
    "c": "C++ and C# are languages; a driver wrote it for $5.",
}


def found() -> list[ScoredNode]:
    return scored([Node(text, id=name) for name, text in TEXTS.items()])


def kept(*args, **kwargs) -> list[str]:
    return [r.node.id for r in KeywordFilter(*args, **kwargs).rerank(found(), "q")]


@pytest.mark.parametrize(
    ("keyword", "names"),
    [
        ("river", ["en"]),
        ("RIVERS", ["en"]),
        ("rive", []),
        ("run", ["en"]),
        ("green tea", ["en"]),
        ("tea green", []),
        ("长江", ["zh"]),
        ("江", ["zh"]),
        ("江黄", []),
        ("《长江》", ["zh"]),
        ("iPhone手机", ["zh"]),
        ("ｉＰｈｏｎｅ", ["zh"]),
        ("c++", ["c"]),
        ("c", []),
        ("driver", ["c"]),
        ("$", ["c"]),
        ("a" * 50, []),
        ("and", ["en", "c"]),
    ],
)
def test_keyword_filter_by_one_keyword(keyword, names) -> None:
    assert kept(required=keyword) == names
    assert kept(excluded=[keyword]) == [name for name in TEXTS if name not in names]


def test_keyword_filter_requires_all_and_excludes_any() -> None:
    assert kept(["green", "shoe"]) == ["en"]
    assert kept(["green", "长江"]) == []
    assert kept([], ["green", "长江"]) == ["c"]
    assert kept("and", "rivers") == ["c"]
    assert kept() == list(TEXTS)


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"required": [3]}, TypeError, "required keywords must be texts, got 3"),
        ({"excluded": ["tea", " "]}, ValueError, "has a blank keyword"),
        ({"require": ["tea"]}, TypeError, "no setting 'require'; it has 'required'"),
    ],
)
def test_keyword_filter_with_invalid_argument_raises(settings, error, says) -> None:
    with pytest.raises(error, match=says):
        Reranker("KeywordFilter", **settings)


def test_keywords_are_compared_in_language_of_text() -> None:
    german = Node("Die Königinnen reisten durch die Länder, und der Tee war kalt.", id="de")
    english = Node("The queens travelled in their countries with the tea.", id="en")
    results = [ScoredNode(german, 2.0), ScoredNode(english, 1.0)]

    def passing(keyword: str) -> list[str]:
        return [r.node.id for r in KeywordFilter(required=keyword).rerank(results, "q")]

    assert passing("kalten") == passing("Land") == passing("der Tee") == ["de"]
    assert passing("queen") == passing("country") == ["en"]
    assert passing("Lan") == passing("reisten durch das Land") == []


# Near-duplicates

PAGE = (
    "The river Nile is the longest river of Africa. It rises in the highlands of Ethiopia and at "
    "the great lakes, and flows north to the Mediterranean Sea, some 6,650 kilometres away."
)
COPY = PAGE.replace("some 6,650 kilometres", "6650 km").upper()
PAGE_ZH = "尼罗河是非洲最长的河流，发源于埃塞俄比亚高原和大湖地区，向北流入地中海，全长约6650公里。"
COPY_ZH = PAGE_ZH.replace("约6650公里", "6,650多公里").replace("，", ", ")


def results(*texts: str) -> list[ScoredNode]:
    return scored([Node(text, id=f"n{place}") for place, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([PAGE, COPY, PAGE_ZH, COPY_ZH, PAGE], ["n0", "n2"]),
        ([PAGE, "The river Rhine is a river of Europe. It rises in the Alps.", PAGE_ZH], None),
        ([PAGE, PAGE[: len(PAGE) // 2]], None),
        (["tea", "Tea ", "ＴＥＡ", "teas"], ["n0", "n3"]),
        (["", " ", "x"], ["n0", "n2"]),
        ([], []),
    ],
)
def test_near_duplicate_texts_collapse(texts: list[str], expected: list[str] | None) -> None:
    selected = NearDuplicateFilter().rerank(results(*texts), "q")
    assert ids(selected) == (expected or [f"n{place}" for place in range(len(texts))])


def test_duplicates_stay_in_evidence() -> None:
    (first,) = NearDuplicateFilter().rerank(results(PAGE, COPY), "q")
    assert first.score == 2.0
    assert [match.node.id for match in first.evidence] == ["n0", "n1"]


@pytest.mark.parametrize("threshold", [0, -1, 1.5])
def test_threshold_out_of_range_raises(threshold: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        NearDuplicateFilter(threshold)
