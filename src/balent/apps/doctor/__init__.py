"""What would spoil a labelling project or a run, found before it starts: one file per subject, one finding each."""
