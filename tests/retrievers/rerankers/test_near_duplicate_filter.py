"""Near-duplicate results are merged."""

import pytest

from nodekin.nodegraph import Node
from nodekin.retrievers import NearDuplicateFilter
from nodekin.retrievers.results import Evidence, ScoredNode

PAGE = (
    "The river Nile is the longest river of Africa. It rises in the highlands of Ethiopia and at "
    "the great lakes, and flows north to the Mediterranean Sea, some 6,650 kilometres away."
)
COPY = PAGE.replace("some 6,650 kilometres", "6650 km").upper()
PAGE_ZH = "尼罗河是非洲最长的河流，发源于埃塞俄比亚高原和大湖地区，向北流入地中海，全长约6650公里。"
COPY_ZH = PAGE_ZH.replace("约6650公里", "6,650多公里").replace("，", ", ")


def results(*texts: str) -> list[ScoredNode]:
    nodes = [Node(text, id=f"n{place}", order=place) for place, text in enumerate(texts)]
    return [
        ScoredNode(node, 9.0 - place, (Evidence(node, 9.0 - place, "bm25", "q"),))
        for place, node in enumerate(nodes)
    ]


def ids(selected: list[ScoredNode]) -> list[str]:
    return [result.node.id for result in selected]


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
    assert first.score == 9.0
    assert [match.node.id for match in first.evidence] == ["n0", "n1"]


@pytest.mark.parametrize("threshold", [0, -1, 1.5, float("nan")])
def test_threshold_out_of_range_raises(threshold: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        NearDuplicateFilter(threshold)
