"""Title: Continue pre-training on texts of a domain.

Description: takes the weights of a checkpoint, pre-trains them further on a corpus of the domain
with the checkpoint's own vocabulary, and leaves a folder that `finetune --weights` takes.

    python examples/continue_pretraining.py CHECKPOINT corpus.txt FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from keras_bert_impl import BertEncoder
from keras_bert_impl.data.example_settings import ExampleSettings
from keras_bert_impl.jobs import PretrainSettings, make_shards, pretrain
from keras_bert_impl.sources import resolve


def main(checkpoint: str, corpus: str, folder: str, steps: int = 1000, batch_size: int = 32):
    checkpoint, folder = resolve(checkpoint), Path(folder)
    # A tenth of the documents tells whether the model still learns, or only learns by heart.
    longest = BertEncoder.from_pretrained(checkpoint).config.max_position_embeddings
    shards = make_shards(
        corpus,
        checkpoint,
        folder / "shards",
        ExampleSettings(hold_out=0.1, max_seq_length=min(128, longest)),
    )

    # BERT's authors advise 2e-5 for going on (their README, "Pre-training tips and caveats").
    settings = PretrainSettings(
        data=shards.folder,
        output=folder / "run",
        init_checkpoint=checkpoint,
        steps=steps,
        batch_size=batch_size,
        learning_rate=2e-5,
        save_every=max(steps // 5, 1),
    )
    result = pretrain(settings)
    for line in result.history:
        print(line["step"], line["train"]["masked_lm_loss"], line["eval"].get("masked_lm_loss"))
    print(f"keras-bert finetune --weights {result.folder} ...")


if __name__ == "__main__":
    main(*sys.argv[1:])
