"""Items keep their number, and with it their labels, whatever happens to names."""

import random
from functools import partial

import pytest

from balent.project.items import Found, Items, changes


def found(**contents):
    """Files by name, each with its content as its fingerprint; underscores stand for dots."""
    return [Found(id.replace("_", "."), partial(str, content)) for id, content in contents.items()]


def looked(items, things):
    result = changes(items, things)
    for line in result.lines:
        items.add(line)
    return result


def begun(**contents):
    items = Items()
    looked(items, found(**contents))
    return items


def by_content(items):
    return {items[n].fingerprint: n for n in items.present()}


def test_new_items_are_numbered_in_order_of_appearance():
    items = begun(a="x", b="y")
    assert [(item.number, item.id) for item in items.all] == [(0, "a"), (1, "b")]
    result = looked(items, found(c="z", a="x", b="y"))
    assert result.new == ["c"]
    assert items.at("c").number == 2


def test_a_look_that_finds_nothing_new_writes_nothing():
    items = begun(a="x", b="y")
    assert changes(items, found(b="y", a="x")).lines == []


def test_a_renamed_item_keeps_its_number():
    items = begun(a="x", b="y")
    result = looked(items, found(new="x", b="y"))
    assert result.renamed == {"new": "a"}
    assert items.at("new").number == 0
    assert items.number("a") == 0, "the old id is still accepted"


def test_two_items_that_swap_names_keep_their_numbers():
    items = begun(a="x", b="y")
    looked(items, found(a="y", b="x"))
    assert by_content(items) == {"x": 0, "y": 1}


def test_a_name_that_is_used_again_belongs_to_the_new_content():
    items = begun(a="x")
    result = looked(items, found(a="new", b="x"))
    assert result.renamed == {"b": "a"}
    assert result.new == ["a"]
    assert by_content(items) == {"x": 0, "new": 1}
    assert items.number("a") == 1
    assert items.number("a", "x") == 0, "an old event names the content, too"


def test_a_changed_item_is_reported_and_keeps_its_number():
    items = begun(a="x")
    result = looked(items, found(a="y"))
    assert result.changed == ["a"]
    assert not result.new
    assert items[0].prints == {"x", "y"}


def test_a_removed_item_is_gone_and_can_come_back():
    items = begun(a="x", b="y")
    assert looked(items, found(b="y")).removed == ["a"]
    assert items.present() == [1]
    assert looked(items, found(b="y")).lines == [], "reported once"
    looked(items, found(elsewhere="x", b="y"))
    assert items.at("elsewhere").number == 0


def test_files_of_unchanged_size_and_time_are_not_read_again():
    def refuse():
        raise AssertionError("it was read")

    items = Items()
    looked(items, [Found("a", partial(str, "x"), 10, 100)])
    looked(items, [Found("a", refuse, 10, 100)])
    with pytest.raises(AssertionError, match="it was read"):
        looked(items, [Found("a", refuse, 10, 101)])


def test_equal_contents_are_duplicates_of_the_first():
    items = begun(a="x", b="y", c="x")
    assert items.duplicates() == {2: 0}
    looked(items, found(b="y", c="x"))
    assert items.duplicates() == {}


def test_a_look_that_was_torn_in_the_middle_is_finished_by_the_next():
    """A swap of names is two lines; a crash can keep the first only."""
    items = begun(a="x", b="y")
    items.add(changes(items, found(a="y", b="x")).lines[0])
    looked(items, found(a="y", b="x"))
    assert by_content(items) == {"x": 0, "y": 1}


@pytest.mark.parametrize("seed", range(20))
def test_numbers_stay_with_contents_through_anything(seed):
    """Against the obvious: a dict from content to number, with random renames, additions and removals."""
    rng = random.Random(seed)
    files = {f"f{i}": f"content {i}" for i in range(30)}
    items, expected, fresh = Items(), {}, 30
    looked(items, found(**files))
    expected = by_content(items)
    for _ in range(10):
        names = list(files)
        contents = [files[name] for name in names]
        rng.shuffle(contents)  # any permutation of names
        files = dict(
            zip([f"g{rng.randrange(10**9)}" if rng.random() < 0.3 else n for n in names], contents, strict=True)
        )
        for name in rng.sample(list(files), 3):
            del files[name]
        for _ in range(4):
            files[f"h{fresh}"] = f"content {fresh}"
            fresh += 1
        looked(items, found(**files))
        now = by_content(items)
        assert now.keys() == set(files.values())
        assert all(expected.get(content, number) == number for content, number in now.items())
        assert {items[number].id: content for content, number in now.items()} == files
        expected |= now
