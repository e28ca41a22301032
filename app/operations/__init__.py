"""The use cases, one module each: where packages meet and transactions are committed. Supported as a Python API.

Every operation takes what it works on (a session, the marketplace, settings, a clock) and can be stopped at any
point and run again. docs/operations.md describes them.
"""
