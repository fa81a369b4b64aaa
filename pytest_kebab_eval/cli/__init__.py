"""The command `kebab-eval`: the same logic as the plugin, for scripts and for people.

To add a command: one function in a file of this package, and one line in `COMMANDS`.
"""

from __future__ import annotations

import click

from pytest_kebab_eval.cli.group import Deferred, Group
from pytest_kebab_eval.gc_freeze import skip_final_collection

COMMANDS = (
    Deferred(
        "aggregate",
        "runs:aggregate",
        "Compute the aggregates of runs anew and store them; says which metrics changed.",
    ),
    Deferred(
        "bisect",
        "bisecting:bisect",
        "Find the commit that lost what run B lost, between the commits of run A and run B.",
    ),
    Deferred(
        "blame", "blame:blame", "Say in which run a query was last found, and in which it was first lost."
    ),
    Deferred(
        "churn",
        "churn:churn",
        "Rank queries by how much their results moved from run A to run B, labelled or not.",
    ),
    Deferred("compare", "comparing:compare", "Compare run B, the candidate, with run A, the baseline."),
    Deferred("copy", "moving:copy", "Copy runs from one database to another, all of them or none."),
    Deferred("demo", "demo:demo", "Build the bundled example in a directory and catch its regressions."),
    Deferred(
        "export",
        "exporting:export",
        "Write a run to a text file, which can be committed, compared and imported.",
    ),
    Deferred("history", "runs:history", "Show how metrics went over the stored runs, the oldest first."),
    Deferred(
        "import",
        "importing:import_group",
        "Bring a run from another system, all of it or, if a line is bad, nothing.",
    ),
    Deferred(
        "init",
        "init:init",
        "Write a golden file, a recording test and a CI workflow that work at once.",
    ),
    Deferred(
        "lock",
        "golden:lock",
        "Write the lock file: where the expected chunks are, by the chunker that made them.",
    ),
    Deferred("noise", "noise:noise", "Tell from several runs of one configuration how much is noise."),
    Deferred(
        "propose", "proposing:propose", "Turn a log of questions into golden queries, for a person to review."
    ),
    Deferred(
        "prune",
        "moving:prune",
        "Remove all but the newest runs of each suite, or of one; a tagged run stays.",
    ),
    Deferred(
        "reanchor",
        "reanchor:reanchor_command",
        "Replace the golden file's chunk ids by those of a newer chunker, and write the lock file.",
    ),
    Deferred("report", "comparing:report", "Print the report of B against A; exits with 0 whatever it says."),
    Deferred("runs", "runs:runs", "List the stored runs, the newest first."),
    Deferred("site", "site:site", "Write a static site of all runs to a directory, for any file server."),
    Deferred("store", "storing:store_group", "Prepare a PostgreSQL database to hold runs."),
    Deferred(
        "tag",
        "moving:tag",
        "Give a run a name that you move on purpose, such as baseline; without arguments, list the tags.",
    ),
    Deferred(
        "validate",
        "golden:validate",
        "Check the golden file against the database; exits with 1 if something is off.",
    ),
)


@click.group(cls=Group, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-kebab-eval")
def main() -> None:
    """Tell whether a change to a retrieval or RAG system made it worse.

    Runs are named by an id, a unique prefix of one, latest, latest~1, commit:HASH, or tag:NAME; several of
    one side with commas, or as commit:HASH*. Data goes to standard output, everything else to standard
    error. Exit codes: 0; 1 for a regression, a failed gate or findings; 2 for wrong use; 130 or 141 where it
    was stopped, or its output closed.
    """
    skip_final_collection("kebab-eval")
