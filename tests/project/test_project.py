"""A project from nothing to predictions, by Python; labels stay with their items whatever happens."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

from balent import Project

CLASSES = ["cat", "dog", "bird"]


def clusters(items=90, seed=0):
    """Three clusters that any model tells apart, and to which each row belongs."""
    rng = np.random.default_rng(seed)
    truth = np.arange(items) % 3
    return (np.eye(3, 8)[truth] * 4 + rng.normal(size=(items, 8)) * 0.5).astype(np.float32), truth


@pytest.fixture
def data(tmp_path):
    rows, truth = clusters()
    np.save(tmp_path / "rows.npy", rows)
    ids = [f"item {i}" for i in range(len(rows))]
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    return tmp_path / "rows.npy", {id: CLASSES[t] for id, t in zip(ids, truth, strict=True)}


def made(data, name="p.balent", **settings):
    path = data[0].parent / name
    return Project.create(path, data[0], classes=CLASSES, ids=data[0].parent / "ids.txt", **settings)


def labelled(project, truth, rounds=3, k=10, who="ann"):
    asked = []
    for _ in range(rounds):
        batch = project.ask(k)
        project.tell({item.id: truth[item.id] for item in batch}, who=who)
        asked += batch
    return asked


def test_from_nothing_to_predictions(data):
    project = made(data)
    labelled(project, data[1])
    predictions = project.predict()
    assert len(predictions) == 90
    assert np.mean([p.label == data[1][p.id] for p in predictions]) > 0.95
    lines = (project.path / "predictions.csv").read_text().splitlines()
    assert lines[0] == "id,label,probability,uncertainty,given,fingerprint"
    assert len(lines) == 91


def test_a_project_that_is_opened_again_goes_on_where_it_was(data):
    one, other = made(data, "one.balent"), made(data, "other.balent")
    first = [labelled(one, data[1], 2), labelled(other, data[1], 2)]
    assert [item.id for item in first[0]] == [item.id for item in first[1]]
    again = Project(one.path)
    assert [item.id for item in again.ask(10)] == [item.id for item in other.ask(10)]


def test_the_same_labels_give_the_same_picks_by_whatever_road_they_came(data):
    one, other = made(data, "one.balent"), made(data, "other.balent")
    asked = labelled(one, data[1], 2)
    for item in reversed(asked):  # one by one, in another order, never asked
        other.tell({item.id: data[1][item.id]}, who="bob")
    other.compute_features()
    mine = [proposal.number for proposal in view(one).proposals(5) if not proposal.audit]
    theirs = [proposal.number for proposal in view(other).proposals(5) if not proposal.audit]
    assert mine == theirs


def view(project):
    from balent.project.asking import View

    return View(project)


def test_every_fifth_question_is_a_random_check_without_a_guess(data):
    project = made(data)
    asked = labelled(project, data[1], 2)
    checks = [item for item in asked if item.why == "random check"]
    assert [item.rank for item in asked if item.why == "random check"] == [5, 10, 5, 10]
    assert all(item.guess is None and item.probability is None for item in checks)
    later = [item for item in asked[10:] if item.why != "random check"]
    assert all(item.guess in CLASSES and 0 < item.probability <= 1 for item in later)


def test_a_strategy_never_picks_from_the_reserve(data):
    """Without random checks the reserve is asked when nothing else is left."""
    project = made(data, audit=0)
    reserve = [project.items[n].id for n in view(project).reserve]
    asked = [item.id for item in project.ask(90)]
    assert 10 < len(reserve) < 30
    assert asked[-len(reserve) :] == reserve


def test_nothing_is_asked_twice_and_pending_items_are_repeated(data):
    project = made(data)
    first, second = project.ask(10), project.ask(10)
    assert not {item.id for item in first} & {item.id for item in second}
    assert [item.id for item in Project(project.path).pending()] == [item.id for item in [*first, *second]]


def test_what_is_left_is_asked_and_then_nothing(data):
    project = made(data)
    with pytest.warns(UserWarning, match="only 90 are left"):
        project.ask(1000)
    with pytest.raises(ValueError, match="no item is left"):
        project.ask(1)


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        ({"item 0": "cat", "item 9999": "cat"}, "'item 9999' is not known"),
        ({"item 0": "cat", "item 1": "cta"}, "'cta' is not known; known are 'cat'"),
        ({"item 0": "cat", "item 1": True}, "must be the name of a class"),
        ({"item 0": "cat", "item 1": 7}, "class numbers are"),
    ],
)
def test_of_bad_labels_nothing_is_recorded(data, labels, complaint):
    project = made(data)
    before = (project.path / "journal.ndjson").read_bytes()
    with pytest.raises((ValueError, TypeError), match=complaint):
        project.tell(labels)
    assert (project.path / "journal.ndjson").read_bytes() == before


def test_repeating_labels_or_an_event_is_harmless(data):
    project = made(data)
    assert project.tell({"item 0": "cat"}, who="ann") == 1
    assert project.tell({"item 0": "cat"}, who="ann") == 0
    assert project.tell({"item 1": "cat"}, key="k") == 1
    assert project.tell({"item 1": "dog"}, key="k") == 0
    assert project.status()["classes"] == {"cat": 2, "dog": 0, "bird": 0}


def test_the_journal_names_items_by_id_and_content_never_by_position(data):
    project = made(data)
    labelled(project, data[1], 1)
    lines = [json.loads(line) for line in (project.path / "journal.ndjson").read_text().splitlines()]
    (label,) = [line for line in lines if line["event"] == "label"]
    fields = {"format", "event", "key", "ids", "labels", "who", "when", "seconds"}
    assert all(fields <= line.keys() for line in lines)
    (ask,) = [line for line in lines if line["event"] == "ask"]
    assert (ask["strategy"], ask["resolved"]) == ("auto", "herding:margin")
    assert all(id.startswith("item ") for id in label["ids"])
    assert "indices" not in label
    assert "positions" not in label
    assert len({line["key"] for line in lines}) == len(lines)


def test_a_retracted_label_is_pending_again_also_for_another_process(data):
    project = made(data)
    (item,) = project.ask(1)
    project.tell({item.id: "cat"})
    project.retract([item.id])
    assert [waiting.id for waiting in Project(project.path).pending()] == [item.id]
    with pytest.raises(ValueError, match="no label, skip or flag"):
        project.retract([item.id])


def test_two_processes_see_each_others_labels(data):
    one = made(data)
    other = Project(one.path)
    one.tell({"item 0": "cat"})
    other.tell({"item 1": "dog"})
    assert one.status()["labelled"] == other.status()["labelled"] == 2


def test_classes_can_be_added_renamed_and_merged_while_labelling(data):
    project = made(data)
    labelled(project, data[1], 2)
    project.add_class("fish", note="lives in water")
    project.tell({"item 0": "fish"})
    project.rename_class("cat", "feline")
    project.merge_classes("bird", "dog")
    again = Project(project.path)
    assert [*again.state.classes.names()] == ["feline", "dog", "fish"]
    assert [(look.name, look.key) for look in again.settings.classes] == [("feline", "1"), ("dog", "2"), ("fish", "4")]
    assert {p.label for p in again.predict()} <= {"feline", "dog", "fish"}


def test_a_class_that_was_written_into_the_settings_by_hand_is_added(data):
    project = made(data)
    with (project.path / "project.toml").open("a") as file:
        file.write('\n[[classes]]\nname = "fish"\n')
    assert [*Project(project.path).state.classes.names()] == [*CLASSES, "fish"]


def test_rows_that_move_and_come_and_go_keep_their_labels(data):
    """By content: ids are shuffled among the rows, some rows go, some are new."""
    project = made(data)
    labelled(project, data[1])
    rows = np.load(data[0])
    known = {rows[project.id_number(id)].tobytes(): name for id, name in labels_of(project).items()}
    rng = np.random.default_rng(1)
    rows = np.concatenate([rows[rng.permutation(90)[:80]], clusters(20, seed=5)[0]])
    np.save(data[0], rows)
    (data[0].parent / "ids.txt").write_text(
        "\n".join(f"new {i}" if i % 2 or i >= 80 else f"item {i}" for i in range(100))
    )
    again = Project(project.path)
    result = again.refresh()
    assert len(result.new) == 20
    assert len(result.removed) == 10
    now = labels_of(again)
    ids = (data[0].parent / "ids.txt").read_text().splitlines()
    present = {id: rows[ids.index(id)].tobytes() for id in now if id in ids and not gone(again, id)}
    assert all(known[content] == now[id] for id, content in present.items())
    assert len(again.state.labels()) == len(known)
    assert len(again.predict()) == 100


def labels_of(project):
    return {project.items[n].id: project.state.classes.name(label) for n, label in project.state.labels().items()}


def gone(project, id):
    return project.items[project.id_number(id)].gone


def test_duplicates_are_labelled_once_and_predicted_each(data):
    rows = np.load(data[0])
    rows[3] = rows[0]
    np.save(data[0], rows)
    project = made(data, audit=0)
    asked = {item.id for item in labelled(project, {**data[1], "item 3": "cat"}, 1, 89)}
    assert len({"item 0", "item 3"} & asked) <= 1
    assert project.status()["duplicates"] == 1
    both = [p for p in project.predict() if p.id in ("item 0", "item 3")]
    assert both[0].probability == both[1].probability
    kept = made(data, "kept.balent", duplicates="keep", audit=0)
    assert kept.status()["duplicates"] == 0


def test_a_random_check_whose_duplicate_is_labelled_is_not_an_answer(data):
    """`status` failed with a KeyError: the label belongs to another item than the question."""
    rows = np.load(data[0])
    np.save(data[0], np.concatenate([rows[:45], rows[:45]]))
    project = made(data)
    for _ in range(2):
        asked = project.ask(10)
        project.tell({f"item {int(item.id[5:]) + 45}": data[1][item.id] for item in asked})
    assert project.status()["labelled"] == 20
    assert project.status()["audit"]["answered"] == 0
    labelled(project, data[1], 1)
    assert project.status()["audit"]["answered"] == 2


def test_status_counts_and_shows_accuracy_from_twenty_checks_on(data):
    project = made(data, audit=1)
    labelled(project, data[1], 1, 15)
    assert project.status()["accuracy"] is None
    assert "too few yet: 15 of 20" in project.status()["audit"]["sentence"]
    labelled(project, data[1], 1, 10)
    status = project.status()
    accuracy = status["accuracy"]
    assert set(accuracy) == {"right", "of", "low", "high"}
    assert accuracy["of"] == status["audit"]["answered"] >= 15
    assert 0 <= accuracy["low"] <= accuracy["right"] / accuracy["of"] <= accuracy["high"] <= 1
    json.dumps(status)


def test_answered_checks_are_counted_before_there_is_a_model(tmp_path):
    """It said "0 of 20 random checks answered", whatever had been answered, and kept that when there were features."""
    rows, truth = clusters(180)
    np.save(tmp_path / "rows.npy", rows)
    project = Project.create(tmp_path / "p.balent", tmp_path / "rows.npy", classes=CLASSES, audit=1)
    project.tell({item.id: "cat" for item in project.ask(4, wait=False)})
    assert project.status()["audit"]["sentence"] == "too few yet: 4 of 20 random checks answered"
    project.tell({item.id: "cat" for item in project.ask(16, wait=False)})
    assert project.status()["audit"]["sentence"] == "no figure yet: no model is trained"
    project.tell({project.items[n].id: CLASSES[truth[n]] for n in project.state.last})
    assert project.status()["accuracy"] is None, "there are no features yet"
    project.compute_features()
    assert project.status()["accuracy"]["of"] == 20


def test_imported_labels_never_count_as_random_checks(data):
    project = made(data)
    project.tell(data[1], imported=True)
    status = project.status()
    assert status["labelled"] == 90
    assert status["audit"]["answered"] == 0


def test_a_wrong_label_is_listed_for_a_second_look(data):
    project = made(data, audit=0)
    project.tell({f"item {i}": data[1][f"item {i}"] for i in range(60)})
    project.tell({"item 0": "bird"})
    project.compute_features()
    (found,) = [line for line in project.status()["suspicious"] if line["id"] == "item 0"]
    assert (found["label"], found["guess"]) == ("bird", "cat")


def test_without_features_random_checks_are_asked_first(data):
    project = made(data)
    assert {item.why for item in project.ask(5, wait=False)} == {"random check"}


def test_other_data_are_predicted_and_the_model_can_be_used_elsewhere(data, tmp_path):
    project = made(data)
    labelled(project, data[1])
    rows, truth = clusters(30, seed=9)
    np.save(tmp_path / "new.npy", rows)
    found = Project(project.path).predict(tmp_path / "new.csv", data=tmp_path / "new.npy")
    assert [p.label for p in found] == [CLASSES[t] for t in truth]
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 31
    data[0].unlink()  # not needed any more
    predictor = Project(project.path).load_predictor()
    assert predictor(rows) == [CLASSES[t] for t in truth]
    np.testing.assert_allclose(predictor.probabilities(rows).max(1), [p.probability for p in found], atol=1e-5)


def test_a_prediction_needs_labels_of_two_classes(data):
    project = made(data)
    project.tell({"item 0": "cat"})
    with pytest.raises(ValueError, match="labels of two classes"):
        project.predict()


def test_data_that_moved_are_found_when_their_place_is_named(data, tmp_path):
    project = made(data)
    project.tell({"item 0": "cat"})
    data[0].rename(tmp_path / "elsewhere.npy")
    with pytest.raises(FileNotFoundError, match="--data"):
        Project(project.path).ask(1)
    moved = Project(project.path, data=tmp_path / "elsewhere.npy")
    assert len(moved.ask(5)) == 5
    assert moved.status()["labelled"] == 1
    assert Project(project.path).settings.data == "../elsewhere.npy"


def test_a_project_is_made_once_and_only_of_what_can_be_read(data, tmp_path):
    made(data)
    with pytest.raises(FileExistsError, match="is a project already"):
        made(data)
    with pytest.raises(FileNotFoundError):
        Project.create(tmp_path / "x.balent", tmp_path / "nothing")
    assert not (tmp_path / "x.balent").exists()


def test_disagreements_stay_out_until_they_are_resolved(data):
    project = made(data, audit=1, overlap=2)
    (item,) = project.ask(1)
    project.tell({item.id: "cat"}, who="ann")
    project.tell({item.id: "dog"}, who="bob")
    status = project.status()
    assert status["disagreements"] == [item.id]
    assert status["labelled"] == 0
    assert status["agreement"][0]["people"] == ["ann", "bob"]
    project.tell({item.id: "dog"}, who="ann", resolve=True)
    assert project.status()["classes"]["dog"] == 1
    assert project.status()["agreement"] == status["agreement"], "a decision is no second opinion"


def test_items_that_people_disagree_on_are_not_asked_again(data):
    """`ask` gave up: it proposed them again and again, and the journal refused them as answered."""
    project = made(data, audit=1, overlap=2)
    asked = labelled(project, data[1], 1)
    project.tell({item.id: next(c for c in CLASSES if c != data[1][item.id]) for item in asked}, who="bob")
    assert len(project.state.disagreements()) == 10
    seen = {item.id for item in asked}
    while len(seen) < 90:
        batch = {item.id for item in project.ask(min(20, 90 - len(seen)))}
        assert not batch & seen
        seen |= batch


def test_messages_go_to_the_user(data):
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project = made(data, say=said.append)
        project.ask(1000)
    assert said == ["1000 items were requested, but only 90 are left: these are asked"]


def test_answers_go_to_the_content_that_was_asked_if_names_were_swapped_meanwhile(data):
    from balent.project.exchange import Reply
    from balent.project.telling import apply

    project = made(data)
    first, second = project.ask(2)
    rows = np.load(data[0])
    one, other = project.id_number(first.id), project.id_number(second.id)
    rows[[one, other]] = rows[[other, one]]
    np.save(data[0], rows)
    project.refresh()
    answers = [
        Reply(2, first.id, "cat", fingerprint=first.fingerprint),
        Reply(3, second.id, "dog", fingerprint=second.fingerprint),
    ]
    apply(project, answers)
    assert {project.items[n].fingerprint[:16]: label for n, label in project.state.labels().items()} == {
        first.fingerprint: 0,
        second.fingerprint: 1,
    }


def test_targets_of_rows_that_come_later_are_imported_and_what_people_said_stays(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,x,kind\na,1,\nb,2,yes\nc,3,no\n")
    project = Project.create(tmp_path / "p.balent", path, id="id", target="kind")
    assert labels_of(project) == {"b": "yes", "c": "no"}
    project.retract(["b"])
    project.tell({"c": "yes"})
    path.write_text("id,x,kind\na,1,\nb,2,yes\nc,3,no\nd,4,maybe\n")
    project.refresh()
    assert labels_of(project) == {"c": "yes", "d": "maybe"}
    assert project.status()["audit"]["answered"] == 0


def test_a_rename_that_was_interrupted_before_the_settings_were_written_adds_no_class(data):
    project = made(data)
    before = (project.path / "project.toml").read_text()
    project.rename_class("cat", "feline")
    project.merge_classes("bird", "dog")
    (project.path / "project.toml").write_text(before)
    assert [*Project(project.path).state.classes.names()] == ["feline", "dog"]


def test_keys_and_notes_of_another_process_are_kept(data):
    one = made(data)
    other = Project(one.path)
    one.describe_class("cat", note="whiskers")
    other.look()
    other.add_class("fish")
    notes = {look.name: look.note for look in Project(one.path).settings.classes}
    assert notes == {"cat": "whiskers", "dog": "", "bird": "", "fish": ""}
    with pytest.raises(ValueError, match="'1' belongs to another class"):
        one.describe_class("dog", key="1")


def test_one_item_cannot_get_two_labels_by_two_of_its_ids(data):
    project = made(data)
    ids = (data[0].parent / "ids.txt").read_text().replace("item 0\n", "renamed\n")
    (data[0].parent / "ids.txt").write_text(ids)
    project.refresh()
    with pytest.raises(ValueError, match="two labels"):
        project.tell({"item 0": "cat", "renamed": "dog"})
    assert project.tell({"item 0": "cat", "renamed": "cat"}) == 1


def test_views_of_neighbours_are_looked_up_once_and_change_nothing(data, monkeypatch):
    from balent.predictors.neighbours import Neighbours

    project = made(data)
    labelled(project, data[1])
    (kept,) = project.features.directory.glob("views-*.npz")
    with_views = [(p.id, p.probability) for p in Project(project.path).predict()]
    monkeypatch.setattr(Neighbours, "_view", None)  # nothing is computed again
    assert [(p.id, p.probability) for p in Project(project.path).predict()] == with_views
    monkeypatch.undo()
    kept.unlink()
    assert [(p.id, p.probability) for p in Project(project.path).predict()] == with_views


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda p: p.tell({"item 1": "cat"}, seconds=-1.0), "seconds must be a number of 0 or more, but is -1"),
        (lambda p: p.tell({"item 1": "cat"}, seconds=float("nan")), "seconds must be a number of 0 or more"),
        (lambda p: p.skip("item 1"), r"ids must be several, as in \['item 1'\]"),
        (lambda p: p.flag("item 1"), "ids must be several"),
        (lambda p: p.retract("item 1"), "ids must be several"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_recorded(data, call, complaint):
    project = made(data)
    before = (project.path / "journal.ndjson").read_bytes()
    with pytest.raises((TypeError, ValueError), match=complaint):
        call(project)
    assert (project.path / "journal.ndjson").read_bytes() == before


def test_other_types_are_refused_where_nobody_checks_types(data):
    """In a process of its own: here all calls are checked against their annotations."""
    calls = {
        "project.tell({'item 1': 'cat'}, who=5)": "who must be text, but is 5; nothing was recorded",
        "project.tell({'item 1': 'cat'}, seconds='3')": "seconds must be a number of 0 or more, but is '3'",
        "project.tell({'item 1': 'cat'}, seconds=True)": "seconds must be a number of 0 or more, but is True",
        "project.tell(['item 1'])": "labels must be a mapping, as in {'a.jpg': 'cat'}, but are list",
        "project.tell({1: 'cat'})": "the id of an item is text, but one is 1; nothing was recorded",
        "project.skip(['item 1'], note=5)": "note must be text, but is 5; nothing was recorded",
    }
    path = made(data).path
    before = (path / "journal.ndjson").read_bytes()
    program = "import sys, balent\nproject = balent.Project(sys.argv[1])\nfor call in sys.argv[2:]:\n" + (
        "    try: eval(call)\n    except (TypeError, ValueError) as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), *calls], check=True, capture_output=True, text=True
    )
    for said, expected in zip(done.stdout.splitlines(), calls.values(), strict=True):
        assert said.startswith(expected)
    assert (path / "journal.ndjson").read_bytes() == before


def test_a_label_to_look_at_again_has_the_name_that_its_item_has_now(data):
    """The figures were kept by labels alone, so that renamed items were listed under their old names."""
    project = made(data)
    wrong = {**data[1], "item 4": "bird"}
    project.tell({id: wrong[id] for id in [*wrong][:60]}, who="ann")
    project.compute_features()
    assert [label["id"] for label in project.status()["suspicious"]] == ["item 4"]
    ids = data[0].parent / "ids.txt"
    ids.write_text(ids.read_text().replace("item 4\n", "renamed\n"))
    project.refresh()
    assert [label["id"] for label in project.status()["suspicious"]] == ["renamed"]


def test_contents_are_read_without_holding_others_up(data, monkeypatch):
    """A folder of a million photos takes minutes to look through; others waited for the lock, and gave up."""
    from balent.project import kinds
    from balent.project.log import held

    project, read = made(data), []

    def digest(row, before=kinds.digest_of):
        with held(project.path / "items.lock", patience=0.0):
            read.append(before(row))
        return read[-1]

    monkeypatch.setattr(kinds, "digest_of", digest)
    project.refresh()
    assert len(read) == 90  # each once


def test_the_models_behind_an_accuracy_are_counted(data):
    project = made(data, audit=2)
    labelled(project, data[1], 4, 10)
    seen = []
    project.status(progress=lambda done, of: seen.append((done, of)))
    assert seen == [(i, 10) for i in range(11)]  # five folds of the checks, five of all labels
    seen.clear()
    project.status(progress=lambda done, of: seen.append((done, of)))
    assert not seen  # it is kept
