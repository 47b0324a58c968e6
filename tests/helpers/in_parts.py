"""Draws that can be taken in parts."""

from balent import Draws


class InParts(Draws):
    """Draws computed elsewhere that can be taken in parts; it counts how many were looked at."""

    def __init__(self, array, looked=None):
        super().__init__(array)
        self.looked = [0] if looked is None else looked

    @property
    def n(self):
        return self.array.shape[1]

    def part(self, start, stop):
        return InParts(self.array[:, start:stop], self.looked)

    def moments(self, batch, positions=None):
        self.looked[0] += len(batch) * self.n
        return super().moments(batch, positions)
