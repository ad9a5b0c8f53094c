"""Ids by row: restored ids are found, and later rows follow."""

import numpy as np

from nodekin.retrievers.indexes.row_ids import RowIds


def test_restored_ids_are_found_with_later_ids() -> None:
    ids = RowIds()
    ids.extend(["tea", "cup", "tea", "茶"])  # the first row of tea is empty
    alive = np.array([False, True, True, True, True, True])
    restored = RowIds.from_arrays(ids.arrays(alive[:4]))
    assert restored.find_all(["茶", "tea", "pot"]) == [3, 2, -1]
    restored.extend(["pot", "cup"])
    assert [restored.find(name) for name in ("pot", "cup", "milk")] == [4, 5, -1]
    assert restored.take(np.array([5, 0, 3, 4]), alive) == ["cup", "tea", "茶", "pot"]
    assert restored.find("tea") == 2
    again = RowIds.from_arrays(restored.arrays(alive & (np.arange(6) != 1)))
    assert len(again) == 6
    assert again.find_all(["tea", "cup", "茶", "pot"]) == [2, 5, 3, 4]
