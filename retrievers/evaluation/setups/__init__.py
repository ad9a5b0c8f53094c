"""Set-ups: retrievers and query engines in TOML, measured and deployed as the same thing."""

from .declared_types import ENGINES, RETRIEVERS, TRANSFORMS
from .opening import SetupOpener
from .setup_file import SetupFile

__all__ = ["ENGINES", "RETRIEVERS", "TRANSFORMS", "SetupFile", "SetupOpener"]
