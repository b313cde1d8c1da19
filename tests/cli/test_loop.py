"""The event loop of the commands."""

import subprocess
import sys


def test_it_runs_on_uvloop_where_there_is_one() -> None:
    # In a separate process, for it also sets how often garbage is looked for.
    code = (
        "import asyncio\n"
        "from headwater.cli.loop import run\n"
        "async def kind(): return type(asyncio.get_running_loop()).__module__\n"
        "print(run(kind()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "uvloop"


def test_garbage_does_not_pile_up() -> None:
    code = (
        "import weakref\n"
        "from headwater.cli.loop import run\n"
        "class Knot:\n"
        "    def __init__(self): self.itself = self\n"
        "async def most():\n"
        "    left, seen = weakref.WeakSet(), 0\n"
        "    for _ in range(50_000):\n"
        "        left.add(Knot())\n"
        "        seen = max(seen, len(left))\n"
        "    return seen\n"
        "print(run(most()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 5_000
