"""Tests of the marketplace's HTTP doors."""
