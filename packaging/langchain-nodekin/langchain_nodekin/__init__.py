"""The LangChain integration of nodekin, under the package name that LangChain users expect."""

from typing import TYPE_CHECKING, Any

from nodekin.adapters import langchain as _adapters
from nodekin.adapters.langchain import __all__ as __all__

if TYPE_CHECKING:
    from nodekin.adapters.langchain import *


def __getattr__(name: str) -> Any:
    """Import a name from nodekin's LangChain adapters when it is first used."""
    if name in __all__:
        return getattr(_adapters, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
