"""A project and a stand-in for Label Studio: order, answers, names, and kills at every request."""

import json
import random
from contextlib import ExitStack

import pytest
from helpers.label_studio import PERSONAL, served
from helpers.labelling import CLASSES, of_rows

from balent import Project
from balent.apps.connect import hearing
from balent.apps.connect.bridge import Bridge
from balent.apps.connect.http_json import Server
from balent.apps.connect.labelstudio import LabelStudio
from balent.apps.connect.secret_token import Token
from balent.apps.connect.task_data import local_files

REQUESTS = 40  # of two rounds, each with a run that changes something and one that does not


class Killed(BaseException):
    """As if our process had ended here."""


def truth(id):
    """The class of an item of `of_rows`."""
    return CLASSES[int(id.split()[1]) % 3]


def answer_all(stub, number=1, who=1):
    """What an annotator does who follows the order until no ranked task is left. Returns the ids in that order."""
    ids = []
    version = stub.projects[number]["model_version"]
    ranked = {p["task"] for p in stub.predictions if p["model_version"] == version}
    while any(not stub.of(task) for task in ranked):
        task = stub.next(None, {}, number)[1]
        ids.append(task["data"]["id"])
        stub.annotate(task["id"], truth(ids[-1]), who)
    return ids


def labels(project):
    """What another process reads from the journal."""
    state = Project(project.path).state
    return {project.items[n].id: (state.classes.name(a.label), a.who) for n, a in state.last.items()}


def events(project, name):
    lines = (project.path / "journal.ndjson").read_text(encoding="utf-8").splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == name]


# ── order ────────────────────────────────────────────────────────────────────────────────────────────


