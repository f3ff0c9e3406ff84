"""Image-to-image networks, and what is done to their weights and signals. Torch is needed."""
