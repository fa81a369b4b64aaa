"""The case files: where they are, how they are run, and how they are written."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MOST_BYTES = 20_000
WIDTH = 160

Case = dict[str, Any]


def layers() -> list[str]:
    """The layers there are."""
    return sorted(path.parent.name for path in HERE.glob("*/__init__.py"))


def case_files(layer: str) -> list[Path]:
    """The cases of a layer."""
    return sorted((HERE / layer).glob("*.json"))


def read_case(path: Path) -> Case:
    """A case as it is in its file."""
    case: Case = json.loads(path.read_text(encoding="utf-8"))
    return case


def run_case(path: Path, directory: Path) -> Any:
    """The outcome of a case, run in an empty directory."""
    layer = importlib.import_module(f"tests.frozen.{path.parent.name}")
    given = {name: value for name, value in read_case(path).items() if name != "outcome"}
    return json.loads(json.dumps(layer.run(given, directory)))


def write_case(path: Path, case: Case) -> None:
    """Write a case so that a golden entry, a result or an outcome has a line of its own."""
    path.write_text(as_text(case) + "\n", encoding="utf-8")


def as_text(value: Any, indent: int = 0) -> str:
    """JSON in which whatever fits on a line is on one."""
    flat = json.dumps(value, ensure_ascii=False)
    is_outer = isinstance(value, dict) and indent == 0
    if not isinstance(value, dict | list) or not value or (len(flat) + indent < WIDTH and not is_outer):
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, list):
        parts = [inner + as_text(part, indent + 2) for part in value]
        return "[\n" + ",\n".join(parts) + "\n" + " " * indent + "]"
    keys = {name: json.dumps(name, ensure_ascii=False) for name in value}
    parts = [f"{inner}{keys[name]}: {as_text(part, indent + 2)}" for name, part in value.items()]
    return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