def test_every_item_becomes_a_task_and_questions_come_first_in_their_order(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    asked = [item.id for item in bridge.project.pending()]
    assert len(asked) == 15
    assert len(stub.tasks) == 30
    assert stub.shown()[:15] == asked


def test_two_rounds_bring_thirty_labels_in_our_order(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    first = [item.id for item in bridge.project.pending()]
    assert answer_all(stub) == first
    heard, ranked = bridge.sync()
    assert (heard.labels, ranked) == (15, True)
    second = [item.id for item in bridge.project.pending()]
    assert answer_all(stub) == second
    bridge.sync()
    assert labels(project) == {f"item {i}": (truth(f"item {i}"), "Ann Lee") for i in range(30)}
    assert len(events(project, "label")) == 30


def test_random_checks_have_no_guess_and_stand_at_their_rank(project, stub, bridge_of):
    bridge = bridge_of(project, k=10)
    bridge.sync()
    answer_all(stub)
    bridge.sync()
    version = stub.projects[1]["model_version"]
    guesses = {
        stub.tasks[p["task"]]["data"]["id"]: p["result"] for p in stub.predictions if p["model_version"] == version
    }
    asked = bridge.project.pending()
    checks = [item.id for item in asked if item.why == "random check"]
    assert len(checks) == 2
    assert all(guesses[id] == [] for id in checks)
    others = [item for item in asked if item.id not in checks]
    assert all(guesses[item.id][0]["value"] == {"choices": [item.guess]} for item in others)
    answer_all(stub)
    bridge.pull()
    state = Project(project.path).state
    assert sum(state.is_audit(n) for n in state.last) == 4  # of both rounds


def test_ranks_are_sent_as_scores_that_are_kept(project, stub, bridge_of):
    """A score above 1 is dropped, and the task with it from the order."""
    bridge_of(project).sync()
    assert [p["score"] for p in stub.predictions] == pytest.approx([rank / 1e9 for rank in range(1, 16)])


def test_the_probability_stands_in_the_data_of_the_task(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    answer_all(stub)
    bridge.sync()
    for item in bridge.project.pending():
        data = stub.tasks[stub.task_of(item.id)]["data"]
        assert data["why"] == item.why
        assert data["probability"] == (None if item.probability is None else pytest.approx(item.probability, abs=1e-6))


def test_more_is_asked_when_half_of_a_round_is_answered(project, stub, bridge_of):
    bridge = bridge_of(project, k=10)
    bridge.sync()
    for item in bridge.project.pending()[:4]:
        stub.annotate(stub.task_of(item.id), truth(item.id))
    heard, ranked = bridge.sync()
    assert (heard.labels, ranked, len(bridge.project.state.pending)) == (4, False, 6)
    stub.annotate(stub.task_of(bridge.project.pending()[0].id), "cat")
    assert bridge.sync()[1]
    assert [item.id for item in bridge.project.pending()] == stub.shown()[:10]


def test_with_only_asked_no_other_item_becomes_a_task(project, stub, bridge_of):
    bridge = bridge_of(project, k=5, only_asked=True)
    bridge.sync()
    assert len(stub.tasks) == 5
    answer_all(stub)
    bridge.sync()
    assert len(stub.tasks) == 10


def test_what_is_labelled_in_balent_meanwhile_leaves_the_order(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    asked = [item.id for item in bridge.project.pending()]
    Project(project.path).tell({asked[0]: "cat"}, "zoe")
    bridge.sync()
    assert stub.shown()[:14] == asked[1:]


def test_the_end_is_no_error(tmp_path, stub, bridge_of):
    project = of_rows(tmp_path, items=6)
    bridge = bridge_of(project)
    for _ in range(3):
        bridge.sync()
        answer_all(stub)
    assert len(labels(project)) == 6
    assert not bridge.is_more()


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("who", "name"), [(1, "Ann Lee"), (2, "bob@example.org"), (3, "eve1@example.org"), (4, "eve2@example.org")]
)
@pytest.mark.parametrize("as_object", [False, True])
def test_annotators_have_their_names(project, stub, bridge_of, who, name, as_object):
    bridge = bridge_of(project)
    bridge.sync()
    stub.annotate(stub.task_of("item 3"), "dog", who, as_object=as_object)
    bridge.sync()
    assert labels(project) == {"item 3": ("dog", name)}
    assert events(project, "label")[0]["seconds"] == 2.5


def test_a_skipped_task_is_a_skip(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    stub.annotate(stub.task_of("item 4"), skipped=True)
    assert bridge.sync()[0].skips == 1
    assert bridge.sync()[0].skips == 0
    assert Project(project.path).state.skipped.keys() == {4}
    assert labels(project) == {}


def test_an_edited_annotation_is_told_as_a_change(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    id = stub.annotate(stub.task_of("item 4"), "cat")
    bridge.sync()
    stub.edit(id, "dog")
    assert bridge.sync()[0].labels == 1
    assert labels(project) == {"item 4": ("dog", "Ann Lee")}
    assert bridge.sync()[0].labels == 0


def test_a_label_that_its_person_gave_in_balent_later_is_kept(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    stub.annotate(stub.task_of("item 4"), "cat")
    bridge.sync()
    Project(project.path).tell({"item 4": "bird", "item 5": "bird"}, "Ann Lee")
    stub.annotate(stub.task_of("item 5"), "cat")  # earlier, by the clock of the stand-in
    bridge_of(project).sync()
    assert labels(project) == {"item 4": ("bird", "Ann Lee"), "item 5": ("bird", "Ann Lee")}


def test_a_label_that_was_taken_back_does_not_come_back(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    stub.annotate(stub.task_of("item 4"), "cat")
    bridge.sync()
    Project(project.path).retract(["item 4"], "Ann Lee")
    bridge_of(project).sync()
    assert labels(project) == {}


def test_a_class_that_only_label_studio_has_is_read_once_it_is_added(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    stub.annotate(stub.task_of("item 4"), "fish")
    problems = bridge.sync()[0].problems
    assert problems == [
        "item 4 was labelled 'fish', which is not a class: add it, and it is read again: "
        f"balent classes {project.path} --add 'fish'"
    ]
    Project(project.path).add_class("fish")
    assert bridge.sync()[0].labels == 1
    assert labels(project) == {"item 4": ("fish", "Ann Lee")}


@pytest.mark.parametrize(
    "change",
    [
        {"result": None},
        {"result": [{"from_name": "label", "value": {"choices": ["cat", "dog"]}}]},
        {"result": [{"from_name": "other", "value": {"choices": ["cat"]}}]},
        {"result": [{"from_name": "label", "value": {"choices": [["cat"]]}}]},
        {"result": "cat"},
    ],
)
def test_answers_of_another_form_are_named_and_the_others_are_read(project, stub, bridge_of, change):
    bridge = bridge_of(project)
    bridge.sync()
    stub.annotations[stub.annotate(stub.task_of("item 4"), "cat")] |= change
    stub.annotate(stub.task_of("item 5"), "dog")
    heard = bridge.sync()[0]
    assert labels(project) == {"item 5": ("dog", "Ann Lee")}
    assert ["the answer for item 4 cannot be used" in problem for problem in heard.problems] == [True]


def test_odd_times_and_durations_do_no_harm(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    for i, odd in enumerate([-1, "2", True, None, 1e400]):
        stub.annotations[stub.annotate(stub.task_of(f"item {i}"), "cat", seconds=odd)] |= {"updated_at": "yesterday"}
    bridge.sync()
    assert [event["seconds"] for event in events(project, "label")] == [None] * 5


# ── the project over there ───────────────────────────────────────────────────────────────────────────


def test_a_new_class_becomes_a_choice_and_the_rest_of_the_interface_stays(project, stub, bridge_of):
    bridge_of(project).sync()
    stub.projects[1]["label_config"] = stub.projects[1]["label_config"].replace("<View>", "<View><Header value='hi'/>")
    Project(project.path).add_class('a "b" & <c>')
    bridge_of(project).sync()
    config = stub.projects[1]["label_config"]
    assert "<Header value='hi'/>" in config
    assert '<Choice value="a &quot;b&quot; &amp; &lt;c&gt;"/>' in config
    before = config
    bridge_of(project).sync()
    assert stub.projects[1]["label_config"] == before


def test_a_project_of_somebody_else_can_be_used(project, stub, bridge_of):
    stub.create({"title": "mine", "label_config": "<View></View>"}, {})
    bridge = bridge_of(project, number=1)
    bridge.sync()
    assert (stub.projects[1]["title"], stub.projects[1]["sampling"]) == ("mine", "Uncertainty sampling")
    assert len(stub.projects) == 1
    with pytest.raises(ValueError, match="has no project 7"):
        bridge_of(project, number=7)
    stub.create(
        {"title": "other", "label_config": '<View><Choices name="sort"><Choice value="x"/></Choices></View>'}, {}
    )
    with pytest.raises(ValueError, match='has no <Choices name="label"'):
        bridge_of(project, number=2)


def test_titles_are_long_enough_or_refused_in_words(project, tmp_path, stub, bridge_of):
    with pytest.raises(ValueError, match="title: Ensure this field has at least 3 characters"):
        bridge_of(project, title="x")
    project.path.rename(tmp_path / "x.balent")
    bridge_of(Project(tmp_path / "x.balent"))
    assert stub.projects[1]["title"] == "balent x"


def test_tasks_that_were_removed_over_there_are_made_again(project, stub, bridge_of):
    bridge = bridge_of(project)
    bridge.sync()
    first = bridge.project.pending()[0].id
    del stub.tasks[gone := stub.task_of(first)]
    stub.predictions = [p for p in stub.predictions if p["task"] != gone]
    for item in bridge.project.pending()[1:9]:
        stub.annotate(stub.task_of(item.id), truth(item.id))
    bridge.sync()
    assert sorted(t["data"]["id"] for t in stub.tasks.values()) == sorted(f"item {i}" for i in range(30))
    assert stub.shown()[0] == first


# ── kills and failures ───────────────────────────────────────────────────────────────────────────────


def run(bridge_of, project):
    bridge_of(project).sync()


@pytest.mark.parametrize("at", range(REQUESTS))
def test_a_kill_at_any_request_loses_nothing_and_does_nothing_twice(tmp_path, stub, bridge_of, monkeypatch, at):
    """The process ends after the request of this number, before it knows of the answer; then it is started again."""
    project = of_rows(tmp_path, items=30)
    ask, left = Server._ask, [at]

    def dying(self, *words):
        answer = ask(self, *words)
        left[0] -= 1
        if left[0] == -1:
            raise Killed
        return answer

    monkeypatch.setattr(Server, "_ask", dying)
    killed = 0
    for _ in range(2):
        for _ in range(2):
            try:
                run(bridge_of, project)
            except Killed:
                killed += 1
        assert answer_all(stub)
    run(bridge_of, project)
    assert killed == 1, f"a run had only {at - left[0]} requests"
    assert len(stub.projects) == 1
    assert sorted(t["data"]["id"] for t in stub.tasks.values()) == sorted(f"item {i}" for i in range(30))
    assert labels(project) == {f"item {i}": (truth(f"item {i}"), "Ann Lee") for i in range(30)}
    assert len(events(project, "label")) == 30
    pairs = [(p["task"], p["model_version"]) for p in stub.predictions]
    assert len({*pairs}) == len(pairs)


@pytest.mark.parametrize("trouble", ["429", "502", "503", "lost"])
def test_a_server_that_fails_at_every_third_request_is_served_all_the_same(project, stub, bridge_of, trouble):
    chance = random.Random(0)
    stub.trouble = lambda method, path: trouble if chance.random() < 1 / 3 else None
    stub.lives = 4  # requests until an access token ends
    for _ in range(2):
        run(bridge_of, project)
        answer_all(stub)
    run(bridge_of, project)
    assert len(stub.projects) == 1
    assert len(stub.tasks) == 30
    assert len(events(project, "label")) == 30


def test_label_studio_may_be_started_again(project, stub):
    """The same addresses, the same data, and a while without an answer."""
    with served(stub) as url:
        server = Server(url, Token(PERSONAL, "token.txt"))
        bridge = Bridge(project, LabelStudio(server), local_files(project), k=15)
        bridge.connect()
        bridge.sync()
        answer_all(stub)
    stub.access.clear()  # it forgets its access tokens, too
    with ExitStack() as later:
        server.sleep = lambda _: later.enter_context(served(stub, port_of(url)))
        heard, _ = bridge.sync()
    assert heard.labels == 15


def port_of(url):
    return int(url.rpartition(":")[2])


def test_annotations_of_two_servers_are_kept_apart(project, stub, bridge_of):
    """They may have the same numbers and the same times."""
    bridge_of(project).sync()
    stub.annotate(stub.task_of("item 3"), "dog")
    bridge_of(project).sync()
    elsewhere = {"id": 1, "data": {"id": "item 5"}, "annotations": [*stub.annotations.values()]}
    assert hearing.tell(Project(project.path), "http://elsewhere 1", [elsewhere], {}).labels == 1
