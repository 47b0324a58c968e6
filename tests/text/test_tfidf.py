"""TF-IDF features of texts: the definition computed slowly, and rows that depend on nothing but their text."""

import math
import subprocess
import sys

import numpy as np
import pytest

from balent.text import terms as of_texts
from balent.text import tfidf
from balent.text.tfidf import Tfidf, learnt_from

pytest.importorskip("sklearn")

TEXTS = [
    "My card has not arrived",
    "when will the card arrive?",
    "The card was stolen!",
    "transfer money to my account",
    "Money transfer failed, why",
    "why was my transfer declined",
    "account balance is wrong",
]


@pytest.fixture(scope="module")
def maker():
    made = Tfidf(4)
    made.fit(TEXTS)
    return made


def test_rows_agree_with_their_definition(maker):
    """tf = 1 + log n, idf = 1 + log((1 + N) / (1 + n_t)), times the components, of length 1."""
    state = maker.state()
    names = tfidf.json.loads(state["terms"].tobytes())
    counts = np.array([[of_texts.terms(text).count(name) for name in names] for text in TEXTS], float)
    idf = 1 + np.log((1 + len(TEXTS)) / (1 + (counts > 0).sum(0)))
    tf = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0)
    expected = tf * idf @ state["components"].astype(float)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    rows, reasons = maker(TEXTS)
    assert reasons == [None] * len(TEXTS)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows[:, :-1], expected, atol=1e-6)
    np.testing.assert_allclose(state["idf"], idf)
    assert not rows[:, -1].any()


def test_components_are_singular_vectors(maker):
    """The lengths that the components leave are the singular values: none is larger than those kept."""
    components = maker.state()["components"].astype(float)
    np.testing.assert_allclose(components.T @ components, np.eye(4), atol=1e-6)


def test_texts_about_one_thing_are_near_each_other(maker):
    rows, _ = maker(["card arriving", "the card has arrived", "transfers of money"])
    assert rows[0] @ rows[1] > 0.8 > rows[0] @ rows[2]


def test_a_row_does_not_depend_on_its_neighbours(maker, monkeypatch):
    together, _ = maker(TEXTS)
    alone = np.concatenate([maker([text])[0] for text in TEXTS])
    monkeypatch.setattr(tfidf, "BLOCK", 2)
    in_twos, _ = maker(TEXTS[::-1])
    assert together.tobytes() == alone.tobytes() == in_twos[::-1].tobytes()


