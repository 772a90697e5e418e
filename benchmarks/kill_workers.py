"""Stops one of two machines of a pre-training run again and again; compares the final weights.

python benchmarks/kill_workers.py [--times 10] [--signal KILL|TERM]

Two processes over loopback train the toy of the tests. In each round a machine chosen at random
gets the signal after a step chosen at random, and both are started again with --resume. After
SIGTERM both must have saved that step and ended with 143. The final weights must be, bit for bit,
those of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.jobs import pretraining_toy
from tests.jobs.machines import arguments_of, run_machines

STEPS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=10, help=f"less than {STEPS}")
    parser.add_argument("--signal", choices=("KILL", "TERM"), default="KILL")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    number = signal.Signals[f"SIG{options.signal}"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shards = pretraining_toy.make_shards(folder / "shards")
        config = pretraining_toy.write_config(folder / "config.json")

        def arguments(name):
            return [arguments_of(shards, config, folder / name, steps=STEPS)] * 2

        ended = run_machines(arguments("whole"))
        assert [end.code for end in ended] == [0, 0], ended
        first, again = arguments("killed"), [["--output", str(folder / "killed"), "--resume"]] * 2
        steps = sorted(draw.sample(range(1, STEPS), options.times))
        for time, step in enumerate(steps):
            victim = draw.randrange(2)
            ended = run_machines(again if time else first, signals={victim: (number, step)})
            codes = [end.code for end in ended]
            saved = sorted((folder / "killed/checkpoints").glob("step-*"))
            newest = int(saved[-1].name.removeprefix("step-")) if saved else 0
            print(
                f"{time + 1}: machine {victim} got {number.name} after step {step}: exit codes "
                f"{codes}, newest checkpoint {newest}",
                flush=True,
            )
            if number == signal.SIGTERM:
                assert codes == [128 + number] * 2, ended
                assert newest == step, ended
            else:
                assert codes[victim] == -number, ended
                assert codes[1 - victim] == 1, ended
        ended = run_machines(again)
        assert [end.code for end in ended] == [0, 0], ended
        files = [folder / name / "model.weights.h5" for name in ("whole", "killed")]
        same = files[0].read_bytes() == files[1].read_bytes() or _equal(*files)
        print("final weights equal bit for bit:", same)
        raise SystemExit(not same)


def _equal(*files: Path) -> bool:
    import h5py
    import numpy as np

    found = []
    for file in files:
        values = {}
        with h5py.File(file) as content:
            content.visititems(
                lambda name, item, values=values: (
                    values.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
                )
            )
        found.append(values)
    return found[0].keys() == found[1].keys() and all(
        np.array_equal(found[0][name], found[1][name]) for name in found[0]
    )


if __name__ == "__main__":
    main()
