"""A text classifier of Hugging Face through MC dropout: the pool is what its tokeniser returns, a dict of tensors.

The model here is tiny and has random weights, and the tokeniser is a few lines, so nothing is downloaded. With yours:

    tokenizer = AutoTokenizer.from_pretrained(NAME)
    model = AutoModelForSequenceClassification.from_pretrained(NAME, num_labels=3)
    pool = dict(tokenizer(texts, padding="max_length", truncation=True, max_length=64, return_tensors="pt"))

Pad all texts to one length: masks of dropout belong to places in a tensor, so another padding is another input.
"""

import random

import torch
from torch import Tensor
from transformers import BertConfig, BertForSequenceClassification

import balent

WORDS = [["goal", "match", "team", "coach"], ["bank", "loan", "rate", "stock"], ["virus", "cell", "gene", "drug"]]
VOCABULARY = {word: i for i, word in enumerate([w for words in WORDS for w in words], start=1)}
LENGTH = 8


def tokenised(texts: list[str]) -> dict[str, Tensor]:
    """Numbers of words, padded to one length."""
    ids = torch.zeros(len(texts), LENGTH, dtype=torch.int64)
    for row, text in zip(ids, texts, strict=True):
        numbers = [VOCABULARY[word] for word in text.split()][:LENGTH]
        row[: len(numbers)] = torch.tensor(numbers)
    return {"input_ids": ids, "attention_mask": (ids > 0).long()}


def small_bert() -> BertForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    vocabulary = len(VOCABULARY) + 1
    return BertForSequenceClassification(
        BertConfig(vocab_size=vocabulary, max_position_embeddings=LENGTH, num_labels=len(WORDS), **sizes)
    )


def main() -> None:
    chance = random.Random(0)
    y = torch.arange(120) % len(WORDS)
    pool = tokenised([" ".join(chance.choices(WORDS[c], k=chance.randint(3, LENGTH))) for c in y])
    predictor = balent.MCDropout(small_bert(), epochs=30, learning_rate=0.01)
    learner = balent.Learner(predictor, pool, draws=20)
    for _ in range(3):
        picks = learner.ask(8)
        learner.tell(picks.indices, y[picks.indices])
    right = (learner.sampled().moments(pool).mean.argmax(1) == y).double().mean()
    print(f"{len(learner.told)} labels  {right:.0%} of all texts are right")
    print(f"last picks: {picks.plan}")


if __name__ == "__main__":
    main()
