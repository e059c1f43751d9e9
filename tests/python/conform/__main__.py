"""Runs the cases of tests/vectors through the Python package: every case of every file in BYWAY_VECTORS (default
tests/vectors) that some subject runs; `FILE`, `KIND` or `ID` as an argument runs those alone. The last line is
`python: N passed, N failed, N skipped (kinds ...)`; kinds that no subject runs are counted there, by name.
"""
import collections
import json
import os
import sys
import traceback
from pathlib import Path

import beyond
import boundary
import dialogues
import files
import inside
import mesh
import net
import okhttp
import okhttp_selector
import order
import pac
import picks
import proxies
import race
import race_upstream
import retry
import rules
import scripts
import tunnels
import words
from case import Fails, Skips

SUBJECTS = (okhttp, okhttp_selector, dialogues, race, rules, mesh, scripts, words, beyond, picks, net, order,
            proxies, pac, retry, files, inside, race_upstream, tunnels, boundary)
KINDS = {key: run for subject in SUBJECTS for key, run in subject.KINDS.items()}


def cases(folder):
    for path in sorted(Path(folder).glob("*.jsonl")):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    yield path.stem, json.loads(line)


def main(only):
    folder = os.environ.get("BYWAY_VECTORS") or Path(__file__).resolve().parents[3] / "tests" / "vectors"
    passed = failed = 0
    skipped = collections.Counter()
    for file, case in cases(folder):
        kind, name = case.get("kind", "?"), case.get("id", "?")
        if only and not only & {file, kind, name}:
            continue
        run = KINDS.get((file, kind))
        if run is None:
            skipped[f"{file}/{kind}"] += 1
            continue
        try:
            run(case)
        except Skips as why:
            skipped[f"{kind}: {why}"] += 1
        except Fails as why:
            failed += 1
            print(f"FAIL {file} {name} ({kind}): {why}")
        except Exception:  # a case that breaks its runner does not hold either
            failed += 1
            print(f"FAIL {file} {name} ({kind}): {' / '.join(traceback.format_exc().strip().splitlines()[-3:])}")
        else:
            passed += 1
    line = f"python: {passed} passed, {failed} failed"
    if skipped:
        kinds = ", ".join(f"{name} {count}" for name, count in skipped.items())
        line += f", {sum(skipped.values())} skipped (kinds {kinds})"
    print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
