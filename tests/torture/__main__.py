"""`make torture`: everything here, and a table of what became of it. Exits with 1 if anything was silent or unclear."""

import importlib
import sys
import time

# Modules of this folder, and how often each of their things is tried.
PARTS = {"disk": 0, "kills": 40, "projects": 40, "learners": 3000, "api": 3000, "pools": 1000, "readers": 1000}
OUTCOMES = ("clear error", "right", "traceback", "silent")


def main(seed: int = 0) -> int:
    print(f"{'':44s}{'tried':>8s}" + "".join(f"{outcome:>13s}" for outcome in OUTCOMES))
    bad = 0
    for part, tries in PARTS.items():
        start = time.monotonic()
        for what, found in importlib.import_module(f"torture.{part}").run(tries, seed).items():
            tried = sum(found[outcome] for outcome in OUTCOMES)
            print(f"{what:44s}{tried:8d}" + "".join(f"{found[outcome]:13d}" for outcome in OUTCOMES), flush=True)
            bad += found["traceback"] + found["silent"]
        print(f"  {part}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
