"""Say what to install where an optional dependency is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str, module: str, *brought: str) -> Iterator[None]:
    """Import a framework inside this. Where it is not installed, the error says what to install.

    Only the framework's own absence is explained so. Any other failing import is left as it is.

    Args:
        name: The extra of nodekin that brings the framework.
        module: The module that the framework is imported as.
        brought: Modules that it brings, and without which it is not there either.

    Raises:
        ImportError: If there is no such module.

    Example:
        >>> with extra("langchain", "no_such_module"):
        ...     import no_such_module
        Traceback (most recent call last):
        ...
        ImportError: no_such_module is not installed; get it with: pip install "nodekin[langchain]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in (module, *brought):
            raise
        raise ImportError(
            f'{module} is not installed; get it with: pip install "nodekin[{name}]"', name=module
        ) from error
