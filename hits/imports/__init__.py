"""Reads published adversarial data sets as past rounds, with their votes where those were published."""
