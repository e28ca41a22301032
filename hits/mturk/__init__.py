"""The Requester API in our own words. boto3 and botocore are imported here and nowhere else above the marketplace."""
