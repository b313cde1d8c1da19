"""What a visit costs over TLS: on a new connection, on one that resumes a session, and on one that was kept.

A source is visited every few hours, so most visits are the first of their connection. Beside Headwater, in turns in one
run: bare aiohttp and bare pycurl, which make the same requests and do nothing with the answers. Certificates are
checked by all of them.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, get_args

from tests.origin import make_certificate

from benchmarks.engine.contenders import bare, bare_curl, contender, headwater
from benchmarks.engine.databases import new_database
from benchmarks.engine.origin import ADDRESSES, TlsMode, feed_url, serving
from benchmarks.verdict import Verdict

MOST_OF_CURL = 1.1
_HOSTS = tuple(f"127.0.0.{number}" for number in range(1, ADDRESSES + 1))


def _certificate(kind: Literal["RSA", "ECDSA"], directory: Path) -> tuple[Path, Path]:
    """Files with a server's key and certificate, and with the authority's."""
    leaf, ca = make_certificate("trusted", _HOSTS, kind)
    files = directory / f"{kind}.pem", directory / f"{kind}-ca.pem"
    for file, content in zip(files, (leaf, ca), strict=True):
        file.write_bytes(content)
    return files


def measure_tls(options: argparse.Namespace, server_url: str, directory: Path, verdict: Verdict) -> None:
    names = ("bare aiohttp", "bare pycurl", "headwater, SQLite")
    print(
        f"\nCPU seconds per 1,000 visits over TLS, all 304, {options.sources} feeds, {options.at_once} at once"
    )
    print(f"  {'':34}" + "".join(f"{name:>20}" for name in names))
    kinds: tuple[Literal["RSA", "ECDSA"], ...] = ("RSA", "ECDSA")
    for kind in kinds:
        leaf, ca_file = _certificate(kind, directory)
        for mode in get_args(TlsMode):
            costs = _measure(options, server_url, directory, leaf, ca_file, mode)
            print(f"  {f'{kind}, {mode} connections':34}" + "".join(f"{cost:20.3f}" for cost in costs))
            verdict.tell(
                f"304 over TLS, {kind}, {mode}: times bare pycurl's",
                costs[2] / costs[1],
                "×",
                most=MOST_OF_CURL,
            )


def _measure(
    options: argparse.Namespace, server_url: str, directory: Path, leaf: Path, ca_file: Path, mode: TlsMode
) -> list[float]:
    with serving(options.sources, 1, certificate=leaf, mode=mode) as port, ExitStack() as stack:
        urls = [feed_url(port, number, options.sources, "https") for number in range(options.sources)]
        warm_up = f"{urls[0]}?warm-up"
        database = stack.enter_context(new_database("SQLite", directory, server_url))
        contenders = [
            stack.enter_context(contender(bare, warm_up, options.at_once, True, ca_file)),
            stack.enter_context(contender(bare_curl, warm_up, options.at_once, ca_file)),
            stack.enter_context(contender(headwater, database, warm_up, options.at_once, ca_file)),
        ]
        for there in contenders:
            there.visit(urls)
        rounds = [[there.visit() for there in contenders] for _ in range(options.rounds)]
    return [1000 * min(costs) for costs in zip(*rounds, strict=True)]
