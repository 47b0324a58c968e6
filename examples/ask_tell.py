"""Ask and tell at the terminal: you label points of the plane until you have had enough, and may come back tomorrow.

python examples/ask_tell.py          type 0 (left), 1 (right), s to skip, q to stop; run it again to go on
python examples/ask_tell.py --auto   answers by itself
"""

import sys

import torch
from torch import nn

import balent


def main() -> None:
    auto = "--auto" in sys.argv or not sys.stdin.isatty()
    pool = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    network = nn.Sequential(nn.Linear(2, 32), nn.Dropout(0.3), nn.ReLU(), nn.Linear(32, 2))
    predictor = balent.MCDropout(network, epochs=200)
    with balent.Learner(predictor, pool, "balentacq", directory="runs/ask_tell") as learner:
        for _ in range(3):
            waiting = learner.pending if len(learner.pending.indices) else learner.ask(4)
            for i in waiting.indices.tolist():
                x, y = pool[i].tolist()
                answer = str(int(x > 0)) if auto else input(f"point {i} at ({x:+.2f}, {y:+.2f})? ")
                if answer == "q":
                    return
                learner.tell([i], [int(answer)], who="me") if answer in ("0", "1") else learner.skip([i], who="me")
            learner.fit()
            right = learner.sampled().moments(pool).mean.argmax(1) == (pool[:, 0] > 0)
            print(f"{len(learner.told):3d} labels  accuracy {right.double().mean():.3f}")


if __name__ == "__main__":
    main()
