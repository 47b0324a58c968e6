"""Backbones, embeddings and SimCLR for images."""
