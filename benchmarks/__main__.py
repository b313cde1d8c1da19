"""Every benchmark, one after the other: `make bench`. Each prints ratios against a peer or a floor of the same run."""

import pkgutil
import subprocess
import sys

import benchmarks


def main() -> int:
    names = sorted(
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__"
    )
    failed = 0
    for name in names:
        print(f"\n== {name}", flush=True)
        failed += subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
