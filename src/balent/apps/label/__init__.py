"""The labelling page: a small server over a project, and a process beside it that trains and proposes."""
