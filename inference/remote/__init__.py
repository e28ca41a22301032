"""Target models that answer from another process or machine: TorchServe, Ray Serve, Open Inference Protocol servers."""
