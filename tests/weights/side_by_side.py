"""Do one thing in two ways, in turn, on the machine on which this runs: python3 side_by_side.py < JOB

JOB: {"rounds": N, "ways": {name: {"argv", "stdin", "env", "fresh": directories that are not there before}}}.
Says the seconds that each way took in each round, and its last output: {name: {"seconds": […], "said"}}.
"""

import json
import os
import shutil
import subprocess
import sys
import time


def once(way):
    """Seconds that a way takes, and what it says."""
    for directory in way.get("fresh", []):
        shutil.rmtree(directory, ignore_errors=True)
    # What the way before has left to be written is none of this one's.
    os.sync()
    began = time.monotonic()
    done = subprocess.run(
        way["argv"],
        input=way.get("stdin", ""),
        env={**os.environ, **way.get("env", {})},
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.monotonic() - began
    if done.returncode:
        sys.exit(f"{way['argv']} ended {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took, done.stdout


def main():
    """Each round begins with the other way than the one before, as whoever comes first may pay for it."""
    job = json.load(sys.stdin)
    found = {name: {"seconds": [], "said": ""} for name in job["ways"]}
    for number in range(job["rounds"]):
        for name in sorted(job["ways"], reverse=bool(number % 2)):
            took, said = once(job["ways"][name])
            found[name]["seconds"].append(round(took, 3))
            found[name]["said"] = said
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
