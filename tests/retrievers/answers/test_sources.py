import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Node
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.answers.sources import merge_results

TEXT = "".join(chr(0x4E00 + n) for n in range(60))


def span(start: int, end: int, document: str = "a", group: str = "g") -> ScoredNode:
    text = TEXT[start:end]
    node = Node(
        text, start=start, end=end, document_id=document, group=group, id=f"{group}{start}-{end}"
    )
    return ScoredNode(node, 1.0)


def joined(*results: ScoredNode, longest: int = 1000) -> tuple[list[str], list[tuple[str, str]]]:
    sources, omitted = merge_results(results, lambda source: len(source.text) <= longest)
    reasons = [(item.result.node.text, item.reason) for item in omitted]
    return [source.text for source in sources], reasons


@pytest.mark.parametrize(
    ("results", "texts"),
    [
        ([span(10, 20), span(40, 45), span(15, 25), span(5, 12)], [TEXT[5:25], TEXT[40:45]]),
        ([span(0, 10), span(20, 30), span(8, 22)], [TEXT[0:30]]),
        ([span(0, 10), span(10, 20)], [TEXT[0:10], TEXT[10:20]]),
        ([span(0, 10), span(5, 15, document="b")], [TEXT[0:10], TEXT[5:15]]),
        (
            [span(0, 10), ScoredNode(Node(TEXT[5:15], {}, "Q and A", 5, 15), 1.0)],
            [TEXT[0:10], "Q and A"],
        ),
    ],
)
def test_overlapping_spans_merge_at_the_best_rank(results, texts) -> None:
    assert joined(*results) == (texts, [])


def test_too_long_sources_are_not_merged() -> None:
    assert joined(span(0, 10), span(5, 15), longest=12)[0] == [TEXT[0:10], TEXT[5:15]]


def test_equal_and_empty_texts_are_omitted() -> None:
    results = [span(0, 5), ScoredNode(Node(f" {TEXT[0:5]}\n"), 1.0), ScoredNode(Node("  "), 1.0)]
    assert joined(*results)[1] == [(f" {TEXT[0:5]}\n", "duplicate"), ("  ", "empty")]


spans = st.tuples(st.integers(0, 50), st.integers(1, 10), st.sampled_from("ab"))


@given(st.lists(spans, max_size=10), st.integers(5, 60))
def test_each_result_is_used_or_omitted_once(drawn, longest) -> None:
    results = [
        span(start, start + length, document, group=str(at))
        for at, (start, length, document) in enumerate(drawn)
    ]
    sources, omitted = merge_results(results, lambda s: len(s.text) <= longest)
    ids = [r.node.id for s in sources for r in (s.result, *s.merged)]
    ids += [item.result.node.id for item in omitted]
    assert sorted(ids) == sorted(result.node.id for result in results)
    for source in sources:
        assert source.text in TEXT
        assert all(r.node.text in source.text for r in (source.result, *source.merged))
    for item in omitted:
        assert any(item.result.node.text in source.text for source in sources)
