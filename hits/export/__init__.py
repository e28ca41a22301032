"""What leaves the house: a round as it stands (``collected``), and frozen rounds as a data set (``folder``)."""

from hits.export.collected import FORMAT_VERSION, export_round, find_round

__all__ = ["FORMAT_VERSION", "export_round", "find_round"]
