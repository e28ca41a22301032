"""The work: rounds, contexts, HITs, assignments, attempts, examples, votes. The floor that all else stands on."""
