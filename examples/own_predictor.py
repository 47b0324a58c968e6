"""A predictor of your own, used by name: softmax of the distances to class means, each mean with its uncertainty.

    balent run digits --set predictor=examples/own_predictor.py:ClassMeans --strategies bald,random --seeds 1
    balent run digits --set "predictor=examples/own_predictor.py:ClassMeans(scale=0.5)" --seeds 1

Its arguments are filled by their names: `data`, `network`, `epochs`, `batch_size`, `learning_rate`, `weight_decay`,
`warm_start` and `augment` are the experiment's. Other arguments need a default, and can be set in brackets.
"""

import torch
from torch import Generator, Tensor

import balent
from balent.data.sources import Data, load


class ClassMeans:
    """The mean of class c is Gaussian: around the mean of its n labelled points, with variance scale² / (n + 1)."""

    def __init__(self, data: Data, scale: float = 0.3) -> None:
        self.classes, self.scale = data.classes, scale

    def fit(self, labelled: tuple[Tensor, Tensor], *, generator: Generator) -> None:
        x, y = labelled[0].flatten(1), labelled[1]
        member = torch.nn.functional.one_hot(y, self.classes).to(x.dtype)  # [points, classes]
        self.count = member.sum(0)
        self.mean = (member.T @ x + x.mean(0)) / (self.count + 1)[:, None]  # a class without labels is in the middle

    def sample(self, n: int, *, seed: int, masks: str = "shared") -> "Means":
        noise = torch.randn(n, *self.mean.shape, generator=Generator().manual_seed(seed))
        return Means(self.mean + self.scale * noise / (self.count + 1).sqrt()[:, None], self.scale)

    def state(self) -> dict[str, Tensor]:
        return {}  # every fit starts anew, so there is nothing to keep for a resumed run

    def load_state(self, state: dict[str, Tensor]) -> None:
        pass


class Means:
    """Posterior samples: n sets of class means, [draws, classes, features]."""

    def __init__(self, means: Tensor, scale: float) -> None:
        self.means, self.scale = means, scale

    def __call__(self, batch: Tensor, positions: Tensor | None = None) -> Tensor:
        x = batch.flatten(1)
        nearness = x @ self.means.flatten(0, 1).T - self.means.square().sum(-1).flatten() / 2
        return (nearness / self.scale**2).unflatten(1, self.means.shape[:2]).softmax(-1)

    def moments(self, batch: Tensor, positions: Tensor | None = None) -> balent.Moments:
        return balent.Moments.of(self(batch, positions))


def main() -> None:
    data = load("digits")
    learner = balent.Learner(ClassMeans(data), data.x_train, strategy="entropy", draws=20)
    for _ in range(4):
        picks = learner.ask(10)
        learner.tell(picks.indices, data.y_train[picks.indices])
        found = learner.sampled()(data.x_test).mean(1).argmax(1)
        print(f"{len(learner.told)} labels  accuracy {float((found == data.y_test).double().mean()):.3f}")


if __name__ == "__main__":
    main()
