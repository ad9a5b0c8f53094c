"""The configuration that programs of LazyLLM have opens the store that it names."""

from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import NodeGraph, store_options

LazyConf = dict[str, Any]


def segment(kind: str, **kwargs: Any) -> LazyConf:
    return {"segment_store": {"type": kind, "kwargs": kwargs}}


def test_nothing_is_memory() -> None:
    for conf in (None, {}, {"segment_store": {}, "vector_store": {}}, segment("map")):
        assert store_options(conf) == {}
    assert store_options({"segment_store": {"type": "map"}, "vector_store": {"type": "map"}}) == {}


@pytest.mark.parametrize("kind", ["map", "sqlite"])
def test_a_file_or_folder_lasts(tmp_path: Path, kind: str) -> None:
    for uri in (tmp_path / "segments.db", tmp_path, f"{tmp_path / 'new'}/"):
        options = store_options(segment(kind, uri=uri))
        Path(options["store"]).parent.mkdir(exist_ok=True)
        with NodeGraph(**options, progress=False) as graph:
            graph.add("text")
        assert len(NodeGraph(**store_options(segment(kind, uri=uri))).document_ids()) == 1
    assert (tmp_path / "graph.nodekin").exists()


def test_a_server_and_where_its_vectors_are() -> None:
    conf = segment("postgresql", uri="postgresql://me@db/texts?schema=a")
    assert store_options(conf) == {"store": "postgresql://me@db/texts?schema=a"}
    conf["vector_store"] = {"type": "pgvector"}
    assert store_options(conf)["store"].endswith("?schema=a&vectors=pgvector")
    conf = {**segment("postgresql", uri="postgresql://db/x"), "vector_store": {"type": "pgvector"}}
    assert store_options(conf)["store"] == "postgresql://db/x?vectors=pgvector"


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        (segment("opensearch", uris=["a:9200"]), "can't be on OpenSearch yet; take one of 'map', "),
        ({"vector_store": {"type": "milvus", "kwargs": {"uri": "x.db"}}}, "on Milvus yet.*'map'"),
        ({"vector_store": {"type": "chromadb", "kwargs": {"dir": "x"}}}, "on Chroma yet"),
        ({"vector_store": {"type": "chroma"}}, "on Chroma yet"),
        ({"vector_store": {"type": "faiss"}}, "'faiss'; there is 'map', 'pgvector'"),
        ({"vector_store": {"type": "pgvector"}}, "give segment_store the type 'postgresql'"),
        ({"vector_store": {"type": "map", "kwargs": {"dir": "x"}}}, "takes no settings, not 'dir'"),
        (segment("maps"), "type 'maps'; there is 'map'"),
        (segment("map", dir="x"), "takes 'uri' alone, not 'dir'"),
        (segment("map", uri="http://x"), "takes the path of a file or folder"),
        (segment("sqlite"), "needs 'uri', a path or an address, not None"),
        (segment("postgresql", uri="db"), "needs an address like 'postgresql://"),
        ({"segments": {}}, "has the part 'segments'; it has 'segment_store'"),
        ({"segment_store": {"type": "map", "uri": "x"}}, "has 'uri'; it has a \"type\""),
        ({"segment_store": {"kwargs": {}, "type": None}}, "has the type None"),
    ],
)
def test_what_is_no_configuration_is_an_error(conf: LazyConf, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        store_options(conf)


@pytest.mark.parametrize(
    "conf", ["map", {"segment_store": "map"}, segment("map") | {"vector_store": 1}]
)
def test_what_is_no_mapping_is_an_error(conf: Any) -> None:
    with pytest.raises(TypeError, match="is a mapping, not"):
        store_options(conf)
