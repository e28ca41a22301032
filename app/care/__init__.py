"""What stands before the work: consent, warnings, and texts that are shown only to those who ask for them."""
