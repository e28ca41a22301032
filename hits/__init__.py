"""The work: rounds, contexts, HITs, assignments, attempts, examples and votes. The floor every other package stands on."""
