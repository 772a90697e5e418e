"""How vectors, similarities, next sentences and attention look."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from keras_bert_impl.cli.display import Display
from keras_bert_impl.jobs import AttentionView, PairScores, TextSimilarities, WrittenFeatures

__all__ = ["AnalysisDisplay"]


class AnalysisDisplay(Display):
    """Prints results on standard output."""

    def features(self, result: WrittenFeatures) -> None:
        """Prints what a file of vectors holds."""
        self.output.print(
            f"{result.vectors:,} vectors of {result.width} numbers, of {result.texts:,} texts: "
            f"{result.output} ({result.seconds:.0f} s)"
        )

    def similarities(self, result: TextSimilarities) -> None:
        """Prints one number for two texts, else a table of each with each."""
        if len(result.texts) == 2:
            self.output.print(f"{result.cosines[0][1]:.4f}")
            return
        table = Table(box=None)
        for name in ("", *map(str, range(1, len(result.texts) + 1)), ""):
            table.add_column(name, justify="right" if name else "left")
        for number, (text, row) in enumerate(zip(result.texts, result.cosines, strict=True), 1):
            table.add_row(str(number), *(f"{cosine:.4f}" for cosine in row), Text(text))
        self.output.print(table)

    def scores(self, result: PairScores) -> None:
        """Prints one number a line, in the order of the pairs."""
        for score in result.scores:
            self.output.print(f"{score:.4f}")

    def attention(self, result: AttentionView) -> None:
        """Prints where the page and the picture are."""
        self.output.print(
            f"{len(result.tokens)} tokens, {result.layers} layers of {result.heads} heads: "
            f"{result.page}"
        )
        if result.heatmap is not None:
            self.output.print(f"heatmap: {result.heatmap}")
