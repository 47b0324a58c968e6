"""Where to start: a command for each thing that people come for, with what it does."""

FIRST_STEPS = {
    "balent label --demo": "try the labelling page",
    "balent label photos --classes cat,dog": "label a folder, or tickets.csv",
    "balent score probs.npy --top 100": "rank probabilities you have",
    "balent acquire model.py:net pool.npy -k 500": "choose with your own model",
    "balent run digits": "compare strategies",
}


def first_steps() -> list[str]:
    """A line for each, in two columns."""
    width = max(map(len, FIRST_STEPS))
    return [f"{command:{width}}  {what}" for command, what in FIRST_STEPS.items()]
