"""The HTTP doors of the marketplace: Requester API, worker site, requester console; its own Flask app."""
