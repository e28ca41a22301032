"""The validator's pages, shown in the marketplace's frame."""
