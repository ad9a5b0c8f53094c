import functools
import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.embedding_models import (
    Call,
    LangChainAsync,
    LangChainModel,
    LlamaIndexModel,
    Own,
    lengths,
    of_queries,
)

from nodekin.nodegraph import Embedder, EmbeddingError
from nodekin.nodegraph.models.embedder import as_embedder, as_embedders, check_vectors


async def coroutine(texts):
    return lengths(texts)


class AsyncCall:
    async def __call__(self, texts):
        return lengths(texts)


class Encodes:
    """A model like sentence-transformers."""

    def __call__(self, features):
        raise AssertionError("the model itself is not what embeds")

    def encode_document(self, inputs, show_progress_bar=None, convert_to_numpy=False):
        assert (show_progress_bar, convert_to_numpy) == (False, True)
        return np.array(lengths(inputs))

    def encode_query(self, inputs, **settings):
        return np.array([[len(text), 2] for text in inputs])

    encode = __call__


class EncodesPlainly:
    def encode(self, sentences):
        return lengths(sentences)


def marked(mark):
    return lambda texts: [[len(text), mark] for text in texts]


async def async_queries(texts):
    return marked(8)(texts)


FORMS = {  # models, and the marks of passages, queries and async queries
    "function": (lengths, 1, 1, 1),
    "partial": (functools.partial(lengths), 1, 1, 1),
    "method": (Own().embed, 1, 1, 1),
    "callable object": (Call(), 1, 1, 1),
    "langchain": (LangChainModel(), 1, 2, 2),
    "langchain, async": (LangChainAsync(), 1, 2, 3),
    "llama_index": (LlamaIndexModel(), 1, 2, 3),
    "sentence-transformers": (Encodes(), 1, 2, 2),
    "encode alone": (EncodesPlainly(), 1, 1, 1),
    "object with embed": (Own(), 1, 2, 3),
    "Embedder": (Embedder(lengths, "n", embed_queries=of_queries), 1, 2, 2),
    "Embedder of a model": (Embedder(LangChainAsync(), name="n"), 1, 2, 3),
    "own async queries": (Embedder(LangChainModel(), aembed_queries=async_queries), 1, 2, 8),
    "own queries": (Embedder(LangChainAsync(), embed_queries=marked(7)), 1, 7, 7),
    "async": (coroutine, 1, 1, 1),
    "async partial": (functools.partial(coroutine), 1, 1, 1),
    "async object": (AsyncCall(), 1, 1, 1),
}


@pytest.mark.parametrize("form", FORMS)
async def test_embedder_accepts_all_kinds_of_models(form):
    model, passages, queries, async_queries = FORMS[form]
    embedder = as_embedder(model)
    texts = ["tea", "water"]
    assert embedder.passages(texts).tolist() == marked(passages)(texts)
    assert embedder.queries(texts).tolist() == marked(queries)(texts)
    assert (await embedder.aqueries(texts)).tolist() == marked(async_queries)(texts)
    assert embedder.passages(texts).dtype == np.float32


def test_as_embedder_keeps_settings():
    embedder = Embedder(lengths, "lengths", batch_size=5)
    assert as_embedder(embedder) is embedder
    assert (embedder.embed, embedder.name, embedder.batch_size) == (lengths, "lengths", 5)
    assert (as_embedder(Own()).batch_size, as_embedder(Own()).name) == (3, "own")


@pytest.mark.parametrize("model", [lengths, Call(), LangChainModel(), Encodes(), Own()])
def test_embedder_is_pickled_with_model(model):
    other = pickle.loads(pickle.dumps(as_embedder(model)))
    assert other.queries(["tea"]).tolist() == as_embedder(model).queries(["tea"]).tolist()
    assert other.name == as_embedder(model).name


def test_as_embedders_accepts_mapping():
    both = as_embedders({"a": lengths, "b": Own()})
    assert list(both) == ["a", "b"]
    assert both["b"].name == "own"
    assert list(as_embedders(lengths)) == ["default"]
    assert as_embedders(None) == {}


