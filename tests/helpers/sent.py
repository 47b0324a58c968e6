"""What arrives in another process."""

import pickle


def sent(thing):
    """As it comes out of a pickle."""
    return pickle.loads(pickle.dumps(thing))
