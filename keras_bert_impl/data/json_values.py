"""JSON of users: what the standard reader lets through, or dies of, is an error with its place."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["parse_json", "refuse_half_surrogates"]


def parse_json(text: str, where: str) -> Any:
    """As `json.loads`.

    Raises:
        json.JSONDecodeError: as there.
        ValueError: values are nested too deeply, or a number has thousands of digits.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise ValueError(f"{where}: not valid JSON: values are nested too deeply") from None
    except ValueError:
        raise ValueError(f"{where}: not valid JSON: a number has too many digits") from None


def refuse_half_surrogates(value: Any, where: str) -> None:
    """Raises ValueError where a string of a JSON value is no text and so cannot be written."""
    try:
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where}: half of a surrogate pair is not text") from None
