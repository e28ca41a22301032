"""Tests of the requester console."""
