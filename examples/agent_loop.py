"""Write an agent in plain Python that uses corpus tools.

To use a model on an OpenAI-compatible server (vLLM, Ollama or llama.cpp), set OPENAI_BASE_URL,
OPENAI_MODEL and OPENAI_API_KEY. The model returns JSON that follows a schema, so it does not need
to support tool calls. Without a server, its replies are scripted.
"""

import os
import re
from pathlib import Path
from typing import Any

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import CorpusTools, ToolError

STEPS = 5
ASK = """Question: {question}

{results}

The next step, as JSON:
"found": the words of the results that answer the question, or "" if none do
"tool": "answer" if something was found; else "search" for passages, "grep" for an exact name or
number, or "read" a place of the results, such as "plays/brand.md [0:500]"
"argument": a short answer in the language of the question; else what to look for, other than
{earlier}
"skip": 0, or how many results of a search to pass over"""


def schema(*tools: str) -> dict[str, Any]:
    """Return a JSON schema for one step of the agent."""
    properties: dict[str, Any] = {
        "found": {"type": "string"},
        "tool": {"type": "string", "enum": tools},
        "argument": {"type": "string"},
        "skip": {"type": "integer", "minimum": 0},
    }
    closed = {"type": "object", "additionalProperties": False}
    return {**closed, "properties": properties, "required": list(properties)}


FIRST, NEXT, LAST = (
    schema("search", "grep"),
    schema("answer", "search", "grep", "read"),
    schema("answer"),
)


def ask(model: Any, tools: CorpusTools, question: str) -> list[tuple[str, str, str]]:
    """Run the agent, and return its steps as tuples of tool, argument and result.

    The last step is the answer.
    """
    steps = list[tuple[str, str, str]]()
    while len(steps) < STEPS:
        results = "\n\n".join(result for *_, result in steps) or "(no results yet)"
        earlier = ", ".join(repr(argument) for _, argument, _ in steps) or "the question"
        prompt = ASK.format(question=question, results=results, earlier=earlier)
        allowed = NEXT if steps else FIRST
        step = model.complete_json(prompt, LAST if len(steps) == STEPS - 1 else allowed)
        name, argument, skip = step["tool"], step["argument"], step["skip"]
        if name == "answer":
            return [*steps, (name, argument, "")]
        place = re.fullmatch(r"(.+?) ?\[(\d+):(\d+)\].*", argument)
        document, start, end = place.groups() if place else (argument, None, None)
        arguments = {
            "search": {"query": argument, "skip": skip},
            "grep": {"pattern": argument, "skip": skip},
            "read": {"document": document, "start": start, "end": end},
        }[name]
        try:
            result = tools.call(name, arguments, max_tokens=250).text
        except ToolError as error:  # the message explains to the model how to correct the call
            result = str(error)
        steps.append((name, argument, result))
    return steps


class Scripted:
    """A scripted model that searches, reads the first result, and answers with a matching line."""

    def complete_json(self, prompt: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the next step as JSON."""
        results = prompt.removeprefix("Question: ").partition("\n\nThe next step")[0]
        question, _, results = results.partition("\n\n")
        place = results.partition("]")[0] + "]"
        if "answer" not in schema["properties"]["tool"]["enum"]:
            return {"found": "", "tool": "search", "argument": question, "skip": 0}
        if prompt.count(place) == 1:  # this document has not been read yet
            return {"found": "", "tool": "read", "argument": place, "skip": 0}
        found = max(results.splitlines(), key=lambda line: len(set(line) & set(question)))
        return {"found": found, "tool": "answer", "argument": found, "skip": 0}


if __name__ == "__main__":
    model: Any = Scripted()
    if os.environ.get("OPENAI_BASE_URL"):
        from nodekin.adapters.openai_chat import OpenAIChat

        model = OpenAIChat(os.environ.get("OPENAI_MODEL", "local"), max_tokens=200)
    tools = CorpusTools(NodeGraph(Path(__file__).parent / "data" / "zh", progress=False))
    for question in ("大熊猫每天要花多少时间吃东西？", "《茶经》的作者生活在哪个朝代？"):
        print(f"> {question}")
        for name, argument, result in ask(model, tools, question):
            print(f"{name} | {argument}")
            print("".join(f"    {line}\n" for line in result.splitlines()[:3]), end="")
        print()
