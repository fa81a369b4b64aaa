"""From nothing to a caught regression, with your own retriever: python regression.py."""

import subprocess
import sys
import tempfile
from pathlib import Path

from pytest_kebab_eval import RunRecorder, load_golden_set

NOTES = {"vacation": "Vacation is planned two weeks ahead", "vpn": "The VPN is entered by badge number"}


def search(question, normal):
    """Your retriever: the ids of what it found, best first."""
    shared = {note: len({*normal(question).split()} & {*normal(NOTES[note]).split()}) for note in NOTES}
    return sorted(filter(shared.get, shared), key=shared.get, reverse=True)


new = Path(tempfile.mkdtemp(prefix="regression-", dir="."))  # a new directory: nothing of yours is replaced
(new / "golden.yaml").write_text("""
- {id: days-off, query: how are vacation days entered, expected_chunk_ids: [vacation]}
- {id: vpn-login, query: which number opens the VPN, expected_chunk_ids: [vpn]}
""")
for run_id, normal in (("baseline", str.lower), ("candidate", str)):  # the candidate no longer ignores case
    with RunRecorder(new / "kebab.sqlite", run_id=run_id) as run:
        for query in load_golden_set(new / "golden.yaml").queries:
            run.record(query.id, hits=search(query.query, normal))
gate = "golden.yaml --kebab-golden=golden.yaml --kebab-run-a=baseline --kebab-run-b=candidate"
sys.exit(subprocess.call([sys.executable, "-m", "pytest", *gate.split()], cwd=new))
