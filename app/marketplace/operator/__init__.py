"""The operator console: accounts, top-ups, reports, disputes, payout runs, and the log of who did what."""
