"""The configuration that programs of LazyLLM have opens the store that it names."""

from pathlib import Path
from typing import Any

import pytest

from nodekin.adapters.engines.store_configuration import store_options
from nodekin.nodegraph import Embedder, NodeGraph
from nodekin.nodegraph.graph_reader import as_engine
from nodekin.retrievers import Retriever

LazyConf = dict[str, Any]


def segment(kind: str, **kwargs: Any) -> LazyConf:
    return {"segment_store": {"type": kind, "kwargs": kwargs}}


def vectors(kind: str, **kwargs: Any) -> LazyConf:
    return {"vector_store": {"type": kind, "kwargs": kwargs}}


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
        assert len(NodeGraph(**store_options(segment(kind, uri=uri))).reader.document_ids()) == 1
    assert (tmp_path / "graph.nodekin").exists()


def test_a_server_and_where_its_vectors_are() -> None:
    conf = segment("postgresql", uri="postgresql://me@db/texts?schema=a")
    assert store_options(conf) == {"store": "postgresql://me@db/texts?schema=a"}
    conf["vector_store"] = {"type": "pgvector"}
    assert store_options(conf)["store"].endswith("?schema=a&vectors=pgvector")
    conf = {**segment("postgresql", uri="postgresql://db/x"), "vector_store": {"type": "pgvector"}}
    assert store_options(conf)["store"] == "postgresql://db/x?vectors=pgvector"


@pytest.mark.parametrize(
    ("conf", "index"),
    [
        (vectors("milvus", uri="/a b/x.db"), "milvus:///a%20b/x.db"),
        (vectors("milvus", uri="x.db"), "milvus:x.db"),
        (
            vectors("milvus", uri="10.0.0.1:19530", db_name="d"),
            "milvus://10.0.0.1:19530?database=d",
        ),
        (
            vectors(
                "milvus",
                uri="https://db:443",
                client_kwargs={"user": "m@e", "password": "a/b", "timeout": 5},
            ),
            "milvus://m%40e:a%2Fb@db:443?secure=true&timeout=5",
        ),
        (vectors("chroma", uri="db:8000"), "chroma://db:8000"),
        (
            vectors("chromadb", uri="http://db:8000", client_kwargs={"ssl": True, "tenant": "t"}),
            "chroma://db:8000?secure=true&tenant=t",
        ),
        (vectors("chromadb", dir="/path/to"), "chroma:///path/to"),
        (vectors("opensearch", uris=["a:9200", "b:9201"]), "opensearch://a:9200,b:9201"),
        (
            vectors(
                "opensearch",
                uris="https://a:9200",
                client_kwargs={
                    **{"user": "m@e", "password": "a/b", "timeout": 5},
                    **{"verify_certs": False, "ca_certs": "/a b.pem"},
                },
            ),
            "opensearch://m%40e:a%2Fb@a:9200?secure=true&verify=false&ca=%2Fa+b.pem&timeout=5",
        ),
        (
            vectors(
                "opensearch",
                uris=["a:9200"],
                client_kwargs={"http_auth": ("me", "x:y"), "use_ssl": False, "verify_certs": False},
            ),
            "opensearch://me:x%3Ay@a:9200",
        ),
    ],
)
def test_vectors_in_an_engine_beside_the_store(conf: LazyConf, index: str) -> None:
    assert store_options({**segment("map", uri="x.db"), **conf}) == {
        "store": "x.db",
        "index": index,
    }
    assert as_engine(index).label.startswith(("Milvus ", "Chroma ", "OpenSearch "))


@pytest.mark.parametrize("store", ["x.db", "postgresql://db/x"])
def test_opensearch_searches_what_another_store_has(
    store: str, caplog: pytest.LogCaptureFixture
) -> None:
    conf = segment("opensearch", uris=["a:9200"], uri=store, index_kwargs={"shards": 3})
    index = "opensearch://a:9200"
    assert store_options(conf) == {"store": store, "index": index}
    caplog.clear()
    assert store_options({**conf, **vectors("opensearch", uris=["a:9200"])})["index"] == index
    assert "is not used: vector_store" not in caplog.text
    both = {**conf, **vectors("milvus", uri="m:19530")}
    assert store_options(both) == {"store": store, "index": "milvus://m:19530"}
    assert "the OpenSearch of segment_store is not used: vector_store of type 'mil" in caplog.text
    assert store_options({**conf, **vectors("map")}) == {"store": store}


def test_the_example_of_the_guide_opens_a_graph(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("chromadb", reason="no chromadb: pip install nodekin[chroma]")
    hnsw = {"hnsw": {"space": "cosine", "ef_construction": 200}}
    conf = {
        "segment_store": {"type": "map", "kwargs": {"uri": str(tmp_path / "sqlite3.db")}},
        "vector_store": {
            "type": "chromadb",
            "kwargs": {"dir": str(tmp_path / "vectors"), "index_kwargs": hnsw},
        },
    }
    options = store_options(conf)
    assert "index_kwargs of the vector_store of type 'chromadb' are not used" in caplog.text
    embed = Embedder(lambda texts: [[1.0, len(text)] for text in texts], "lengths")
    with NodeGraph(**options, embed=embed, progress=False) as graph:
        graph.add(["tea", "a longer text"])
        results = Retriever(graph, "ROOT", "cosine", top_k=1)("ten")
        assert [result.node.text for result in results] == ["tea"]
    assert (tmp_path / "vectors").is_dir()


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        (segment("opensearch", uris=["a:9200"]), "needs 'uri', too, for what has the documents"),
        (vectors("opensearch"), "needs 'uris', a list of 'host:9200'"),
        (vectors("opensearch", uris=["a"]), "needs 'uris', a list of 'host:9200'"),
        (vectors("opensearch", uris=["a:1"], uri="x"), "have 'uri'; they may have 'uris', "),
        (vectors("opensearch", uris=["a:1"], client_kwargs={"pool": 2}), "have 'pool'; they may"),
        (vectors("milvus"), "needs 'uri', 'host:19530' or the path of a file"),
        (vectors("milvus", uri="x.db", other=1), "have 'other'; they may have 'uri', "),
        (vectors("milvus", uri="ftp://me:hush@x"), "is written 'host:port'"),
        (vectors("milvus", uri="x.db", client_kwargs={"user": "me"}), "takes no 'user'"),
        (vectors("milvus", uri="x:1", client_kwargs={"pool": 2}), "have 'pool'; they may have"),
        (vectors("chroma"), "needs 'uri', 'host:8000', or 'dir', a folder"),
        (vectors("chromadb", uri="folder"), "or 'dir', a folder"),
        ({"vector_store": {"type": "faiss"}}, "'faiss'; there is 'map', 'pgvector', 'milvus'"),
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
