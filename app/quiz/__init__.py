"""The qualification HIT: rules, examples, questions, and what was right."""
