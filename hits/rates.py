"""A share with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """A share with its 95 % Wilson interval, or without when nothing was counted."""

    hits: int
    of: int

    @property
    def percent(self) -> str:
        """Return the share in words."""
        return f"{100 * self.hits / self.of:.1f}%" if self.of else "none yet"

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Return the interval, None when nothing was counted."""
        return wilson(self.hits, self.of) if self.of else None

    @property
    def interval(self) -> str:
        """Return the interval in words, empty when nothing was counted."""
        if not self.of:
            return ""
        low, high = wilson(self.hits, self.of)
        return f"{100 * low:.1f}% to {100 * high:.1f}%"


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Return the Wilson score interval of a share of at least one."""
    share = hits / of
    spread = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    middle = share + z * z / (2 * of)
    scale = 1 + z * z / of
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
