"""The requester's pages: rounds, flags, assignments that need a look."""
