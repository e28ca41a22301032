"""The writer's pages, shown in the marketplace's frame."""
