"""Tiny experiments, and what they leave behind."""

import json
from dataclasses import replace

import torch
from torch import nn

from balent.data.sources import DATASETS, moons
from balent.paper.experiments import DIGITS, MOONS
from balent.simulation.experiment import run

DATASETS["few"] = lambda: moons(80, 40)  # an entry of the table like any other
TINY = replace(MOONS, data="few", epochs=3, draws=6, evaluation_draws=6, start=6, per_round=3, total=11)
IMAGES = replace(DIGITS, epochs=3, draws=6, evaluation_draws=6, start=20, per_round=4, total=28)


def timeless(records):
    """Records without the one field that may differ."""
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def finish(spec, directory):
    """A run to its end, in a process of its own or in this one."""
    torch.set_num_threads(1)
    for _ in run(spec, directory, resume=True, say=lambda word: None):
        pass


def shallow(data):
    """Dropout in the last layer alone."""
    inputs = data.x_train[:1].numel()
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, data.classes))
