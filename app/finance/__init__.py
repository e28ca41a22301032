"""Pages for finance: what is owed and paid, the month, each payout with its reason and postings. They move no money."""

from app.finance.views import bp

__all__ = ["bp"]
