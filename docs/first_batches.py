"""The picture of docs/strategies.md: which digits four strategies ask for first.  python docs/first_batches.py"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import balent
from balent.data.sources import digits

STRATEGIES = ("random", "balentacq", "badge", "auto")
FIRST = 20
PICTURE = Path(__file__).with_name("strategies") / "first_batches.png"


def asked(strategy: str, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """The first two batches."""
    learner = balent.Learner(balent.Logistic(10), x, strategy, seed=0)
    batches = []
    for _ in range(2):
        batches.append(learner.ask(FIRST).indices)
        learner.tell(batches[-1], y[batches[-1]])
    return batches


def main() -> None:
    data = digits()
    x, y = data.x_train.flatten(1), data.y_train
    plane = torch.pca_lowrank(x, q=2, niter=10)[0]
    figure, panels = plt.subplots(2, 2, figsize=(9, 9), sharex=True, sharey=True, constrained_layout=True)
    for panel, strategy in zip(panels.flat, STRATEGIES, strict=True):
        first, second = asked(strategy, x, y)
        panel.scatter(*plane.T, c=y, cmap="tab10", s=5, alpha=0.35, linewidths=0)
        panel.scatter(*plane[first].T, s=60, facecolors="none", edgecolors="black", linewidths=1.2)
        panel.scatter(*plane[second].T, s=70, c="black", marker="x", linewidths=1.4)
        both = torch.cat([first, second])
        panel.set_title(
            f"{strategy}: {len(y[first].unique())} of 10 classes, then {len(y[both].unique())}", fontsize=13
        )
        panel.set_xticks([])
        panel.set_yticks([])
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=100)


if __name__ == "__main__":
    main()
