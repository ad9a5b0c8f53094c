"""The table of nodes: changes, restored arrays and filters."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters
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
    assert list(restored.ids) == list(plain.ids)
    assert len(restored.rows) == len(plain.rows)
    assert restored.alive.tolist() == plain.alive.tolist()
    assert restored.orders.tolist() == plain.orders.tolist()
    for table in (restored, plain):
        ids = [*table.rows]
        rows = table.snapshot(parse_filters(None)).rows_of(ids)
        parents = table.snapshot(parse_filters(None)).parents.take(rows)
        assert parents == [node_id[:1] or None for node_id in ids]
    for filters in (
        *({"n": 1}, {"n": True}, {"day": {"gt": datetime(2024, 1, 1)}}, {"tags": "a"}),
        *({"not": {"n": 1}}, {"document.id": "d1"}),
    ):
        conditions = parse_filters(filters)
        got, expected = restored.matching(conditions), plain.matching(conditions)
        assert got is not None
        assert expected is not None
        assert (got & restored.alive).tolist() == (expected & plain.alive).tolist()
