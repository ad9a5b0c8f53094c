"""A query transform as a step of a LangChain chain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, PrivateAttr, SkipValidation, model_validator

from ...retrievers import Prompt, QueryTransform
from .within import awithin, within

Made = TypeVar("Made")


class QueryStep(RunnableSerializable[str, Made], Generic[Made]):
    """Make something of a query with a language model; what all query steps share.

    A step holds nothing but its configuration: it can be serialised as far as its model can, and
    its fields can be configured.

    Attributes:
        llm: The model: a LangChain one, or in any other form that ``LLM`` takes.
        prompt: In place of the built-in one: a text with the same names in braces, or texts by
            language, ``{"zh": ..., "en": ...}``.
        language: Of the prompt: ``"zh"`` or ``"en"``; None for that of each query.
        on_error: Where the model fails: ``"keep"`` the query as it is, or ``"raise"``.
        retries: How often the model is asked again where its answer can't be used.
        timeout: Seconds to wait for each of the model's answers; None leaves it to its client.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    llm: Annotated[Any, SkipValidation]
    prompt: str | Mapping[Literal["zh", "en"], str] | Annotated[Prompt, SkipValidation] | None = (
        None
    )
    language: Literal["zh", "en"] | None = None
    on_error: Literal["keep", "raise"] = "keep"
    retries: int = 1
    timeout: float | None = None

    _transform: QueryTransform = PrivateAttr()

    @model_validator(mode="after")
    def _make_transform(self) -> QueryStep[Made]:
        self._transform = self._made_transform(
            prompt=self.prompt,
            language=self.language,
            on_error=self.on_error,
            retries=self.retries,
            timeout=self.timeout,
        )
        return self

    @abstractmethod
    def _made_transform(self, **settings: Any) -> QueryTransform:
        """Return the transform that the fields describe."""

    @abstractmethod
    def _made(self, queries: list[str]) -> Made:
        """Return what the step gives, of what the transform gives."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """A step is configuration."""
        return True

    @property
    def InputType(self) -> type[str]:
        """A query."""
        return str

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Made:
        """Return what is made of a query.

        Raises:
            TypeError: If the query is no text, or there are keywords: a step takes none.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Made:
        """Return the same without blocking the event loop."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def _run(
        self, query: str, run_manager: CallbackManagerForChainRun, config: RunnableConfig
    ) -> Made:
        with within(config):
            return self._made(self._transform.transform(query))

    async def _arun(
        self, query: str, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> Made:
        async with awithin(config):
            return self._made(await self._transform.atransform(query))


class OneQuery(QueryStep[str]):
    """Make one text of a query."""

    @property
    def OutputType(self) -> type[str]:
        """A query."""
        return str

    def _made(self, queries: list[str]) -> str:
        return queries[0]


class Queries(QueryStep[list[str]]):
    """Make several texts of a query."""

    @property
    def OutputType(self) -> type[list[str]]:
        """Queries."""
        return list[str]

    def _made(self, queries: list[str]) -> list[str]:
        return queries
