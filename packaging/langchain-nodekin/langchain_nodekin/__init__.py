"""nodekin's adapters, all of them, below the name that the ecosystem expects."""

from typing import TYPE_CHECKING, Any

from nodekin.adapters import langchain as _adapters
from nodekin.adapters.langchain import __all__ as __all__

if TYPE_CHECKING:
    from nodekin.adapters.langchain import *


def __getattr__(name: str) -> Any:  # some of them want packages that not everyone has
    return getattr(_adapters, name)


def __dir__() -> list[str]:
    return [*__all__]
