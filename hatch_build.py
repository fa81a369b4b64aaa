"""Makes the README what a package index can show: its links lead to the files of the release."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/pytest-kebab-eval/pytest-kebab-eval"
RAW = "https://raw.githubusercontent.com/pytest-kebab-eval/pytest-kebab-eval"
_DARK = re.compile(r"^!\[[^]]*\]\([^)]*#gh-dark-mode-only\)\n", re.MULTILINE)
_LINK = re.compile(r"(!?)(\[[^]]*\])\((?!https?://|#)([^)#]+)(#[^)]*)?\)")


def with_absolute_links(text: str, version: str) -> str:
    """Markdown whose relative links and images are those of that version; of two images, the light one."""

    def absolute(match: re.Match[str]) -> str:
        is_image, label, path, anchor = match.groups()
        start = f"{RAW}/v{version}" if is_image else f"{REPOSITORY}/blob/v{version}"
        return f"{is_image}{label}({start}/{path}{'' if is_image else anchor or ''})"

    return _LINK.sub(absolute, _DARK.sub("", text))


class ReadmeHook(MetadataHookInterface):
    """Called by hatchling when it builds."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        source = (root / "pytest_kebab_eval" / "__init__.py").read_text(encoding="utf-8")
        (version,) = re.findall(r'^__version__ = "(.+?)"', source, re.MULTILINE)
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, version),
        }
