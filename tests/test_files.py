"""A file is there whole or not at all."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import InputError
from headwater.files import STALE_SECONDS, make_private, make_private_directory, write_whole


def test_it_is_written_when_it_differs_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "feed.xml"
    with pytest.raises(InputError, match="cannot write"):
        write_whole(path, b"one")
    assert write_whole(path, b"one", make_directory=True)
    assert not write_whole(path, b"one")
    assert write_whole(path, iter((b"t", b"wo")))
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_half_way_changes_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    path = tmp_path / "feed.xml"
    write_whole(path, b"whole")
    with pytest.raises(ZeroDivisionError):
        write_whole(path, broken())
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot write"):
        write_whole(path / "deeper", b"")


def test_a_link_laid_in_its_way_is_not_followed(tmp_path: Path) -> None:
    precious, path = tmp_path / "precious", tmp_path / "feed.xml"
    precious.write_bytes(b"precious")
    path.symlink_to(precious)
    (tmp_path / f".feed.xml.{os.getpid()}.part").symlink_to(precious)
    write_whole(path, b"feed")
    assert (precious.read_bytes(), path.read_bytes(), path.is_symlink()) == (b"precious", b"feed", False)


def test_what_killed_processes_left_behind_is_swept_away(tmp_path: Path) -> None:
    old, young = tmp_path / ".feed.xml.a.part", tmp_path / ".feed.xml.b.part"
    for left in (old, young):
        left.touch()
    os.utime(old, (time.time() - 2 * STALE_SECONDS,) * 2)
    write_whole(tmp_path / "feed.xml", b"feed")
    assert not old.exists()
    assert young.exists()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_private_directory_shuts_others_out_and_leaves_what_is_there(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_directory(tmp_path / "a" / "b")
    assert [mode(tmp_path / name) for name in (".", "a", "a/b")] == [0o755, 0o700, 0o700]


def test_make_private_says_what_it_did_and_spares_what_all_share(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared, ours = tmp_path / "tmp", tmp_path / "ours"
    for each, permissions in ((shared, 0o1777), (ours, 0o755)):
        each.mkdir()
        each.chmod(permissions)
        make_private(each)
    make_private(tmp_path / "missing")
    assert (mode(shared), mode(ours)) == (0o1777, 0o700)
    assert [record.getMessage() for record in caplog.records] == [
        f"other users could read {ours}; now only its owner can"
    ]
    make_private(ours)
    assert len(caplog.records) == 1
