"""A run that workers of xdist record on two hosts; one worker is killed half-way.

The hosts are network namespaces with a cable between each and this machine, where that can be had, or two
servers on the loopback address. Each has a directory of its own, where there is no golden file and
no database; xdist sends the tests there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.integration.conftest import LEAN, Project
from tests.integration.plugin.test_recording import found
from tests.integration.plugin.test_recording_golden_queries import golden_of, results

pytest.importorskip("xdist")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc"),
    pytest.mark.timeout(600),
]
HOST = Path(__file__).with_name("worker_host.py")
QUERIES = 20

SEARCH = """
import os, signal
from pathlib import Path

asked = 0

def test_search(kebab_query, kebab_recorder):
    global asked
    asked += 1
    host = os.environ["HOST_NAME"]
    # xdist gives each host two queries at least.
    if host == "one" and asked == 2 and not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    assert not Path("kebab.sqlite").exists() and not Path("fixtures").exists()
    kebab_recorder.config["chunker_version"] = "v1"
    kebab_recorder.record(kebab_query.id, hits=["of " + kebab_query.id], timings_ms={"retrieval": 1})
"""


@contextmanager
def host(directory: Path, name: str, address: str, *inside: str) -> Iterator[str]:
    """A host at that address; how xdist reaches it."""
    directory.mkdir()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*inside, sys.executable, str(HOST), address],
            cwd=directory,
            env={**os.environ, "HOST_NAME": name},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout
    try:
        yield f"socket={address}:{int(process.stdout.readline())}"
    finally:
        process.stdout.close()
        end_with_children(process)


def end_with_children(process: subprocess.Popen[str]) -> None:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.wait()
    for child in children:
        with suppress(ProcessLookupError):  # a worker that was about to end
            os.kill(int(child), signal.SIGKILL)


@contextmanager
def namespace(number: int) -> Iterator[tuple[str, str]]:
    """A network of its own with a cable to ours; its name, and its address."""
    name, near, far = (f"kebab{os.getpid()}{kind}{number}"[-15:] for kind in "nab")
    ours, theirs = (
        f"10.213.{os.getpid() % 250}.{4 * number + 1}",
        f"10.213.{os.getpid() % 250}.{4 * number + 2}",
    )
    ip("netns", "add", name)
    try:
        ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        ip("addr", "add", f"{ours}/30", "dev", near)
        ip("link", "set", near, "up")
        ip("-n", name, "addr", "add", f"{theirs}/30", "dev", far)
        for device in (far, "lo"):
            ip("-n", name, "link", "set", device, "up")
        yield name, theirs
    finally:
        ip("netns", "del", name)  # and with it the cable


def ip(*args: str) -> None:
    done = subprocess.run(["ip", *args], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(args)}: {done.stderr.strip()}")


def start_hosts(stack: ExitStack, directory: Path) -> list[str]:
    """Two hosts, on networks of their own if that can be."""
    names = ("one", "two")
    try:
        networks = [stack.enter_context(namespace(number)) for number in range(len(names))]
    except OSError:  # there is no ip, or it may not
        return [stack.enter_context(host(directory / name, name, "127.0.0.1")) for name in names]
    return [
        stack.enter_context(host(directory / name, name, address, "ip", "netns", "exec", network))
        for name, (network, address) in zip(names, networks, strict=True)
    ]


def test_two_hosts_record_one_run_though_a_worker_is_killed(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester = golden_of(project, QUERIES)
    pytester.mkdir("search").joinpath("test_search.py").write_text(SEARCH)
    monkeypatch.setenv("KEBAB_EVAL_DB", str(project.path / "shared.sqlite"))  # which the hosts have not
    monkeypatch.chdir(project.path)
    with ExitStack() as stack:
        hosts = start_hosts(stack, tmp_path_factory.mktemp("hosts"))
        to_hosts = [f"--tx={address}//chdir=work" for address in hosts]
        outcome = pytester.runpytest_subprocess(
            *LEAN,  # without rerunfailures, whose workers look for its controller on their own host
            "--kebab-record=new",
            "-d",
            *to_hosts,
            "--rsyncdir=search",
            str(project.path / "search"),
            timeout=600,
        )
    outcome.assert_outcomes(passed=QUERIES - 1, failed=1)
    assert outcome.ret == 1
    said = f"kebab-eval: run new: {QUERIES} of {QUERIES} golden queries recorded in shared.sqlite"
    outcome.stdout.fnmatch_lines([f"{said}, 1 of them with an error; 1 worker of xdist died (gw0)"])
    (project.path / "shared.sqlite").rename(project.database)
    stored = results(pytester)
    (errored,) = [query_id for query_id, result in stored.items() if result["error"]]
    assert stored[errored]["error"] == "worker gw0 of xdist died before this query was recorded"
    assert found(pytester) == {f"q{n}": [f"of q{n}"] for n in range(1, QUERIES + 1)} | {errored: []}


def test_what_the_environment_names_here_is_known_on_other_hosts(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pytester.mkdir("search").joinpath("test_search.py").write_text("""
def test_search(kebab_query, kebab_recorder):
    kebab_recorder.config["chunker_version"] = "v1"
    kebab_recorder.record(kebab_query.id, hits=["c1"])
""")
    monkeypatch.chdir(project.path)
    with ExitStack() as stack:
        address = stack.enter_context(host(tmp_path_factory.mktemp("hosts") / "one", "one", "127.0.0.1"))
        monkeypatch.setenv("KEBAB_EVAL_RUN_A", "A")
        outcome = project.pytester.runpytest_subprocess(
            *(*LEAN, "--kebab-record=new", "-d", f"--tx={address}//chdir=work"),
            *("--rsyncdir=search", str(project.path / "search")),
            timeout=600,
        )
    outcome.assert_outcomes(passed=3, failed=1)  # two tests that record, and q-002 lost c2
    outcome.stdout.fnmatch_lines(["kebab-eval: run new: 2 of 2 golden queries recorded in kebab.sqlite"])
