"""Pages for everybody: the front door and the health checks."""
