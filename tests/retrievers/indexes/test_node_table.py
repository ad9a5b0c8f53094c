"""The table of nodes: any history, restored from its arrays, filters as without a file."""

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters
from nodekin.retrievers.indexes import node_table
from nodekin.retrievers.indexes.node_table import NodeIds, NodeTable

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
def test_tables_come_back_after_any_history(steps: list) -> None:
    restored, plain = NodeTable(), NodeTable()
    for what, given_ in steps:
        if what == "add":
            nodes = [
                Node("", data, id=i, order=order, document_id=f"d{order % 3}")
                for i, data, order in given_
            ]
            nodes = [*{node.id: node for node in nodes}.values()]
            for table in (restored, plain):
                table.remove([node.id for node in nodes])
                table.add(nodes)
        elif what == "remove":
            assert restored.remove(given_) == plain.remove(given_)
        elif what == "compact":
            restored.compact()
            plain.compact()
        elif what == "load":
            restored = NodeTable.from_arrays(restored.arrays())
        else:
            same_tables(restored, plain)
    same_tables(restored, plain)
    same_tables(NodeTable.from_arrays(restored.arrays()), plain)


def same_tables(restored: NodeTable, plain: NodeTable) -> None:
    assert list(restored.ids) == list(plain.ids)
    assert restored.living == plain.living
    assert restored.alive.tolist() == plain.alive.tolist()
    assert restored.orders.tolist() == plain.orders.tolist()
    for filters in (
        *({"n": 1}, {"n": True}, {"day": {"gt": datetime(2024, 1, 1)}}, {"tags": "a"}),
        *({"not": {"n": 1}}, {"document.id": "d1"}),
    ):
        conditions = parse_filters(filters)
        got, expected = restored.matching(conditions), plain.matching(conditions)
        assert got is not None
        assert expected is not None
        assert (got & restored.alive).tolist() == (expected & plain.alive).tolist()


def test_values_that_no_file_can_hold() -> None:
    table = NodeTable()
    table.add([Node("", {"what": object()}, id="a")])
    with pytest.raises(TypeError, match="object"):
        table.arrays()


@pytest.mark.parametrize("missing", NodeTable().arrays())
def test_arrays_that_are_not_all_there(missing: str) -> None:
    arrays = NodeTable().arrays()
    del arrays[missing]
    with pytest.raises(KeyError, match=missing):
        NodeTable.from_arrays(arrays)


@pytest.mark.parametrize("other", NodeTable().arrays())
def test_arrays_that_do_not_fit(other: str) -> None:
    one, two = NodeTable(), NodeTable()
    one.add([Node("", {"n": 1}, id="1")])
    two.add([Node("", {"n": i}, id=f"0{i}", document_id=f"{i}") for i in range(20)])
    with pytest.raises(ValueError, match=r"fit|packed|characters|decode"):
        NodeTable.from_arrays({**two.arrays(), other: one.arrays()[other]})


IDS = st.lists(
    st.text("ab\ud800", max_size=3) | st.text("ab", min_size=16, max_size=16), unique=True
)


@given(IDS, st.lists(IDS, max_size=4), st.data())
def test_ids_and_rows_after_any_history(first, later, data) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_table, "_RECENT", 2)
        before = NodeIds()
        before.extend(first)
        ids = NodeIds.from_arrays(before.arrays())
        plain, alive = list(first), [True] * len(first)
        for some in later:
            wanted = data.draw(st.lists(st.sampled_from([*plain, "no"]), max_size=4))
            expected = {i: row for row, i in enumerate(plain) if i in wanted and alive[row]}
            assert ids.rows_of(wanted, alive.__getitem__) == expected
            for row, i in enumerate(plain):  # what comes again replaces what was there
                alive[row] = alive[row] and i not in some
            ids.extend(some)
            plain += some
            alive += [True] * len(some)
            assert list(ids) == plain
            rows = np.flatnonzero(alive)
            assert ids.take(rows) == [plain[row] for row in rows]
            assert list(ids.selected(rows)) == ids.take(rows)
            assert [ids[row] for row in range(len(plain))] == ids[:] == plain
