"""How the models that come with the repository were made: published data, recipes, fine-tuning, measuring."""
