"""The size of the matrix's picture, which pages state before it is drawn."""

from __future__ import annotations

from typing import Final

from hits.measures.matrix import Matrix

#: More models, or more sets, make no picture that can be read; the newest models are drawn.
MOST_MODELS: Final = 6
MOST_SETS: Final = 24


def inches_high(matrix: Matrix) -> float:
    """Return the height of the picture; it is 8 inches wide."""
    models, sets = min(len(matrix.models), MOST_MODELS), min(len(matrix.sets), MOST_SETS)
    return 1.1 + 0.22 * models + sets * (0.22 + 0.16 * models)
