"""No kill, full disk or racer leaves half of a file under its name."""

import errno
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from made_up_files import largest_file, names

from kev import files


def test_a_replaced_file_is_readable_by_others_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.json"
    for turn in range(3):
        files.write_atomic(path, files.dump_json(turn))
        assert files.read_json(path) == turn
    assert names(path.parent) == ["a.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_write_that_the_device_refuses_leaves_the_old_bytes_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write_atomic(path, b"old\n")
    with largest_file(1000), pytest.raises(OSError) as refusal:
        files.write_atomic(path, b"n" * 5000)
    assert refusal.value.errno == errno.EFBIG
    assert (path.read_bytes(), names(tmp_path)) == (b"old\n", ["a.json"])
    with largest_file(1000), pytest.raises(OSError):
        files.create_exclusive(tmp_path / "b.json", b"n" * 5000)
    assert names(tmp_path) == ["a.json"]


def test_a_directory_under_the_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OSError):
        files.write_atomic(tmp_path / "a.json", b"x\n")
    assert names(tmp_path) == ["a.json"]


def test_a_writer_killed_at_any_moment_leaves_one_whole_value(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    code = (
        "import sys; from pathlib import Path; from kev import files\n"
        "for turn in range(10**6):\n"
        "    files.write_atomic(Path(sys.argv[1]), files.dump_json([turn] * 9000)); print(turn, flush=True)"
    )
    for lines in (1, 2, 5):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        with writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(lines)][-1]
            writer.send_signal(signal.SIGKILL)
        value = files.read_json(path)
        assert len(value) == 9000 and len(set(value)) == 1 and value[0] >= acknowledged


def test_of_many_creators_one_wins_and_its_bytes_are_whole(tmp_path: Path) -> None:
    path, start, won = tmp_path / "a.json", threading.Barrier(8), []

    def create(racer: int) -> None:
        start.wait()
        try:
            files.create_exclusive(path, files.dump_json([racer] * 2000))
            won.append(racer)
        except FileExistsError:
            pass

    racers = [threading.Thread(target=create, args=(racer,)) for racer in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(won) == 1
    assert files.read_json(path) == won * 2000
    assert names(tmp_path) == ["a.json"]


def test_what_a_writer_puts_into_its_temporary_replaces_the_file_wholly_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    files.write_through(path, lambda temporary: temporary.write_bytes(b"first"))
    assert path.read_bytes() == b"first" and path.stat().st_mode & 0o777 == 0o644

    def fail(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise OSError("the device is full")

    with pytest.raises(OSError, match="full"):
        files.write_through(path, fail)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
