"""Writes the parts of the docs that the code knows: tables, the workflows of docs/ci.md, and docs/cli.md.

python docs/generate.py            # `make docs`; a test checks that nothing would change
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from pytest_kebab_eval import limits
from pytest_kebab_eval.cli import Deferred, main
from pytest_kebab_eval.metrics import Family, all_metrics
from pytest_kebab_eval.settings import OPTIONS, Option

ROOT = Path(__file__).parents[1]
COMMAND_INTRO = """\
# The command line

`kebab-eval` compares, scores and imports runs without pytest. It reads the environment variables of
[Configuration](configuration.md), but no ini file. With `--json` standard output is data:
new fields may be added to it; one that is there keeps its name and its type within a major version.

Shell completion (`zsh_source` and `fish_source` are there, too):

```sh
eval "$(_KEBAB_EVAL_COMPLETE=bash_source kebab-eval)"
```
"""
WORKFLOW = ROOT / "examples" / "github-actions" / "gate.yml"
PAGES = "https://github.com/pytest-kebab-eval/pytest-kebab-eval/blob/main/docs"
STARTER = ROOT / "examples" / "starter" / "github.yml"


def metric_table() -> str:
    """Every metric family: name, meaning, and the queries it is over."""
    families = dict.fromkeys(metric.family for metric in all_metrics())
    rows = ["| name | is | over |", "| --- | --- | --- |"]
    return "\n".join([*rows, *map(_metric_row, _without_stages(families))])


def _without_stages(families: dict[Family, None]) -> Iterator[Family]:
    """The latency of a stage goes without saying once the latency of all is described."""
    return (family for family in families if ":" not in family.pattern)


def _metric_row(family: Family) -> str:
    names = [f"`{name.format(k='k')}`" for name in (family.pattern, family.alias) if name]
    arrow = " ↓" if family.lower_is_better else ""
    over = family.over.description
    return f"| {' = '.join(names)}{arrow} | {family.description} | {over[0].lower()}{over[1:]} |"


def option_table() -> str:
    """Every option with its ini value and environment variable."""
    rows = ["| option | ini | environment | is |", "| --- | --- | --- | --- |"]
    return "\n".join([*rows, *map(_option_row, OPTIONS)])


def _option_row(option: Option) -> str:
    flags = " or ".join(f"`{flag}`" for flag in (option.flag, *option.more_flags))
    ini = f"`{option.ini}`" if option.has_ini else ""
    env = f"`{option.env}`" if option.env else ""
    return f"| {flags} | {ini} | {env} | {option.description.replace('<', '&lt;')} |"


def workflow() -> str:
    """The workflow for GitHub Actions that goes without our action."""
    return _without_header(WORKFLOW)


def starter() -> str:
    """The workflow for GitHub Actions that `kebab-eval init` writes."""
    return _without_header(STARTER)


def _without_header(path: Path) -> str:
    """A workflow without the comment at its top."""
    text = path.read_text(encoding="utf-8")
    return f"```yaml\n{text[text.index('name: ') :]}```"


def input_table() -> str:
    """Every input of the action, with its default."""
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    rows = [
        f"| `{name}` | {_default(each['default'])} | {each['description']} |" for name, each in inputs.items()
    ]
    return "\n".join(["| input | default | is |", "| --- | --- | --- |", *rows])


def _default(value: str) -> str:
    """A default as code, or in words."""
    if value.startswith("${{"):
        return "the default branch"
    return f"`{value}`" if value else ""


def limit_table() -> str:
    """Every limit, with the comment that says of what."""
    source = Path(limits.__file__).read_text(encoding="utf-8")
    found = re.findall(r"^([A-Z]\w+) = (.+?)  # (.+)$", source, flags=re.MULTILINE)
    rows = [f"| `{name}` | {_number(getattr(limits, name))} | {text} |" for name, _, text in found]
    return "\n".join(["| limit | is | of |", "| --- | ---: | --- |", *rows])


def _number(value: float) -> str:
    return f"{value:,.15g}" if value < 10**15 else f"{value:.0e}".replace("+", "")


def version_table() -> str:
    """What `make versions` gave."""
    rows = json.loads((ROOT / ".ci" / "versions.json").read_text(encoding="utf-8"))
    lines = [f"| {' | '.join(map(str, row.values()))} |" for row in rows]
    head = ["| Python | dependencies | passed | failed | skipped |", "| --- | --- | ---: | ---: | ---: |"]
    return "\n".join([*head, *lines])


def llms_text() -> str:
    """`llms.txt`: each page of the docs with its first sentence."""
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = re.findall(r"^ +- ([^:\n]+): (\S+\.md)$", site, re.MULTILINE)
    overview, *pages = ((title, *_first_sentences(name)) for title, name in nav)
    lines = [f"- [{title}]({PAGES}/{name}): {sentence}" for title, name, sentence in pages]
    return "\n".join(["# pytest-kebab-eval", "", f"> {overview[2]}", "", "## Docs", "", *lines, ""])


def _first_sentences(name: str) -> tuple[str, str]:
    """A page's name and its first sentence, without links."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    paragraph = next(part for part in text.split("\n\n")[1:] if not part.startswith(("#", "```", "|", "<")))
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return name, re.split(r"(?<=[.:?])\s", plain, maxsplit=1)[0].rstrip(":")


PARTS = {
    "inputs": input_table,
    "limits": limit_table,
    "metrics": metric_table,
    "options": option_table,
    "starter": starter,
    "versions": version_table,
    "workflow": workflow,
}


def filled(text: str) -> str:
    """A page with its marked parts as the code has them."""

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}{PARTS[match[2]]()}\n{match[3]}"

    return re.sub(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)", fill, text, flags=re.DOTALL)


def command_page() -> str:
    """The help of `kebab-eval` and of each of its commands."""
    parts = [COMMAND_INTRO]
    for path, command in _commands(["kebab-eval"], main):
        context = click.Context(
            command,
            info_name=" ".join(path),
            terminal_width=100,
            max_content_width=100,
            help_option_names=["-h", "--help"],
        )
        parts += [f"## {' '.join(path)}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(parts)


def _commands(path: list[str], command: click.Command) -> Iterator[tuple[list[str], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _commands([*path, name], found.load() if isinstance(found, Deferred) else found)


if __name__ == "__main__":
    (ROOT / "docs" / "cli.md").write_text(command_page(), encoding="utf-8")
    (ROOT / "docs" / "llms.txt").write_text(llms_text(), encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
