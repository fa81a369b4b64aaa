"""`kebab-eval reanchor` that is killed while it writes."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kebab_eval import compare_runs
from pytest_kebab_eval.cli import golden as cli_golden
from pytest_kebab_eval.cli.golden import write_golden_text
from pytest_kebab_eval.golden import read_lock
from tests.integration.cli.test_reanchor import FINER, GOLDEN, golden_text, lock_file, set_up
from tests.integration.conftest import Project, call


@pytest.mark.parametrize("golden_is_written", [False, True])
def test_killed_between_its_two_files_the_lock_fits_whichever_golden_file_is_there(
    project: Project, monkeypatch: pytest.MonkeyPatch, golden_is_written: bool
) -> None:
    set_up(project, FINER)
    assert call("lock", "--run", "old").code == 0
    before = compare_runs("old", "new", db=project.database, golden=project.golden)

    class Killed(BaseException):
        pass

    def write(*args: Any) -> None:
        if golden_is_written:
            write_golden_text(*args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(cli_golden, "write_golden_text", write)
        with pytest.raises(Killed):
            call("reanchor", "--to", "new")
    assert (golden_text(project) != GOLDEN) is golden_is_written
    after = compare_runs("old", "new", db=project.database, golden=project.golden)
    assert [query.kind for query in after.per_query] == [query.kind for query in before.per_query]
    lock = read_lock(lock_file(project))
    assert lock is not None
    assert {name: lock.version_of(name) for name in lock.chunks} == {
        **dict.fromkeys(("c1", "c2"), "v1"),
        **dict.fromkeys(("n1", "n2", "n3"), "v2"),
    }
    assert call("reanchor", "--to", "new").code == 0
    lock = read_lock(lock_file(project))
    assert lock is not None
    assert (lock.chunker_version, sorted(lock.chunks)) == ("v2", ["n1", "n2", "n3"])
