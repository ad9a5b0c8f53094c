"""Every store keeps what a graph relies on."""

import pytest
from engines import Engine

from nodekin.nodegraph import NodeStore
from nodekin.nodegraph.memory_store import as_store
from nodekin.nodegraph.testing import check_store


@pytest.mark.slow
def test_a_store_keeps_what_a_graph_relies_on(engine: Engine) -> None:
    places = {}

    def opened(place: object) -> NodeStore:
        store = as_store(place)  # type: ignore[arg-type]
        places[id(store)] = store, place
        return store

    check_store(
        lambda: opened(engine.options().get("store")),
        reopen=(lambda store: opened(places[id(store)][1])) if engine.lasting else None,
    )
