"""One machine of a run: `keras-bert pretrain` in a process that gets a signal after a step.

It prints a digest of its own weights at the end.

python -m tests.jobs.pretraining_worker NUMBER STEP ARGUMENT ...  (0 0: no signal)
"""

from __future__ import annotations

import hashlib
import os
import sys

from keras_bert_impl.cli import main
from keras_bert_impl.jobs import pretraining_progress, pretraining_run


def hurt_after(number: int, last: int) -> None:
    """Has this process get the signal `number` as soon as it has made `last` steps."""
    before = pretraining_progress.Progress.on_train_batch_end

    def on_train_batch_end(self, batch, logs=None):
        before(self, batch, logs)
        if self.step == last:
            os.kill(os.getpid(), number)

    pretraining_progress.Progress.on_train_batch_end = on_train_batch_end


def tell_digest() -> None:
    """Has this process print `digest NUMBER` when it has trained."""
    before = pretraining_run.PretrainRun.finish

    def finish(self, seconds):
        weights = b"".join(value.tobytes() for value in self.model.get_weights())
        print("digest", hashlib.sha256(weights).hexdigest(), flush=True)
        return before(self, seconds)

    pretraining_run.PretrainRun.finish = finish


if __name__ == "__main__":
    if int(sys.argv[2]):
        hurt_after(int(sys.argv[1]), int(sys.argv[2]))
    tell_digest()
    sys.argv[1:] = ["pretrain", *sys.argv[3:]]
    main()
