"""Show how far a long build is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

T = TypeVar("T")


def track(
    items: Iterable[T],
    total: int,
    what: str,
    unit: str,
    show: bool | None,
    name: Callable[[T], str] | None = None,
) -> Generator[T, None, None]:
    """Pass items through, drawing a bar on stderr once it has taken two seconds.

    Args:
        items: What to pass through.
        total: How many there are.
        what: What is being done, shown beside the bar.
        unit: What one item is, in a word.
        show: True draws it in any case, False never, None where a person can see it.
        name: Names an item, to be shown behind the bar.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        yield from items
        return
    from tqdm import tqdm

    bar = tqdm(items, total=total, desc=what, unit=unit, delay=0 if show else 2.0)
    for item in bar:
        if name is not None:
            bar.set_postfix_str(name(item), refresh=False)
        yield item
