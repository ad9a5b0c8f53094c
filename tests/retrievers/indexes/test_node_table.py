"""The table of nodes: changes, restored arrays and filters."""

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters
from nodekin.retrievers.indexes import matching_rows
from nodekin.retrievers.indexes.node_table import NodeTable

TEXTS = st.text(st.characters(categories=None), max_size=6)  # lone surrogates too
METADATA = st.sampled_from(
    [
        {},
        {"day": datetime(2024, 5, 1)},
        {"tags": ["a", ("b", 1)]},
        {"n": 1},
        {"n": True, "x": "\ud800"},
    ]
)
NODES = st.lists(st.tuples(TEXTS, METADATA, st.integers(-(2**40), 2**62)), max_size=8)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NODES),
        st.tuples(st.just("remove"), st.lists(TEXTS, max_size=3)),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("filter"), st.none()),
        st.tuples(st.just("load"), st.none()),
    ),
    max_size=12,
)


@given(STEPS)
def test_restored_table_equals_table_after_any_changes(steps: list) -> None:
    restored, plain = NodeTable(), NodeTable()
    for what, given_ in steps:
        if what == "add":
            nodes = [
                Node(
                    "",
                    data,
                    id=i,
                    order=order,
                    document_id=f"d{order % 3}",
                    parent_id=i[:1] or None,
                )
                for i, data, order in given_
            ]
            nodes = [*{node.id: node for node in nodes}.values()]
            for table in (restored, plain):
                table.remove([node.id for node in nodes])
                table.add(nodes)
        elif what == "remove":
            assert restored.remove(given_) == plain.remove(given_)
        elif what == "compact":
            restored, plain = restored.compacted(), plain.compacted()
        elif what == "load":
            restored = NodeTable.from_arrays(restored.arrays())
        else:
            same_tables(restored, plain)
    same_tables(restored, plain)
    same_tables(NodeTable.from_arrays(restored.arrays()), plain)


def same_tables(restored: NodeTable, plain: NodeTable) -> None:
    rows = np.arange(len(plain))
    assert restored.ids_of(rows) == plain.ids_of(rows)
    assert restored.size == plain.size
    assert restored.alive.tolist() == plain.alive.tolist()
    ids = plain.ids_of(np.flatnonzero(plain.alive))
    assert restored.rows_of([*ids, "missing"]).tolist() == plain.rows_of([*ids, "missing"]).tolist()
    assert [restored.row_of(node_id) for node_id in ids] == np.flatnonzero(plain.alive).tolist()
    assert restored.orders.tolist() == plain.orders.tolist()
    for table in (restored, plain):
        snapshot = table.snapshot(parse_filters(None))
        assert snapshot.parents_of(ids) == [node_id[:1] or None for node_id in ids]
    assert restored.inherited.tolist() == plain.inherited.tolist()
    for filters in (
        *({"n": 1}, {"n": True}, {"day": {"gt": datetime(2024, 1, 1)}}, {"tags": "a"}),
        *({"not": {"n": 1}}, {"document.id": "d1"}),
    ):
        conditions = parse_filters(filters)
        got, expected = restored.matching(conditions), plain.matching(conditions)
        assert got is not None
        assert expected is not None
        assert (got.mask & restored.alive).tolist() == (expected.mask & plain.alive).tolist()


def numbered(first: int, last: int) -> list[Node]:
    return [Node("", {"n": n}, id=str(n), document_id=str(n)) for n in range(first, last)]


def test_matching_rows_follow_added_nodes() -> None:
    table = NodeTable()
    below = parse_filters({"n": {"lt": 3}})
    for first, last in ((0, 2), (2, 200)):
        table.add(numbered(first, last))
        found = [table.matching(below) for _ in range(2)]
        assert [np.flatnonzero(each.mask).tolist() for each in found if each] == [
            [*range(min(3, last))]
        ] * 2
    assert found[1] is not None
    assert found[1].rows is not None, "3 of 200 rows are few"
    assert found[1].rows.tolist() == [0, 1, 2]


def test_matching_rows_of_latest_filters_are_kept() -> None:
    table = NodeTable()
    table.add(numbered(0, 100))
    filters = [parse_filters({"n": n}) for n in range(100)]
    first = [table.matching(each) for each in filters]
    again = [table.matching(each) for each in reversed(filters)]
    assert [mine is other for mine, other in zip(first, reversed(again), strict=True)] == [
        *[False] * 36,
        *[True] * 64,
    ]


def test_matching_rows_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_rows, "_MAX_BYTES", 250)
    table = NodeTable()
    table.add(numbered(0, 100))
    filters = [parse_filters({"n": {"gte": n}}) for n in range(3)]
    first = [table.matching(each) for each in filters]
    latest = [table.matching(each) for each in reversed(filters[1:])]
    assert [mine is other for mine, other in zip(first[1:], reversed(latest), strict=True)] == [
        True,
        True,
    ]
    assert table.matching(filters[0]) is not first[0]


def test_children_that_are_added_in_portions_are_counted_together() -> None:
    table = NodeTable()
    nodes = [Node(f"{n}", id=f"child {n}", parent_id=str(n // 3), order=n) for n in range(12)]
    for start, end in ((0, 4), (4, 5), (5, 12)):
        table.add(nodes[start:end])
    counts = table.snapshot(parse_filters(None)).count_siblings([node.id for node in nodes])
    assert counts == [3] * 12


def test_file_has_equal_metadata_once() -> None:
    table = NodeTable()
    metadata = [{"n": number % 2} for number in range(100)]
    table.add([Node("", data, id=f"{at}", order=at) for at, data in enumerate(metadata)])
    arrays = table.arrays()
    assert bytes(arrays["metadata"]) == b'{"n":0}{"n":1}'
    restored = NodeTable.from_arrays(arrays)
    assert restored.metadata_of(np.arange(100)) == metadata
    assert restored.allowed(parse_filters({"n": 1})).tolist() == [False, True] * 50
