"""The engine of the MTurk-compatible marketplace: a plain library with its own store and clock, no web server in it."""
