"""Prompts in messages, and the prompt templates of frameworks as prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}

_ALIASES = (
    ("query", "question", "input", "query_str"),
    ("passages", "context", "context_str", "documents", "summaries"),
    ("text", "context", "context_str", "page_content"),
    ("history", "chat_history"),
    ("answer", "existing_answer"),
)
"""Names that say the same, in nodekin, LangChain and LlamaIndex."""


class PromptTemplate(Protocol):
    """A prompt template of LangChain (``PromptTemplate``, ``ChatPromptTemplate``) or LlamaIndex."""

    def format(self, **kwargs: Any) -> str:
        """Return the prompt with values in its places."""
        ...


class ChatPrompt(str):
    """Hold a prompt in messages. It is a text as well, for models that take no messages.

    Args:
        messages: Role (``"system"``, ``"user"``, ``"assistant"``) and text of each.

    Example:
        >>> prompt = ChatPrompt([("system", "Be brief."), ("user", "What is tea?")])
        >>> prompt
        'Be brief.\\n\\nWhat is tea?'
        >>> prompt.map(str.upper).messages
        (('system', 'BE BRIEF.'), ('user', 'WHAT IS TEA?'))
    """

    messages: tuple[tuple[str, str], ...]

    def __new__(cls, messages: Sequence[tuple[str, str]]) -> ChatPrompt:
        """Join the messages to a text."""
        # Only a conversation is unclear without its roles.
        label = any(role == "assistant" for role, _ in messages)
        texts = (f"{role.capitalize()}: {text}" if label else text for role, text in messages)
        prompt = super().__new__(cls, "\n\n".join(texts))
        prompt.messages = tuple((role, text) for role, text in messages)
        return prompt

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.messages,)

    def __add__(self, text: str) -> ChatPrompt:
        """Return the prompt with a text added to its last message."""
        *others, (role, last) = self.messages
        return ChatPrompt([*others, (role, last + text)])

    def map(self, change: Callable[[str], str]) -> ChatPrompt:
        """Return the prompt with the text of each message changed."""
        return ChatPrompt([(role, change(text)) for role, text in self.messages])


def prompt_text(prompt: object, names: Sequence[str]) -> str:
    """Return a prompt as a text with ``{name}`` for each of its places.

    Names of LangChain and LlamaIndex that say the same as one of these are replaced by it:
    ``{question}`` by ``{query}``, ``{context}`` by ``{passages}``.

    Args:
        prompt: A text, or a prompt template of LangChain or LlamaIndex (known by its shape). One
            of several messages becomes a ``ChatPrompt``.
        names: The names that can be filled.

    Raises:
        TypeError: If it is neither, or a message is no text.
        ValueError: If a template has a place that nothing fills.

    Example:
        >>> prompt_text("What is {question}?", ["query"])
        'What is {query}?'
    """
    if isinstance(prompt, ChatPrompt):
        return prompt.map(lambda text: _with_native_names(text, names))
    if isinstance(prompt, str):
        return _with_native_names(prompt, names)
    variables = getattr(prompt, "input_variables", None)  # LangChain
    if variables is None:
        variables = getattr(prompt, "template_vars", None)  # LlamaIndex
    if not isinstance(variables, Sequence) or not callable(getattr(prompt, "format", None)):
        raise TypeError(
            f"a prompt is a text with {' and '.join(f'{{{name}}}' for name in names)} in it, or a "
            f"prompt template of LangChain or LlamaIndex, not {prompt!r:.80}"
        )
    return _template_text(prompt, list(variables), names)


def _template_text(template: Any, variables: list[str], names: Sequence[str]) -> str:
    """Format a template with marks for its places. Return its text with our names in them."""
    placeholders = {
        message.variable_name
        for message in getattr(template, "messages", None) or ()
        if hasattr(message, "variable_name")
    }
    # ("placeholder", "{chat_history}") is optional: filled where there is something to fill it.
    optional = [v for v in getattr(template, "optional_variables", None) or () if v in placeholders]
    variables += [v for v in optional if _native_name(v, names, variables) in names]
    values: dict[str, Any] = {}
    for variable in variables:
        name = _native_name(variable, names, variables)
        if name not in names:
            allowed = " and ".join(f"{{{alias}}}" for alias in names)
            kind = "a place for messages" if variable in placeholders else "a place"
            raise ValueError(
                f"the prompt template has {kind} {variable!r}, which nothing fills; there is "
                f"{allowed}: leave it out, or fill it with template.partial({variable}=...)"
            )
        signal = f"\ue000{name}\ue001"
        values[variable] = [("human", signal)] if variable in placeholders else signal
    if callable(getattr(template, "format_prompt", None)):
        messages = template.format_prompt(**values).to_messages()
    else:
        messages = template.format_messages(**values)
    pairs = [_role_and_text(message) for message in messages]
    if len(pairs) == 1 and pairs[0][0] == "user":
        return pairs[0][1]
    return ChatPrompt(pairs)


def _role_and_text(message: Any) -> tuple[str, str]:
    role = getattr(message, "type", None) or getattr(message, "role", None)
    if role == "chat":
        role = message.role
    role = str(getattr(role, "value", role))
    if not isinstance(message.content, str):
        raise TypeError(f"a message of a prompt is a text, not {message.content!r:.80}")
    text = re.sub("\ue000(\\w+)\ue001", r"{\1}", message.content)
    return _ROLES.get(role, role), text


def _with_native_names(text: str, names: Sequence[str]) -> str:
    fields = list(dict.fromkeys(_PLACEHOLDER.findall(text)))
    native = {field: _native_name(field, names, fields) for field in fields}
    return _PLACEHOLDER.sub(lambda field: f"{{{native[field[1]]}}}", text)


def _native_name(name: str, names: Sequence[str], others: Sequence[str]) -> str:
    """Return the name of ours that says the same as one of a framework, else the name itself."""
    if name in names:
        return name
    same = (alias for aliases in _ALIASES if name in aliases for alias in aliases)
    return next((alias for alias in same if alias in names and alias not in others), name)
