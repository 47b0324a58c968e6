"""An engine that does what a cluster does: spans in any order, folds that are sent, merged in the order of the pool."""

import pickle

import torch

from balent.acquisition.engines.local import Local
from balent.data.pool import Narrowed


class Cut:
    """Spans of so many points, the last one first."""

    def __init__(self, points):
        self.points = points

    def scan(self, sampled, source, fold):
        empty, spans = pickle.dumps(fold), source.positions.split(self.points)
        done = [Local().scan(sampled, Narrowed(source, span), pickle.loads(empty)) for span in reversed(spans)]
        for other in reversed(done):
            fold = fold.merge(pickle.loads(pickle.dumps(other)))
        return fold

    def read(self, sampled, source, positions, what):
        sent = pickle.loads(pickle.dumps(what))
        return torch.cat([Local().read(sampled, source, part, sent) for part in positions.split(self.points)])
