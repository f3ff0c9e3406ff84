"""Fuzz everything that reads what others wrote, and every corruption.

    python tests/fuzz/fuzz.py --cases 1000000

With atheris installed, parsers are fuzzed by coverage; otherwise, and where the work is done in
compiled code, by mutation of sound examples. What breaks a promise is written to a file and told;
``--replay FILE --target NAME`` runs it again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Whose work is done in compiled code, where coverage shows nothing.
COMPILED = {"corruption", "label-parquet", "results", "picture", "arrays"}
ODD = [b"", b"\0", b"\xff" * 4, b"\xef\xbb\xbf", b"\r\n", b"-1", b"9" * 40, b"\xc3\xa9", b"\n" * 9]


def mutations(seeds: list[bytes], words: tuple[str, ...], seed: int) -> Iterator[bytes]:
    """Yield sound examples, and then without end what became of them."""
    draw = random.Random(seed)
    yield from seeds
    pieces = [word.encode() for word in words] + ODD
    while True:
        content = bytearray(draw.choice(seeds))
        for _ in range(1 + int(draw.expovariate(0.4))):
            at = draw.randrange(len(content) + 1)
            size = 1 + int(draw.expovariate(0.15))
            kind = draw.randrange(8)
            if kind == 0:
                content[at:at] = draw.choice(pieces)
            elif kind == 1:
                del content[at : at + size]
            elif kind == 2:
                content[at:at] = content[at : at + size]
            elif kind == 3 and content:
                content[at % len(content)] ^= 1 << draw.randrange(8)
            elif kind == 4 and content:
                content[at % len(content)] = draw.randrange(256)
            elif kind == 5:
                content[at : at + size] = draw.choice(pieces)
            elif kind == 6:
                other = draw.choice(seeds)
                content[at:] = other[draw.randrange(len(other) + 1) :]
            elif draw.random() < 0.02:  # deep or long
                content[at:at] = draw.choice(pieces) * draw.choice([50, 3_000, 30_000])
        yield bytes(content)


def run(name: str, cases: int, seed: int) -> int:
    """Run a target on so many mutations; return how many it took before one broke a promise."""
    from targets import TARGETS

    one = TARGETS[name]
    with tempfile.TemporaryDirectory(dir=_fast()) as scratch:
        folder = Path(scratch) / "here"
        folder.mkdir()
        os.chdir(folder)
        stream = mutations(one.seeds(), one.words, seed)
        for number in range(cases):
            content = next(stream)
            begun = time.process_time()
            try:
                one(content, folder)
                assert time.process_time() - begun < 10, "it took more than ten seconds"
            except BaseException:
                found = Path(tempfile.gettempdir()) / f"shiftbed-fuzz-{name}-{seed}-{number}"
                found.write_bytes(content)
                print(f"{name}: case {number:,} breaks a promise; it is kept in {found}")
                os.chdir(HERE)
                raise
        os.chdir(HERE)
    return cases


def guided(name: str, cases: int, seed: int) -> None:
    """Let atheris choose the cases. It ends this process."""
    import atheris

    with atheris.instrument_imports(include=["shiftbed"]):
        from targets import TARGETS

    one = TARGETS[name]
    home = Path(tempfile.mkdtemp(dir=_fast()))
    for kind in ("corpus", "here"):
        (home / kind).mkdir()
    os.chdir(home / "here")
    for number, content in enumerate(one.seeds()):
        (home / "corpus" / str(number)).write_bytes(content)
    entries = (json.dumps(word) for word in one.words if word.isascii() and "\0" not in word)
    (home / "words").write_text("".join(f"{entry}\n" for entry in entries if "\\u" not in entry))
    words = [f"-dict={home / 'words'}"] if one.words else []
    artifacts = f"-artifact_prefix={tempfile.gettempdir()}/shiftbed-fuzz-{name}-"
    how = [f"-runs={cases}", f"-seed={seed + 1}", "-timeout=10", "-rss_limit_mb=4096"]
    how += ["-max_len=20000", "-detect_leaks=0", artifacts]
    # A dictionary's escapes are not JSON's; these words have none but the quotation mark's.
    atheris.Setup(
        [sys.argv[0], *how, *words, str(home / "corpus")],
        lambda content: one(content, home / "here"),
    )
    atheris.Fuzz()


def _fast() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> None:
    """Run the targets, each in a process of its own, and say how many cases each took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000, help="in all")
    parser.add_argument("--target", action="append", help="one alone; repeatable")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=Path, help="a case that was kept")
    parser.add_argument("--alone", choices=["run", "guided"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path.insert(0, str(HERE))
    if given.alone:
        [name] = given.target
        {"run": run, "guided": guided}[given.alone](name, given.cases, given.seed)
        return
    from targets import TARGETS

    names = given.target or list(TARGETS)
    if given.replay:
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            TARGETS[names[0]](given.replay.read_bytes(), Path(scratch))
            os.chdir(HERE)
        return
    weights = sum(TARGETS[name].weight for name in names)
    total, failed = 0, []
    for name in names:
        cases = max(1, round(given.cases * TARGETS[name].weight / weights))
        coverage = find_spec("atheris") is not None and name not in COMPILED
        begun = time.monotonic()
        words = [sys.executable, __file__, "--alone", "guided" if coverage else "run"]
        words += ["--target", name, "--cases", str(cases), "--seed", str(given.seed)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - begun
        if done.returncode:
            failed.append(name)
            print(f"| {name} | failed after {seconds:.0f} s |", flush=True)
            print("\n".join((done.stdout + done.stderr).splitlines()[-40:]), flush=True)
            continue
        told = re.search(r"Done (\d+) runs", done.stderr)
        cases = int(told[1]) if told else cases
        total += cases
        how = "coverage" if coverage else "mutation"
        print(f"| {name} | {cases:,} | {how} | {cases / seconds:,.0f} a second |", flush=True)
    print(f"{total:,} cases over {len(names)} targets; {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
