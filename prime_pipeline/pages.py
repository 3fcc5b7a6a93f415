"""How pages of HTML are made from templates: escaped, without undefined names, under a policy that allows only what is inside.

What a page says is for the package that has its templates, in a folder ``pages``.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(package: str) -> Environment:
    """The templates of a package; the filter ``csp_hash`` names an inline text for a content security policy."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader(package, "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["csp_hash"] = csp_hash
    return found


def csp_hash(text: str) -> str:
    """A source expression of a content security policy that allows just this inline text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
