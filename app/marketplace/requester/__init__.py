"""The requester console: money, HITs, reviews, qualifications, keys; what it changes goes through the API's rules."""
