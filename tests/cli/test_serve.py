"""The options of `headwater serve`."""

import signal
import socket
import time
from pathlib import Path

from tests.command import Headwater


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_serve_listens_where_it_is_told_and_opens_a_browser(tmp_path: Path) -> None:
    browser = tmp_path / "bin" / "xdg-open"
    browser.parent.mkdir()
    browser.write_text('#!/bin/sh\necho "$1" > opened.part\nmv opened.part opened\n')
    browser.chmod(0o755)
    headwater = Headwater(tmp_path, None)
    headwater.environment["PATH"] = f"{browser.parent}:{headwater.environment['PATH']}"
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    serving = headwater.start(
        "serve", "--host", "127.0.0.1", "--port", str(port), "--open", HEADWATER_PORT="1"
    )
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "opened").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (tmp_path / "opened").read_text() == f"{address}\n"
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
    finally:
        serving.send_signal(signal.SIGTERM)
        out, _ = serving.communicate(timeout=60)
    assert (serving.returncode, address in out) == (0, True)
