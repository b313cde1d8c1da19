"""`python -m tests.soak --seconds 600`: exit status 1 where something leaked, was lost or was doubled."""

import argparse
import signal
import sys

from tests.soak.run import DATABASES, soak


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--seconds", type=float, default=600.0, help="how long; the reckoning comes on top"
    )
    arguments.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    arguments.add_argument("--sources", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=20_261_115)
    options = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and take the processes along

    def tell(text: str) -> None:
        print(text, flush=True)

    tell(f"seed {options.seed}")
    report = soak(options.seconds, options.databases, options.sources, options.seed, tell)
    print("\n".join(report.lines))
    for finding in report.findings:
        print(f"FOUND {finding}")
    print(
        "nothing leaked, nothing lost, nothing doubled"
        if not report.findings
        else f"{len(report.findings)} findings"
    )
    return int(bool(report.findings))


if __name__ == "__main__":
    sys.exit(main())
