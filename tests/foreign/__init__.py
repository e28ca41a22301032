"""Clients of MTurk's API that are not ours, unmodified, against the marketplace."""
