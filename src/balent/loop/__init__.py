"""Ask, label, tell: the Learner and what it keeps on disk."""