def test_a_saved_maker_gives_the_same_bits_in_another_process(maker, tmp_path):
    np.savez(tmp_path / "state.npz", **maker.state())
    script = (
        "import numpy as np; from balent.text.tfidf import Tfidf; maker = Tfidf(4);"
        "maker.load_state(dict(np.load('state.npz', allow_pickle=False)));"
        f"np.save('rows.npy', maker({[*TEXTS, 'new card']!r})[0])"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert np.load(tmp_path / "rows.npy").tobytes() == maker([*TEXTS, "new card"])[0].tobytes()


def test_fitting_twice_gives_the_same_maker():
    first, second = Tfidf(4), Tfidf(4)
    first.fit(TEXTS)
    second.fit([*TEXTS, TEXTS[0], " "])  # duplicates and empty texts teach nothing
    assert {name: part.tobytes() for name, part in first.state().items()} == {
        name: part.tobytes() for name, part in second.state().items()
    }
    assert first.about() == second.about()


def test_texts_without_a_known_word_have_a_direction_of_their_own(maker):
    rows, reasons = maker(["qqq zzz", "???", "数", "card"])
    assert reasons == [None] * 4
    assert rows[:3].tolist() == [[0, 0, 0, 0, 1]] * 3
    assert rows[3, -1] == 0


def test_contents_without_a_text_have_a_reason(maker):
    rows, reasons = maker(["", "card", " \n\t", None, 7])
    assert reasons == ["empty text", None, "empty text", "empty text", "not a text, but of type int"]
    assert rows.tobytes() == maker(["card"])[0].tobytes()
    assert maker([])[0].shape == (0, 5)


def test_shares_of_words_add_up_to_the_score(maker):
    text = "Card, card! my MONEY transfer xyzzy"
    weights = np.array([0.3, -1.0, 2.0, 0.7, 5.0])
    found = maker.words(text, weights)
    assert math.isclose(sum(share for *_, share in found), float(maker([text])[0][0] @ weights), rel_tol=1e-5)
    assert sorted(text[start:end] for start, end, _ in found) == ["Card", "MONEY", "card", "my", "transfer"]
    assert [share for *_, share in found] == sorted((share for *_, share in found), reverse=True)


def test_the_word_that_differs_pushes_most(maker):
    """Weights that point from one text to another: the words of the other push, those of the first pull."""
    rows, _ = maker(["card", "transfer"])
    found = maker.words("transfer the card", rows[1] - rows[0])
    assert found[0][:2] == (0, 8)
    assert found[-1][:2] == (13, 17)


def test_spans_hold_where_lower_case_is_longer(maker):
    """The lower case of İ has two characters."""
    text = "İİİ card"
    assert [text[start:end] for start, end, _ in maker.words(text, np.ones(5))] == ["card"]


def test_unknown_words_push_nowhere(maker):
    assert maker.words("qqq zzz", np.ones(5)) == []
    with pytest.raises(ValueError, match=r"one number per feature, \[5\], but have \[4\]"):
        maker.words("card", np.ones(4))


def test_few_texts_have_few_features():
    """Two texts span two dimensions; one more is for texts without a known word."""
    maker = Tfidf(256)
    maker.fit(["a cat", "a dog", "a cat"])
    assert maker.width == maker(["cat"])[0].shape[1] == 3
    maker.fit(["word"])
    assert maker(["word", "other"])[0].tolist() == [[1, 0], [0, 1]]


def test_texts_that_come_later_do_not_change_the_features(maker):
    before = maker(TEXTS)[0].tobytes()
    maker(["something entirely new"] * 3)
    assert maker(TEXTS)[0].tobytes() == before


@pytest.mark.parametrize(
    "text", ["\ud800 card", "card\0", "a" * 100_000, "我的卡还没有到", "é" * 50, "<script>", "\u202ecard"]
)
def test_strange_texts_have_rows(text):
    maker = Tfidf(3)
    maker.fit([text, "my card", "card of mine"])
    loaded = Tfidf(3)
    loaded.load_state(maker.state())
    rows, reasons = loaded([text])
    assert reasons == [None]
    assert np.isfinite(rows).all()
    assert rows.tobytes() == maker([text])[0].tobytes()


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="texts must have words, but the 2 given have none"):
        Tfidf().fit(["", "..."])
    with pytest.raises(RuntimeError, match="call fit"):
        Tfidf()(["a"])
    with pytest.raises(ValueError, match="dimensions must be a whole number of 1 or more, but is 0"):
        Tfidf(0)
    broken = {"terms": np.frombuffer(b'["a", "b"]', np.uint8), "idf": np.ones(3), "components": np.ones((2, 1))}
    with pytest.raises(ValueError, match=r"terms are 2, idf \[3\] and components \[2, 1\]"):
        Tfidf().load_state(broken)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ValueError, match=r"pip install 'balent\[text\]'"):
        Tfidf().fit(["a"])


def test_of_many_texts_some_are_learnt_from_whatever_their_order(monkeypatch):
    """A text that occurs often must not take all the places."""
    monkeypatch.setattr(tfidf, "TEXTS", 5)
    texts = [f"text {i}" for i in range(50)]
    chosen = learnt_from(texts + ["often"] * 500)
    assert len(chosen) == 5 == len(set(chosen))
    assert sorted(learnt_from(["often"] * 500 + texts[::-1])) == sorted(chosen)
    assert sorted(chosen, key=texts.index) == chosen or "often" in chosen


def test_long_texts_share_a_budget_of_characters(monkeypatch):
    monkeypatch.setattr(tfidf, "CHARACTERS", 3 * of_texts.READ)
    assert len(learnt_from([f"{i}" * 50_000 for i in range(9)])) == 3
