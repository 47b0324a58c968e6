"""Labelling projects: a folder that holds what is known of unlabelled data. See project.py."""
