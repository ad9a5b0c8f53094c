"""The inner loops of a search, in the part of Python that numba compiles.

It is a plain function as well, with the same results. It does sums in the order in which
``max_score`` does them with NumPy, so that scores are the same to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from .impact_lists import Floats, Ints, Places
from .node_table import Mask, Orders

ROUNDING = 1 + 1e-9
"""Sums in another order differ by less than this factor."""

# Looking a row up in a list costs about as much as adding so many rows of the list (measured at
# 100,000 short texts; rows that are looked up are rarely in the processor's cache).
LOOK_UP_COST = 64

# Rows that are met are listed until a term has this share of all rows, and listing them costs more
# than going through all rows in the end.
LISTED_SHARE = 4


def search(
    starts: Places,
    rows: Ints,
    codes: Ints,
    values: Floats,
    highest: Floats,
    slots: Places,
    weights: Floats,
    sums: Floats,
    touched: Ints,
    allowed: Mask,
    allowed_count: int,
    orders: Orders,
    best_rows: Ints,
    best_scores: Floats,
) -> int:
    """Put the rows with the highest sums into ``best_rows``, best first, and their sums.

    Terms are added one after the other, the heaviest first. As soon as all remaining terms
    together can't lift a new row among the best, and few rows can still get there, these are
    looked up in the lists of the rest (see ``max_score``). A row that is certainly not among the
    best is known by a sum that as many other rows have reached as are wanted.

    Args:
        starts: See ``ImpactArrays``, like the four that follow.
        rows: The same.
        codes: The same.
        values: The same.
        highest: The same.
        slots: See ``QueryLists``.
        weights: The weight of each term, above 0, the highest first.
        sums: Zeros, by row; zeros again afterwards.
        touched: Room for as many rows, and one more.
        allowed: Which rows count.
        allowed_count: How many these are; -1 where all rows count.
        orders: Breaks ties: lower goes first. As long as there are rows.
        best_rows: Has as many places as rows are wanted.
        best_scores: The same.

    Returns:
        How many rows there are.
    """

    def put(heap: Floats, size: int, value: float) -> int:
        """Put a value into a heap of the highest ones, with the lowest in front."""
        if size < len(heap):
            place = size
            while place > 0 and heap[(place - 1) // 2] > value:
                heap[place] = heap[(place - 1) // 2]
                place = (place - 1) // 2
            heap[place] = value
            return size + 1
        place = 0
        child = 1
        while child < size:
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= value:
                break
            heap[place] = heap[child]
            place = child
            child = 2 * place + 1
        heap[place] = value
        return size

    def insert(row: int, value: float, size: int) -> int:
        """Put a row among the best, ties by order."""
        place = size
        if size == len(best_rows):
            place = size - 1
            last = best_scores[place]
            if value < last or (value == last and orders[row] > orders[best_rows[place]]):
                return size
        while place > 0 and (
            best_scores[place - 1] < value
            or (best_scores[place - 1] == value and orders[best_rows[place - 1]] > orders[row])
        ):
            best_rows[place] = best_rows[place - 1]
            best_scores[place] = best_scores[place - 1]
            place -= 1
        best_rows[place] = row
        best_scores[place] = value
        return min(size + 1, len(best_rows))

    def find(row: int, begin: int, end: int) -> int:
        """Return the place of the first row from this one on."""
        if begin == end:
            return end
        # Rows are spread more or less evenly: the search begins where this one would be.
        place = min(begin + row * (end - begin) // len(orders), end - 1)
        low, high, step = place, place, 1
        if rows[place] < row:
            low = place + 1
            while low + step < end and rows[low + step] < row:
                low += step + 1
                step *= 2
            high = min(low + step, end)
        else:
            while high - step >= begin and rows[high - step] >= row:
                high -= step
                step *= 2
            low = max(high - step + 1, begin)
        while low < high:
            middle = (low + high) // 2
            if rows[middle] < row:
                low = middle + 1
            else:
                high = middle
        return low

    terms, limit, total = len(slots), len(best_rows), len(orders)
    filtered = allowed_count >= 0
    ceilings = weights.copy()  # what a term and all after it can add to a row
    above, rest = 0.0, 0
    for term in range(terms - 1, -1, -1):
        slot = slots[term]
        above += weights[term] * highest[slot]
        ceilings[term] = above * ROUNDING
        rest += starts[slot + 1] - starts[slot]
    heap = best_scores.copy()
    least = -math.inf  # as many rows as are wanted have this sum, or more
    count, done, size = 0, 0, 0
    listed, looking_up = True, False
    if filtered and 4 * allowed_count < rest:
        looking_up = True
        for row in range(total):
            if allowed[row]:
                touched[count] = row
                count += 1
    while done < terms and not looking_up:
        begin, end = starts[slots[done]], starts[slots[done] + 1]
        if listed and least > ceilings[done] and 2 * count < rest:
            bound, reachable = least / ROUNDING - ceilings[done], 0
            for at in range(count):
                reachable += sums[touched[at]] >= bound
            looking_up = reachable * LOOK_UP_COST < rest
            if looking_up:
                break
        listed = listed and (end - begin) * LISTED_SHARE <= total
        weight, size = weights[done], 0
        for at in range(begin, end):
            row = rows[at]
            before = sums[row]
            value = before + weight * values[codes[at]]
            sums[row] = value
            if listed:
                touched[count] = row  # overwritten by the next one where it does not count
                count += before == 0.0  # no branch, which the processor would guess wrong
            if value > least and (not filtered or allowed[row]):
                size = put(heap, size, value)
                if size == limit:
                    least = max(least, heap[0])
        rest -= end - begin
        done += 1
    found = 0
    least /= ROUNDING
    if not looking_up:
        for at in range(count if listed else total):
            row = touched[at] if listed else at
            value = sums[row]
            sums[row] = 0.0
            if value >= least and value > 0.0 and (not filtered or allowed[row]):
                found = insert(row, value, found)
        return found
    scores = np.empty(count)
    kept = 0
    for at in range(count):
        row = touched[at]
        value = sums[row]
        sums[row] = 0.0
        if value >= least - ceilings[done] and (not filtered or allowed[row]):
            touched[kept], scores[kept] = row, value
            kept += 1
    for term in range(done, terms):
        begin, end = starts[slots[term]], starts[slots[term] + 1]
        count, kept, size = kept, 0, 0
        for at in range(count):
            row, value = touched[at], scores[at]
            if value < least - ceilings[term]:
                continue
            place = find(row, begin, end)
            if place < end and rows[place] == row:
                value += weights[term] * values[codes[place]]
            touched[kept], scores[kept] = row, value
            kept += 1
            if value > least:
                size = put(heap, size, value)
                if size == limit:
                    least = max(least, heap[0] / ROUNDING)
    for at in range(kept):
        if scores[at] >= least and scores[at] > 0.0:
            found = insert(touched[at], scores[at], found)
    return found
