"""Sequence labelling: does a strategy gain on random, over 5 paired seeds, with a token classifier of Hugging Face?

Words of a made-up language are names of people, of places, or neither; some words are names only after a title. A
label is the class of every word, and -100 for padding. `balent.Parts` wraps MC dropout of a small BERT with random
weights, so nothing is downloaded. The gain is the difference to random in F1 of tokens, averaged from 10 to 55 labelled
sentences. Both strategies of a pair see the same sentences and the same first 10. SHORT=1 in the environment runs a
part of it.
"""

import os
import statistics

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertForTokenClassification

import balent
from balent.report.significance import interval

SHORT = "SHORT" in os.environ
SEEDS = 2 if SHORT else 5
WORDS, LENGTH = 60, 10
TITLES, PEOPLE, PLACES, EITHER = range(1, 3), range(3, 12), range(12, 21), range(21, 30)
START, PER_ROUND, ROUNDS = 10, 15, 1 if SHORT else 3


def data(sentences: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Numbers of words, and the class of each: 0 neither, 1 person, 2 place; EITHER is a person after a title."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(1, WORDS, (sentences, LENGTH), generator=generator)
    plain = torch.rand(sentences, 1, generator=generator) < 0.5
    words = torch.where(plain & (words < 30), words + 30, words)  # half of the sentences have no names
    lengths = torch.randint(3, LENGTH + 1, (sentences, 1), generator=generator)
    shown = torch.arange(LENGTH) < lengths
    after = torch.cat([torch.zeros(sentences, 1, dtype=torch.bool), inside(words[:, :-1], TITLES)], 1)
    y = torch.where(inside(words, PLACES), 2, 0)
    y[inside(words, PEOPLE) | (inside(words, EITHER) & after)] = 1
    return {"input_ids": words * shown, "attention_mask": shown.long()}, torch.where(shown, y, -100)


def inside(words: Tensor, group: range) -> Tensor:
    return (words >= group.start) & (words < group.stop)


def small_bert() -> BertForTokenClassification:
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    return BertForTokenClassification(
        BertConfig(vocab_size=WORDS, max_position_embeddings=LENGTH, num_labels=3, **sizes)
    )


def curve(strategy: str, seed: int) -> float:
    """F1 of tokens on 100 other sentences, averaged over the rounds."""
    torch.manual_seed(seed)
    (x, y), (x_test, y_test), scores = data(200, seed), data(100, 1000 + seed), []
    inner = balent.MCDropout(small_bert(), epochs=20, learning_rate=0.01)
    predictor = balent.Parts(inner, mask="attention_mask", aggregate="mean")
    learner = balent.Learner(predictor, x, strategy, seed=seed, draws=10, masks="shared", start=list(range(START)))
    for count in (START, *[PER_ROUND] * ROUNDS):
        picks = learner.ask(count)
        learner.tell(picks.indices, y[picks.indices])
        scores.append(balent.token_f1(learner.predict(x_test).argmax(-1), y_test))
    return statistics.mean(scores)


def main() -> None:
    plain = [curve("random", seed) for seed in range(SEEDS)]
    print(f"random      F1 of tokens {statistics.mean(plain):.3f}, {SEEDS} seeds")
    for strategy in ("auto", "balentacq"):
        gains = np.array([curve(strategy, seed) - before for seed, before in enumerate(plain)])
        low, high = interval(gains)
        print(f"{strategy:10s}  gain on random {gains.mean():+.3f}, 95 % interval ± {(high - low) / 2:.3f}")


if __name__ == "__main__":
    main()
