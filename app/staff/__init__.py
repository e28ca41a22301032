"""Signing in and out of the pages for staff."""
