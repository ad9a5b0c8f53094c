"""Errors that name the command to install a missing optional dependency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str, module: str, *brought: str) -> Iterator[None]:
    """Import an optional framework inside a ``with`` block.

    If the framework is not installed, the ImportError contains the command that installs it. Import
    errors of unrelated modules are not changed.

    Args:
        name: The extra of nodekin that installs the framework.
        module: The name of the framework's module.
        brought: Names of modules that are installed together with the framework. If one of them is
            missing, the framework is also reported as missing.

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
