from __future__ import annotations

from tests.jobs.toy import toy, trained

__all__ = ["toy", "trained"]