REFUSED = {
    "name": (Path("intfloat/e5"), "name of a model.*SentenceTransformer\\('intfloat/e5'\\)"),
    "class": (LangChainModel, r"a class; give a model of it: LangChainModel\(\.\.\.\)"),
    "client": (
        SimpleNamespace(embeddings=SimpleNamespace(create=print)),
        'OpenAIEmbedder\\("model-name", client=client\\).*nodekin.adapters.openai',
    ),
    "number": (3, "an embedding model must be .*, got 3"),
    "None": (None, "an embedding model must be .*, got None"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_unsupported_model_raises(what):
    model, says = REFUSED[what]
    with pytest.raises(TypeError, match=says):
        as_embedder(model)
    with pytest.raises(TypeError, match=says):
        Embedder(model, "name")


@pytest.mark.parametrize(
    ("embed", "error", "says"),
    [
        ({1: lengths}, TypeError, "keys of embed must be names, got 1"),
        ({"": lengths}, TypeError, "keys"),
        ([lengths], TypeError, "an embedding model must be"),
        ({"a": Path("e5")}, TypeError, "name of a model"),
    ],
)
def test_invalid_mapping_of_models_raises(embed, error, says):
    with pytest.raises(error, match=says):
        as_embedders(embed)


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be 1 or more, got 0"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer, got 2.5"),
        ({"num_workers": -1}, ValueError, "num_workers must be 0 or more"),
    ],
)
def test_invalid_settings_raise(settings, error, says):
    with pytest.raises(error, match=says):
        Embedder(lengths, **settings)


class Tensor:
    """A tensor like one of torch on a device, with a gradient."""

    def __init__(self, values):
        self.detach = lambda: SimpleNamespace(cpu=lambda: self)
        self.float = lambda: self
        self.numpy = lambda: np.array(values)


GOOD = {
    "lists": [[1, 2], [3, 4]],
    "array": np.array([[1, 2], [3, 4]], np.float64),
    "half": np.array([[1, 2], [3, 4]], np.float16),
    "arrays": [np.array([1, 2]), np.array([3, 4])],
    "tensor": Tensor([[1, 2], [3, 4]]),
    "tensors": [Tensor([1, 2]), Tensor([3, 4])],
    "generator": (np.array(row) for row in ([1, 2], [3, 4])),
}


@pytest.mark.parametrize("what", GOOD)
def test_check_vectors_accepts_many_forms(what):
    vectors = check_vectors(GOOD[what], ["a", "b"], "m")
    assert vectors.tolist() == [[1, 2], [3, 4]]
    assert vectors.dtype == np.float32


BAD = {
    "too few": ([[1, 2]], r"shape \(1, 2\)"),
    "too many": ([[1, 2]] * 3, r"shape \(3, 2\)"),
    "ragged": ([[1, 2], [3]], r"\[\[1, 2\], \[3\]\]"),
    "flat": ([1, 2], r"shape \(2,\); it must return an array \(2 texts, dimension\)"),
    "no dimension": ([[], []], r"shape \(2, 0\)"),
    "None": (None, "None"),
    "text": ("vector", "'vector'"),
    "texts": ([["a"], ["b"]], "'a'"),
    "mapping": ({"data": [[1.0]]}, "'data'"),
}


@pytest.mark.parametrize("what", BAD)
def test_invalid_vectors_raise(what):
    made, says = BAD[what]
    with pytest.raises(EmbeddingError, match=f"the embedding model 'm' .*{says}"):
        check_vectors(made, ["a", "b"], "m")


UNUSABLE = {
    "NaN": [[1, 2], [np.nan, 1]],
    "infinite": [[1, 2], [np.inf, 2]],
    "too large": [[1, 2], [1e300, 2]],
    "zeros": [[1, 2], [0, 0]],
}


@pytest.mark.parametrize("what", UNUSABLE)
async def test_unusable_vectors_of_queries_only_raise(what):
    async def aembed(texts):
        return UNUSABLE[what]

    embedder = Embedder(lambda texts: UNUSABLE[what], "m", aembed_queries=aembed)
    assert embedder.passages(["a", "b"]).tolist() == [[1, 2], [0, 0]]
    message = r"'m' returned no usable vector \(zeros or NaN\) for 1 of 2 texts, first 'b'"
    with pytest.raises(EmbeddingError, match=message):
        embedder.queries(["a", "b"])
    with pytest.raises(EmbeddingError, match=message):
        await embedder.aqueries(["a", "b"])


def failing(error):
    def embed(texts):
        raise error

    return Embedder(embed, "m")


async def test_failing_model_raises_with_name():
    async def fails(texts):
        raise TimeoutError("slow")

    cause = OSError("no route")
    with pytest.raises(EmbeddingError, match=r"failed on 2 texts, .*'a': OSError: no route"):
        failing(cause).passages(["a", "b"])
    with pytest.raises(EmbeddingError, match="failed on 1 text,") as caught:
        failing(cause).queries(["a"])
    assert caught.value.__cause__ is cause
    with pytest.raises(EmbeddingError, match=r"^mine$"):
        failing(EmbeddingError("mine")).passages(["a"])
    with pytest.raises(EmbeddingError, match=r"failed on 1 text, .*TimeoutError: slow"):
        await Embedder(lengths, "m", aembed_queries=fails).aqueries(["a"])
