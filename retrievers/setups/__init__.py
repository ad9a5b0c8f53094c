"""Set-ups: retrievers declared once, in TOML, to be measured and deployed as the same thing."""

from .declared_types import RETRIEVERS, TRANSFORMS
from .opening import SetupOpener
from .setup_file import SetupFile

__all__ = ["RETRIEVERS", "TRANSFORMS", "SetupFile", "SetupOpener"]
