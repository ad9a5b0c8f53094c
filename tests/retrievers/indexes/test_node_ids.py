"""Ids by row, and rows by id, whatever comes from a file and whatever came later."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes import node_ids
from nodekin.retrievers.indexes.node_ids import NodeIds

IDS = st.lists(st.text("ab\ud800", max_size=3), unique=True)


@given(IDS, st.lists(IDS, max_size=4), st.data())
def test_ids_and_rows_after_any_history(first, later, data) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_ids, "_RECENT", 2)
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
