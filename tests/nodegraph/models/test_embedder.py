import asyncio
import functools
import pickle
from pathlib import Path

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


class Encodes:
    """A model like sentence-transformers 5 and later."""

    def __init__(self):
        self.prompts = {"query": "q", "document": "d"}

    def __call__(self, features):
        raise AssertionError("the model itself is not what embeds")

    def encode(self, inputs, prompt_name=None, *, show_progress_bar=None, convert_to_numpy=True):
        assert show_progress_bar is False
        assert convert_to_numpy
        last = {None: 0, "document": 1, "query": 2}[prompt_name]
        return np.array([[len(text), last] for text in inputs])

    def encode_document(self, inputs, **settings):
        return self.encode(inputs, prompt_name="document", **settings)

    def encode_query(self, inputs, **settings):
        return self.encode(inputs, prompt_name="query", **settings)


class EncodesPlainly:
    def encode(self, sentences):
        return lengths(sentences)


async def async_queries(texts):
    return [[len(text), 8] for text in texts]


FORMS = {  # models, and the marks of passages, queries and async queries
    "function": (lambda: lengths, 1, 1, 1),
    "partial": (lambda: functools.partial(lengths), 1, 1, 1),
    "method": (lambda: Own().embed, 1, 1, 1),
    "callable object": (Call, 1, 1, 1),
    "langchain": (LangChainModel, 1, 2, 2),
    "langchain, async": (LangChainAsync, 1, 2, 3),
    "llama_index": (LlamaIndexModel, 1, 2, 3),
    "sentence-transformers": (Encodes, 1, 2, 2),
    "encode alone": (EncodesPlainly, 1, 1, 1),
    "object with embed": (Own, 1, 2, 3),
    "Embedder": (lambda: Embedder(lengths, "n", embed_queries=of_queries), 1, 2, 2),
    "Embedder of a model": (lambda: Embedder(LangChainAsync(), name="n"), 1, 2, 3),
    "own async queries": (
        lambda: Embedder(LangChainModel(), aembed_queries=async_queries),
        1,
        2,
        8,
    ),
    "own queries of a model": (
        lambda: Embedder(LangChainAsync(), embed_queries=lambda ts: [[len(t), 7] for t in ts]),
        1,
        7,
        7,
    ),
}


@pytest.mark.parametrize("form", FORMS)
async def test_embedder_accepts_all_kinds_of_models(form):
    make, passages, queries, async_queries = FORMS[form]
    embedder = as_embedder(make())
    texts = ["tea", "water"]
    assert embedder.passages(texts).tolist() == [[3, passages], [5, passages]]
    assert embedder.queries(texts).tolist() == [[3, queries], [5, queries]]
    assert (await embedder.aqueries(texts)).tolist() == [[3, async_queries], [5, async_queries]]
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


async def test_failed_query_cancels_other_queries():
    ended = []

    class Slow(LangChainModel):
        async def aembed_query(self, text):
            if text == "bad":
                raise OSError("down")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(text)
                raise

    with pytest.raises(EmbeddingError, match="OSError: down"):
        await as_embedder(Slow()).aqueries(["a", "bad", "b"])
    await asyncio.sleep(0)
    assert sorted(ended) == ["a", "b"]


class Endpoint:
    def create(self, **given):
        raise AssertionError


class Client:
    embeddings = Endpoint()


async def coroutine(texts):
    return lengths(texts)


class AsyncCall:
    async def __call__(self, texts):
        return lengths(texts)


REFUSED = {
    "name": (Path("intfloat/e5"), "name of a model.*SentenceTransformer\\('intfloat/e5'\\)"),
    "class": (LangChainModel, r"a class; give a model of it: LangChainModel\(\.\.\.\)"),
    "client": (
        Client(),
        'OpenAIEmbedder\\("model-name", client=client\\).*nodekin.adapters.openai',
    ),
    "number": (3, "an embedding model must be .*, got 3"),
    "None": (None, "an embedding model must be .*, got None"),
}


@pytest.mark.parametrize("model", [coroutine, functools.partial(coroutine), AsyncCall()])
async def test_embedder_accepts_async_functions(model):
    embedder = as_embedder(model)
    expected = lengths(["tea", "water"])
    assert (await embedder.aqueries(["tea", "water"]) == expected).all()
    assert (embedder.passages(["tea", "water"]) == expected).all()
    assert (embedder.queries(["tea", "water"]) == expected).all()


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
        ({}, ValueError, "no models"),
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
        ({"batch_size": True}, TypeError, "integer"),
        ({"num_workers": -1}, ValueError, "num_workers must be 0 or more"),
        ({"embed_queries": "q"}, TypeError, "embed_queries must be a function"),
        ({"embed_queries": coroutine}, TypeError, "give it as aembed_queries"),
        ({"aembed_queries": 3}, TypeError, "aembed_queries must be a function"),
        ({"name": 3}, TypeError, "name must be a text"),
    ],
)
def test_invalid_settings_raise(settings, error, says):
    with pytest.raises(error, match=says):
        Embedder(lengths, **settings)


class Tensor:
    """A tensor like one of torch on a device, with a gradient."""

    def __init__(self, values, *, ready=False):
        self.values = values
        self.ready = ready

    def detach(self):
        return Tensor(self.values, ready=True)

    def cpu(self):
        return self

    def float(self):
        return self

    def numpy(self):
        assert self.ready
        return np.array(self.values)


GOOD = {
    "lists": [[1, 2], [3, 4]],
    "tuples": ((1, 2), (3, 4)),
    "array": np.array([[1, 2], [3, 4]], np.float64),
    "half": np.array([[1, 2], [3, 4]], np.float16),
    "arrays": [np.array([1, 2]), np.array([3, 4])],
    "tensor": Tensor([[1, 2], [3, 4]]),
    "tensors": [Tensor([1, 2]), Tensor([3, 4])],
    "generator": (row for row in ([1, 2], [3, 4])),
    "generator of arrays": (np.array(row) for row in ([1, 2], [3, 4])),
}


@pytest.mark.parametrize("what", GOOD)
def test_check_vectors_accepts_many_forms(what):
    vectors = check_vectors(GOOD[what], ["a", "b"], "m")
    assert vectors.tolist() == [[1, 2], [3, 4]]
    assert vectors.dtype == np.float32


def test_check_vectors_copies_array():
    made = np.ones((1, 2), np.float32)
    vectors = check_vectors(made, ["a"], "m")
    made[:] = 7
    assert vectors.tolist() == [[1, 1]]


BAD = {
    "too few": ([[1, 2]], "1 vector for 2 texts"),
    "too many": ([[1, 2]] * 3, "3 vectors for 2 texts"),
    "ragged": ([[1, 2], [3]], r"\[\[1, 2\], \[3\]\]"),
    "flat": ([1, 2], r"shape \(2,\); it must return an array \(2 texts, dimension\)"),
    "deep": ([[[1]], [[1]]], r"shape \(2, 1, 1\)"),
    "no dimension": ([[], []], r"shape \(2, 0\)"),
    "nothing": ([], r"shape \(0,\)"),
    "None": (None, "None"),
    "text": ("vector", "'vector'"),
    "texts": ([["a"], ["b"]], "'a'"),
    "mapping": ({"data": [[1.0]]}, "'data'"),
    "complex": (np.array([[1j], [1j]]), "1.j"),
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


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
async def test_interrupts_are_not_wrapped(error):
    with pytest.raises(error):
        failing(error()).passages(["a"])

    async def ended(texts):
        raise error

    if error is asyncio.CancelledError:
        with pytest.raises(error):
            await Embedder(lengths, aembed_queries=ended).aqueries(["a"])
