"""run.py [--seed S] [--workers W] [--of requests|answers|both] [--seconds S] N    what the gateway makes of N generated requests and of N
generated answers is read by other servers and clients as by the gateway. Exits with 1 after a finding. The same seed makes the same
messages; after --seconds for each kind no further ones are begun."""

import argparse
import asyncio
import math
import os
import pickle
import random
import subprocess
import sys
import time

import findings

# Scripts of two workers have numbers of their own.
APART = 1 << 24


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--workers", type=int, default=max(1, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--of", choices=("requests", "answers", "both"), default="both")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def work(given):
    """The part of a worker: its tally goes as octets to its output, its progress to its error output."""
    import chain

    began, told = time.monotonic(), []

    def progress(done, tally):
        for finding in tally.findings[len(told) :]:
            told.append(finding)
            print(finding, file=sys.stderr, flush=True)
        rate = done / (time.monotonic() - began)
        print(
            f"worker {given.worker}: {done} {given.of}, {rate:.0f} a second, {sum(tally.kinds.values())} findings",
            file=sys.stderr,
            flush=True,
        )

    kind = getattr(chain, given.of)
    tally = asyncio.run(kind(given.count, given.seed, given.worker * APART, progress, began + given.seconds))
    sys.stdout.buffer.write(pickle.dumps(tally))


def spread(of, given):
    """The tally of all workers, with the seconds they took."""
    began = time.monotonic()
    share = -(-given.count // given.workers)
    children = []
    for index in range(given.workers):
        # Ports of their own, as promises that run beside each other have them.
        environment = os.environ | {
            "PYTEST_XDIST_WORKER": f"gw{index}",
            "PYTEST_XDIST_WORKER_COUNT": str(given.workers),
        }
        words = [sys.executable, __file__, str(share), "--seed", str(given.seed), "--of", of, "--worker", str(index)]
        words += ["--seconds", str(given.seconds)]
        children.append(subprocess.Popen(words, stdout=subprocess.PIPE, env=environment))
    tally = findings.Tally()
    for child in children:
        octets = child.communicate()[0]
        if child.returncode:
            sys.exit(f"a worker ended with {child.returncode}")
        tally.add(pickle.loads(octets))
    print(f"\n== {of}, seed {given.seed}: {time.monotonic() - began:.0f} s\n{tally.text()}", flush=True)
    return tally


def main():
    given = arguments()
    if given.worker is not None:
        return work(given)
    print(f"seed {given.seed}", flush=True)
    both = ("requests", "answers") if given.of == "both" else (given.of,)
    if any([spread(of, given).kinds for of in both]):
        sys.exit(1)


if __name__ == "__main__":
    main()
