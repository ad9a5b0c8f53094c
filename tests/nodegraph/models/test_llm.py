import asyncio
import copy
import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

from nodekin.nodegraph import CachedLLM, ModelError
from nodekin.nodegraph.hashing import fingerprint
from nodekin.nodegraph.models.llm import LLM, as_llm


def shout(prompt):
    return prompt.upper()


async def later(prompt):
    await asyncio.sleep(0)
    return prompt.upper()


class LlamaIndexModel(CustomLLM):
    model: str = "small"

    @property
    def metadata(self):
        return LLMMetadata(model_name=self.model)

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=prompt.upper())

    def stream_complete(self, prompt, formatted=False, **kwargs):
        text = ""
        for letter in prompt.upper():
            text += letter
            yield CompletionResponse(text=text, delta=letter)


class Own:
    name = "own model"

    def complete(self, prompt):
        return prompt.upper()

    async def acomplete(self, prompt):
        return prompt.upper() + "!"

    def stream(self, prompt):
        yield from prompt.upper()

    async def astream(self, prompt):
        for letter in prompt.upper():
            yield letter

    def complete_json(self, prompt, schema):
        return {"asked": prompt, **schema}


FORMS = {
    "function": lambda: shout,
    "async function": lambda: later,
    "LangChain chat": lambda: FakeListChatModel(responses=["TEA"]),
    "LangChain LLM": lambda: FakeListLLM(responses=["TEA"]),
    "LlamaIndex": LlamaIndexModel,
    "own": Own,
}


@pytest.mark.parametrize("form", FORMS)
async def test_llm_accepts_all_kinds_of_models(form):
    llm = as_llm(FORMS[form]())
    assert llm.complete("tea") == llm("tea") == (await llm.acomplete("tea")).rstrip("!") == "TEA"
    llm = as_llm(FORMS[form]())
    assert "".join(llm.stream("tea")) == "TEA"
    assert "".join([chunk async for chunk in llm.astream("tea")]) == "TEA"


def test_stream_yields_chunks():
    assert list(as_llm(LlamaIndexModel()).stream("tea")) == ["T", "E", "A"]
    assert list(as_llm(Own()).stream("tea")) == ["T", "E", "A"]


async def test_async_function_completes_in_event_loop():
    assert as_llm(later).complete("tea") == "TEA"

    async def fails(prompt):
        raise OSError("gone")

    with pytest.raises(ModelError, match="OSError: gone"):
        as_llm(fails).complete("tea")


@pytest.mark.parametrize(
    "answer",
    [
        "tea",
        AIMessage("tea"),
        AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "tea"}]),
        AIMessage(["te", {"type": "text", "text": "a"}]),
        ChatResponse(message=ChatMessage(role="assistant", content="tea")),
        CompletionResponse(text="tea"),
        {"content": "tea"},
    ],
)
def test_complete_reads_all_messages(answer):
    assert LLM(lambda prompt: answer, "any").complete("?") == "tea"


@pytest.mark.parametrize("answer", [None, 3, {"choices": []}, object()])
def test_answer_without_text_raises(answer):
    with pytest.raises(ModelError, match=r"language model 'silent' failed: .*has no text"):
        LLM(lambda prompt: answer, "silent").complete("tea")


class Failing:
    name = "down"

    def complete(self, prompt):
        raise TimeoutError("too slow")

    def stream(self, prompt):
        yield "T"
        raise OSError("gone")


def test_failing_llm_raises_with_name_and_prompt():
    message = r"'down' failed: TimeoutError: too slow \(on the prompt 'tea'\)"
    with pytest.raises(ModelError, match=message):
        LLM(Failing()).complete("tea")
    stream = LLM(Failing()).stream("tea")
    assert next(stream) == "T"
    with pytest.raises(ModelError, match="gone"):
        next(stream)


SCHEMA = {"type": "object"}


class Wordy(FakeListChatModel):
    def bind_tools(self, tools, **settings):
        return self


class Sometimes:
    """A model that supports some schemas, as LangChain's models do."""

    def complete(self, prompt):
        return "in its own words"

    def complete_json(self, prompt, schema):
        if "schema" in prompt:
            return {"茶": 1}
        raise NotImplementedError


class SometimesAsync(Sometimes):
    async def acomplete_json(self, prompt, schema):
        return self.complete_json(prompt, schema)


@pytest.mark.parametrize(
    ("model", "prompt", "text"),
    [
        (Own(), "tea", '{"asked": "tea", "type": "object"}'),
        (Sometimes(), "by schema", '{"茶": 1}'),
        (SometimesAsync(), "by schema", '{"茶": 1}'),
        (Sometimes(), "?", "in its own words"),
        (SometimesAsync(), "?", "in its own words"),
        (shout, "tea", "TEA"),
        (FakeListChatModel(responses=["A drink."]), "tea", "A drink."),
        (Wordy(responses=["A drink."]), "tea", "A drink."),  # calls no tool
    ],
)
async def test_schema_falls_back_to_plain_answer(model, prompt, text):
    llm = LLM(model, "any")
    assert llm.complete(prompt, SCHEMA) == await llm.acomplete(prompt, SCHEMA) == text
    cached = as_llm(CachedLLM(llm))
    assert cached.complete(prompt, SCHEMA) == await cached.acomplete(prompt, SCHEMA) == text


def test_llm_name_depends_on_model():
    assert as_llm(Own()).name == "own model"
    assert LLM(Own(), "other").name == "other"
    assert as_llm(shout).name.startswith("unnamed function shout ")
    small, large = LlamaIndexModel(), LlamaIndexModel(model="large")
    assert as_llm(small).name == as_llm(LlamaIndexModel()).name != as_llm(large).name


def test_llm_is_identified_by_name():
    assert fingerprint(LLM(shout, "a")) == fingerprint(LLM(str.lower, "a"))
    assert fingerprint(LLM(shout, "a")) != fingerprint(LLM(shout, "b"))
    assert LLM(shout, "a") == LLM(str.lower, "a") != LLM(shout, "b")
    for made in (copy.copy(LLM(shout, "a")), pickle.loads(pickle.dumps(LLM(shout, "a")))):
        assert (made.complete("tea"), made.name) == ("TEA", "a")


COMPLETIONS = SimpleNamespace(completions=SimpleNamespace(create=print))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Path("gpt-4o"), r"'gpt-4o' is the name of a model, .* OpenAIChat\('gpt-4o'\)"),
        (Own, r"Own is a class; give a model of it: Own\(...\)"),
        (SimpleNamespace(chat=COMPLETIONS), r'OpenAIChat\("model-name", client=client\)'),
        (3, "a language model must be a function .*, got 3"),
        (None, "a language model must be .*, got None"),
    ],
)
def test_unsupported_llm_raises(model, says):
    with pytest.raises(TypeError, match=says):
        as_llm(model)


def test_stop_iteration_of_model_raises_model_error():
    answers = iter(["one"])
    llm = LLM(lambda prompt: next(answers), "short")
    assert llm.complete("?") == "one"
    with pytest.raises(ModelError, match=r"'short' failed: StopIteration: .*'\?'"):
        llm.complete("?")
