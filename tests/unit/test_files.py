"""Files written whole or not at all, and devices and pipes that stay what they are."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_kebab_eval import files
from pytest_kebab_eval.files import append, creating, is_stream, remove_leftovers, replacing, write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="devices, pipes and links of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the text `old`, alone in its directory."""
    path = tmp_path / "report.md"
    path.write_text("old", encoding="utf-8")
    return path


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


# -- whole or not at all ---------------------------------------------------------------------------


def test_the_old_file_is_there_until_the_new_one_is_complete(path: Path) -> None:
    with replacing(path) as file:
        file.write("new")
        assert path.read_text("utf-8") == "old"
    assert path.read_text("utf-8") == "new"
    assert names(path.parent) == ["report.md"]


def test_a_block_that_raises_leaves_the_old_file_and_no_other(path: Path) -> None:
    def parts() -> list[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_whole(path, (part for _ in "x" for part in parts()))
    assert path.read_text("utf-8") == "old"
    assert names(path.parent) == ["report.md"]


def test_a_rename_that_fails_leaves_the_old_file_and_no_other(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="busy"):
        write_whole(path, ["new"])
    assert path.read_text("utf-8") == "old"
    assert names(path.parent) == ["report.md"]


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, ["new"])
    assert names(tmp_path) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_permissions_of_the_replaced_file_are_kept(path: Path, mode: int) -> None:
    path.chmod(mode)
    with replacing(path) as file:
        (new,) = set(path.parent.iterdir()) - {path}
        assert stat.S_IMODE(new.stat().st_mode) == mode  # from the start, not only at the end
        file.write("new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new", ["text"])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_name_as_long_as_the_system_allows_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127)  # 254 bytes
    write_whole(path, ["text"])
    assert names(tmp_path) == [path.name]


# -- links -----------------------------------------------------------------------------------------


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(path: Path) -> None:
    link = path.with_name("link.md")
    link.symlink_to(path.name)
    write_whole(link, ["new"])
    assert link.is_symlink()
    assert path.read_text("utf-8") == "new"


def test_a_link_is_refused_where_the_name_is_ours(path: Path) -> None:
    link = path.with_name("link.md")
    link.symlink_to(path)
    with pytest.raises(OSError, match=r"link\.md is a link, which is not written through; remove the link"):
        write_whole(link, ["new"], follow_link=False)
    assert link.is_symlink()
    assert path.read_text("utf-8") == "old"


def test_a_link_planted_at_the_temporary_name_is_not_followed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = path.with_name("victim")
    victim.write_text("precious", encoding="utf-8")
    monkeypatch.setattr(os, "urandom", bytes)
    path.with_name(f".{os.getpid()}-{'0' * 16}-report.md").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_whole(path, ["new"])
    assert victim.read_text("utf-8") == "precious"
    assert path.read_text("utf-8") == "old"


def test_temporary_names_cannot_be_guessed(path: Path) -> None:
    seen = set()
    for _ in range(3):
        with replacing(path):
            seen |= set(names(path.parent))
    assert len(seen) == 4


# -- devices, pipes, open files --------------------------------------------------------------------


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_device_or_an_open_file_is_nothing_to_replace(device: str) -> None:
    if not Path(device).exists():
        pytest.skip(f"there is no {device}")
    assert is_stream(Path(device))


