"""Names and numbers of classes."""

import pytest

from balent.project.classes import Classes, checked, checked_key, keys, listed


@pytest.fixture
def classes():
    classes = Classes()
    for name in ("cat", "dog", "bird"):
        classes.add(name)
    return classes


def test_numbers_follow_the_order_of_creation(classes):
    assert classes.names() == {"cat": 0, "dog": 1, "bird": 2}


def test_a_merged_class_is_not_there_any_more_and_its_number_leads_to_the_other(classes):
    classes.merge("bird", "dog")
    classes.merge("dog", "cat")
    assert len(classes) == 1
    assert "bird" not in classes
    assert classes.name(2) == "cat"


def test_an_unknown_name_is_answered_with_similar_ones(classes):
    with pytest.raises(ValueError, match="'cta' is not known; known are 'cat'"):
        classes.number("cta")


@pytest.mark.parametrize("name", ["", " cat", "a\nb", "\x7f", "x" * 201, 3, None, True])
def test_a_name_is_one_line_of_text(name):
    with pytest.raises(ValueError, match="a class name must be"):
        checked(name)


def test_names_differ(classes):
    with pytest.raises(ValueError, match="exists already"):
        classes.add("cat")
    with pytest.raises(ValueError, match="exists already; to join both"):
        classes.rename("cat", "dog")
    with pytest.raises(ValueError, match="'a' is given twice"):
        listed(["a", "b", "a"])


def test_a_class_whose_name_is_a_key_gets_that_key_and_letters_that_do_something_else_get_another_one():
    """The class "s" took the key 1 of the class "1"."""
    assert keys(["cat", "s", "u", "1", "X"]) == {"cat": "2", "s": "3", "u": "4", "1": "1", "X": "x"}


@pytest.mark.parametrize("key", ["/", "?", "s", "U", " ", "ab", "\n"])
def test_keys_that_do_something_else_cannot_label(key):
    with pytest.raises(ValueError, match="a key is one character"):
        checked_key(key)
