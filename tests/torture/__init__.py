"""Kills, full disks, damaged files and bad input, thousands of each: `make torture` prints what became of them.

Every module here has `run(tries, seed)`, which returns a Counter of outcomes for each thing that was tried:
"clear error", "right", "traceback" (an exception that is not in words) and "silent" (accepted, and wrong).
"""
