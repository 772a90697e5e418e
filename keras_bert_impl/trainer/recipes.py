"""What may be asked of a training step."""

from __future__ import annotations

import math

__all__ = ["check_recipe"]


def check_recipe(micro_batches: int, r_drop: float, adversarial: float) -> None:
    """Raises ValueError where a value is out of range, or two are asked for that exclude another.

    Args:
        micro_batches: parts of a batch, at least 1.
        r_drop: alpha of R-Drop (Liang et al. 2021); 0: none.
        adversarial: epsilon of adversarial training (Miyato et al. 2017); 0: none.
    """
    if micro_batches < 1:
        raise ValueError(f"micro_batches must be at least 1, got {micro_batches}")
    for name, value in (("r_drop", r_drop), ("adversarial", adversarial)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be at least 0 and finite, got {value}")
    if r_drop and adversarial:
        raise ValueError(f"expected r_drop or adversarial, got both ({r_drop} and {adversarial})")
