"""An estimator of scikit-learn (or XGBoost, LightGBM, CatBoost) as the model: here a pipeline that reads texts.

    balent run digits --set predictor=examples/own_estimator.py:forest --set draws=20 --strategies bald,random --seeds 1

Its posterior is a bootstrap: a draw is a copy of the estimator, fitted with random weights of the labels. Draws are
fitted when they are needed, so ask for as many as you can wait for: `draws=20` is enough for a ranking.
"""

import random

from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import balent

WORDS = {
    "delivery": ["parcel", "late", "courier", "address", "lost", "tracking"],
    "payment": ["card", "refund", "invoice", "charged", "twice", "bank"],
    "account": ["password", "login", "email", "locked", "reset", "name"],
}


def forest() -> RandomForestClassifier:
    """For numbers. A factory may return any estimator: it becomes a balent.Classifier."""
    return RandomForestClassifier(n_estimators=30)


def tickets(points: int) -> tuple[list[str], list[str]]:
    """Texts of six words, four of them of their class."""
    chance, names = random.Random(0), list(WORDS)
    labels = [chance.choice(names) for _ in range(points)]
    others = [word for words in WORDS.values() for word in words]
    return [" ".join(chance.choices(WORDS[name], k=4) + chance.choices(others, k=2)) for name in labels], labels


def main() -> None:
    texts, truth = tickets(300)
    names = list(WORDS)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(class_weight="balanced"))
    learner = balent.Learner(balent.Classifier(model, names), texts, draws=20)
    for _ in range(4):
        picks = learner.ask(6)
        learner.tell(picks.indices, [names.index(truth[i]) for i in picks.indices])
        found = learner.sampled().moments(texts).mean.argmax(1)
        right = sum(names[c] == label for c, label in zip(found.tolist(), truth, strict=True))
        print(f"{len(learner.told)} labels  {right / len(texts):.1%} of all texts are right")


if __name__ == "__main__":
    main()
