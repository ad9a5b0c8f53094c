"""Show the docstring section "Example" as code, like "Examples"."""

from __future__ import annotations

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Rename the section, which the docstring parser would otherwise show as a remark."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section in one object's docstring."""
        if obj.docstring:
            value = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", value, flags=re.M)
