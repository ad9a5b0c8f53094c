"""Errors for missing optional dependencies, with the install command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str, module: str, *brought: str) -> Iterator[None]:
    """Import a framework in the block. If it is missing, the error contains the install command.

    Errors from other imports are unchanged.

    Args:
        name: The extra of nodekin that installs the framework.
        module: The framework's module.
        brought: Modules that are installed with the framework. If one is missing, the framework
            counts as missing.

    Raises:
        ImportError: If the module is missing.

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
