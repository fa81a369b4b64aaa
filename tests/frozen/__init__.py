"""What the product does, frozen: cases in files, each with its input and the outcome that it had.

Everything is driven through `pytest` and `kebab-eval` (`product.py`), so that no inside is pinned. A layer
is a package in this directory: `run(case, directory)` in its `__init__.py` runs one case in an empty
directory and returns the outcome as plain JSON, and each `*.json` beside it is a case, at most 20 kB, whose
file name says what it claims. The outcome is frozen under the case's key `outcome`; all other keys are input,
and what they mean is up to the layer (golden files, runs and tables are written by `comparison.py`).

To add a layer: a directory with such an `__init__.py`. To add a case: a file without `outcome`, then
`python -m tests.frozen.freeze LAYER`, which writes the outcome. That program also prints what a change of the
product changed, case by case and counted by class; `--check` writes nothing. For the classes, an outcome is a
mapping `{section: value}` or `{section: {id: value}}` or `{section: {id: {field: value}}}`.

Outcomes pin tokens (ids, ranks, counts, exit codes), never wording, times or the order of messages.
"""
