"""The service: pages, commands and the operations that join the other packages. The only place that knows Flask."""
