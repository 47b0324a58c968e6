"""Probabilities of any framework, as a numpy array: scores, their errors, picks, and moments by the chunk."""

import numpy as np

import balent


def predictions(points: int = 2000, draws: int = 100, classes: int = 10, seed: int = 0) -> np.ndarray:
    """Stands for your model: what each of several functions predicts, [pool, draws, classes]."""
    rng = np.random.default_rng(seed)
    center = 3 * rng.standard_normal((points, 1, classes)) * rng.random((points, 1, 1))
    logits = center + rng.standard_normal((points, draws, classes)) * 2 * rng.random((points, 1, 1))
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32)


def main() -> None:
    draws = predictions()
    for name in ("balentacq", "balent", "bald", "entropy"):
        scores, errors = balent.score(draws, name, with_error=True)
        picks = balent.select(draws, name, k=25)
        best = picks.indices[0]
        print(
            f"{name:9s}  best: point {best}, {scores[best]:.4g} ± {errors[best]:.2g};  "
            f"two halves of the draws share {picks.stability:.0%} of the top 25"
        )

    # Draws may come a chunk at a time, from as many workers as you like: only their moments are kept.
    m = balent.Moments.of(draws[:, :10])
    for start in range(10, 100, 10):
        m = m + balent.Moments.of(draws[:, start : start + 10])
    merged = balent.MEASURES["bald"](m).numpy()
    print(f"{m.n} draws in chunks: BALD differs by at most {abs(merged - balent.score(draws, 'bald')).max():.0e}")


if __name__ == "__main__":
    main()
