"""The inner loops of a search, in the part of Python that numba compiles.

Each is a plain function as well, with the same results. They do sums in the order in which
``max_score`` does them with NumPy, so that scores are the same to the last bit.
"""

from __future__ import annotations

import math

from .max_score import Floats, Ints
from .node_table import Mask, Orders


def add_term(
    rows: Ints, impacts: Floats, weight: float, sums: Floats, touched: Ints, count: int
) -> int:
    """Add a term to the sums of its rows; return how many rows have been touched by now.

    Args:
        rows: The rows of the term.
        impacts: What it adds to each, for a weight of 1.
        weight: The weight.
        sums: The sums, by row.
        touched: Gets the rows whose sum was 0, from ``count`` on; has room for one more.
        count: How many rows it has.
    """
    for at in range(len(rows)):
        row = rows[at]
        before = sums[row]
        sums[row] = before + weight * impacts[at]
        touched[count] = row  # overwritten by the next one where it does not count
        count += before == 0.0  # no branch, which the processor would guess wrong
    return count


def lowest_of_best(
    sums: Floats, touched: Ints, count: int, allowed: Mask, filtered: bool, best: Floats
) -> float:
    """Return the lowest of the highest sums, as many as ``best`` has places; -inf if there are
    fewer. Only allowed rows count where ``filtered`` is given.
    """
    size = 0
    for at in range(count):
        row = touched[at]
        if filtered and not allowed[row]:
            continue
        value = sums[row]
        if size == len(best):
            if value <= best[size - 1]:
                continue
            place = size - 1
        else:
            place = size
            size += 1
        while place > 0 and best[place - 1] < value:
            best[place] = best[place - 1]
            place -= 1
        best[place] = value
    return best[size - 1] if size == len(best) else -math.inf


def take_best(
    sums: Floats,
    touched: Ints,
    count: int,
    allowed: Mask,
    filtered: bool,
    orders: Orders,
    rows: Ints,
    scores: Floats,
) -> int:
    """Put the rows with the highest sums into ``rows``, as many as it has places, best first.

    Ties go by order. All sums are zero afterwards.

    Returns:
        How many there are.
    """
    size = 0
    for at in range(count):
        row = touched[at]
        value = sums[row]
        sums[row] = 0.0
        if value <= 0.0 or (filtered and not allowed[row]):
            continue
        order = orders[row]
        if size == len(rows):
            last = scores[size - 1]
            if value < last or (value == last and order > orders[rows[size - 1]]):
                continue
            place = size - 1
        else:
            place = size
            size += 1
        while place > 0 and (
            scores[place - 1] < value
            or (scores[place - 1] == value and orders[rows[place - 1]] > order)
        ):
            rows[place] = rows[place - 1]
            scores[place] = scores[place - 1]
            place -= 1
        rows[place] = row
        scores[place] = value
    return size


def take_reaching(
    sums: Floats,
    touched: Ints,
    count: int,
    allowed: Mask,
    filtered: bool,
    least: float,
    rows: Ints,
    scores: Floats,
) -> int:
    """Put the rows with at least this sum into ``rows``, and their sums into ``scores``.

    All sums are zero afterwards.

    Returns:
        How many there are.
    """
    size = 0
    for at in range(count):
        row = touched[at]
        value = sums[row]
        sums[row] = 0.0
        if value >= least and not (filtered and not allowed[row]):
            rows[size] = row
            scores[size] = value
            size += 1
    return size


def look_up(
    candidates: Ints,
    scores: Floats,
    count: int,
    rows: Ints,
    counts: Ints,
    lengths: Ints,
    weight: float,
    k1: float,
    b: float,
    average_length: float,
) -> None:
    """Add a term to the scores of some rows, which are looked up among the term's.

    Args:
        candidates: The rows.
        scores: The score of each.
        count: How many there are.
        rows: The rows of the term, ascending, one at least.
        counts: How often each has it.
        lengths: How many terms a row has, by row.
        weight: The weight of the term.
        k1: See ``Saturation``.
        b: See ``Saturation``.
        average_length: See ``Saturation``; not 0.
    """
    for at in range(count):
        row = candidates[at]
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) // 2
            if rows[middle] < row:
                low = middle + 1
            else:
                high = middle
        if low < len(rows) and rows[low] == row:
            occurrences = float(counts[low])
            relative = float(lengths[row]) / average_length
            impact = occurrences * (k1 + 1) / (occurrences + k1 * (1 - b + b * relative))
            scores[at] += weight * impact
