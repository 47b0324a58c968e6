"""Texts as features: words and characters counted (TF-IDF), or a sentence model."""