def test_a_device_is_still_one_afterwards(tmp_path: Path) -> None:
    link = tmp_path / "nowhere"
    link.symlink_to("/dev/null")
    before = Path("/dev/null").stat()
    write_whole(link, ["text"])
    assert link.is_symlink()
    assert Path("/dev/null").stat().st_ino == before.st_ino
    assert Path("/dev/null").is_char_device()


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")))
    reader.start()
    write_whole(pipe, ["a", "b"])
    reader.join()
    assert read == ["ab"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("write", [lambda path: write_whole(path, ["x"]), lambda path: append(path, "x")])
def test_a_pipe_that_nobody_reads_is_not_waited_for_forever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: object
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(files, "PIPE_READER_S", 0.1)
    assert callable(write)
    with pytest.raises(OSError, match="nobody reads from this pipe"):
        write(pipe)


WRITES_TO_STDOUT = """
import sys
from pathlib import Path
from pytest_kebab_eval.files import write_whole
print("before", flush=True)
write_whole(Path(sys.argv[1]), ["text\\n"])
print("after", flush=True)
"""


@pytest.mark.parametrize("name", ["stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_redirected_output_is_continued_not_replaced(
    path: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if name == "stdout":  # a link like /dev/stdout, which is not put at risk here
        link = tmp_path_factory.mktemp("dev") / name
        link.symlink_to("/dev/fd/1")
        name = str(link)
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc")
    with path.open("a", encoding="utf-8") as output:
        output.write("\n")
        output.flush()
        subprocess.run([sys.executable, "-c", WRITES_TO_STDOUT, name], stdout=output, check=True)
    assert path.read_text("utf-8") == "old\nbefore\ntext\nafter\n"
    assert names(path.parent) == ["report.md"]


# -- new files -------------------------------------------------------------------------------------


def test_a_new_file_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "new"
    with creating(path) as new:
        new.write_text("text", encoding="utf-8")
        assert not path.exists()
    assert path.read_text("utf-8") == "text"
    assert names(tmp_path) == ["new"]


def test_a_name_that_was_taken_meanwhile_is_left_to_the_other(tmp_path: Path) -> None:
    path = tmp_path / "new"
    with pytest.raises(FileExistsError), creating(path):
        path.write_text("of another", encoding="utf-8")
    assert path.read_text("utf-8") == "of another"
    assert names(tmp_path) == ["new"]


@pytest.mark.parametrize("taken", [False, True])
def test_where_there_are_no_hard_links_a_new_file_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    path = tmp_path / "new"
    monkeypatch.setattr(os, "link", fail)
    try:
        with creating(path) as new:
            new.write_text("text", encoding="utf-8")
            if taken:
                path.write_text("of another", encoding="utf-8")
    except FileExistsError:
        assert taken
    assert path.read_text("utf-8") == ("of another" if taken else "text")
    assert names(tmp_path) == ["new"]


# -- what killed processes left --------------------------------------------------------------------

DIES = """
import os, signal, sys
from pathlib import Path
from pytest_kebab_eval.files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write("half")
    file.flush()
    if sys.argv[2:]:
        print(flush=True)
        sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_an_hour_later(
    path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", DIES, str(path)], check=False)
    assert len(names(path.parent)) == 2
    assert path.read_text("utf-8") == "old"
    write_whole(path.with_name("other.md"), ["text"])
    assert len(names(path.parent)) == 3
    write_whole(path, ["new"])
    assert len(names(path.parent)) == 3
    (left,) = {*path.parent.iterdir()} - {path, path.with_name("other.md")}
    os.utime(left, (time.time() - 7200, time.time() - 7200))
    write_whole(path, ["new"])
    assert names(path.parent) == ["other.md", "report.md"]


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    "name", ["report.md~", ".report.md", ".{pid}-report.md", ".{pid}-0011-report.md", "{pid}-{hex}-report.md"]
)
def test_a_file_of_the_user_is_left_alone(path: Path, name: str) -> None:
    mine = path.with_name(name.format(pid=dead_process(), hex="0" * 16))
    mine.write_text("precious", encoding="utf-8")
    os.utime(mine, (0, 0))
    write_whole(path, ["new"])
    assert mine.read_text("utf-8") == "precious"


def test_a_link_with_the_name_of_a_leftover_is_left_alone(path: Path) -> None:
    link = path.with_name(f".{dead_process()}-{'0' * 16}-report.md")
    link.symlink_to(path)
    write_whole(path, ["new"])
    assert link.is_symlink()


def test_only_an_old_file_is_removed(path: Path) -> None:
    left = path.with_name(f".{os.getpid()}-{'0' * 16}-report.md")
    left.touch()
    remove_leftovers(path)
    assert left.exists()
    os.utime(left, (time.time() - 7200, time.time() - 7200))
    remove_leftovers(path)
    assert not left.exists()
