"""What moving the lock to the hub's present commits changes."""

import pytest

from boxwright import catalog
from boxwright.errors import UserError
from boxwright.facts import HostFacts
from boxwright.facts.model import File, Image, ModelFiles
from boxwright.planner import updating
from boxwright.spec.validate import judged_box

OLD, NEW, DRAFT = "1" * 40, "2" * 40, "3" * 40
KNOWN = catalog.load()


def box(**model):
    deployment = {"name": "q", "model": {"repo": "org/a", **model}, "image": "vllm/vllm-openai:v0.32.0"}
    return judged_box("box1", {"box_deployments": [deployment]})


def answer(revision, *files, request="org/a", origin="hub", **more):
    return ModelFiles(request, origin, "org/a", revision, files=tuple(files), **more)


def told(*models):
    import dataclasses

    known = next(iter(FACTS))
    return dataclasses.replace(known, models=models)


@pytest.fixture(autouse=True)
def facts_of_a_box():
    from boxwright.planner import offline_facts

    FACTS[:] = [offline_facts(box(), KNOWN)]


FACTS: list[HostFacts] = []
NAMES = {"q": ("org/a", None)}
WEIGHTS, CONFIG = File("m.safetensors", 100, "a" * 64), File("config.json", 7)


def test_a_new_commit_and_what_differs():
    now = answer(NEW, File("m.safetensors", 100, "b" * 64), File("README.md", 9), CONFIG, File("new.json", 3))
    then = answer(OLD, WEIGHTS, File("README.md", 8), CONFIG, request=f"org/a@{OLD}")
    assert updating.moves(box(), KNOWN, told(now, then), ({"q": OLD}, {}), NAMES) == [
        {
            "deployment": "q",
            "what": "weights",
            "name": "org/a",
            "repo": "org/a",
            "before": OLD,
            "after": NEW,
            "changed": ["m.safetensors", "new.json"],
            "bytes": 103,
        }
    ]


def test_the_same_commit_and_none_locked():
    now = answer(NEW, WEIGHTS)
    (same,) = updating.moves(box(), KNOWN, told(now), ({"q": NEW}, {}), NAMES)
    assert (same["before"], same["after"], same["bytes"]) == (NEW, NEW, 0)
    (first,) = updating.moves(box(), KNOWN, told(now), ({}, {}), NAMES)
    assert (first["before"], first["changed"]) == (None, None)


def test_a_declared_branch_is_followed_not_main():
    models = told(answer(OLD, WEIGHTS), answer(NEW, WEIGHTS, request="org/a@dev"))
    (move,) = updating.moves(box(revision="dev"), KNOWN, models, ({"q": OLD}, {}), {"q": ("org/a@dev", None)})
    assert move["after"] == NEW


@pytest.mark.parametrize("models", [(), (answer(None, error="dns", detail="hub: does not resolve"),)])
def test_a_hub_that_does_not_tell(models):
    with pytest.raises(UserError) as caught:
        updating.moves(box(), KNOWN, told(*models), ({"q": OLD}, {}), NAMES)
    assert "present commit of org/a" in str(caught.value)


@pytest.mark.parametrize(("only", "count"), [("q", 1), ("org/a", 1)])
def test_only_one(only, count):
    assert len(updating.moves(box(), KNOWN, told(answer(NEW)), ({}, {}), NAMES, only)) == count
    with pytest.raises(UserError) as caught:
        updating.moves(box(), KNOWN, told(answer(NEW)), ({}, {}), NAMES, "other")
    assert "--model one of: q" in str(caught.value)


IMAGE = "vllm/vllm-openai:v0.32.0"
BEFORE, AFTER = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def seen(*images):
    import dataclasses

    return dataclasses.replace(next(iter(FACTS)), images=images)


def here(digest=BEFORE, **env):
    return Image(IMAGE, present=True, size=20, digest=digest, env=env)


def there(digest=AFTER, **env):
    return Image(IMAGE, present=False, size=9, digest=digest, env=env)


@pytest.mark.parametrize(
    ("images", "locked", "expected"),
    [
        (
            (here(CUDA_VERSION="13.0"), there(CUDA_VERSION="13.1", NVIDIA_REQUIRE_CUDA="x")),
            {IMAGE: BEFORE},
            (BEFORE, AFTER, ["CUDA_VERSION: 13.0 -> 13.1", "NVIDIA_REQUIRE_CUDA: none -> x"], 9),
        ),
        ((here(), there(BEFORE)), {IMAGE: BEFORE}, (BEFORE, BEFORE, [], 0)),
        ((there(),), {IMAGE: BEFORE}, (BEFORE, AFTER, None, 9)),
        ((there(),), {}, (None, AFTER, None, 9)),
        # What lies on the box under the tag is not what was locked: of that nothing is known.
        ((here(AFTER), there()), {IMAGE: BEFORE}, (BEFORE, AFTER, None, 9)),
    ],
)
def test_what_a_tag_means_now(images, locked, expected):
    (move,) = updating.image_moves(box(), seen(*images), locked)
    assert (move["before"], move["after"], move["changed"], move["bytes"]) == expected
    assert (move["what"], move["name"], move["deployment"]) == ("image", IMAGE, "q")


def test_a_declared_digest_stays():
    pinned = f"{IMAGE}@{BEFORE}"
    deployment = {"name": "q", "model": {"repo": "org/a"}, "image": pinned}
    assert updating.image_moves(judged_box("box1", {"box_deployments": [deployment]}), seen(), {}) == []


@pytest.mark.parametrize(
    ("images", "why"),
    [
        ((), "no answer"),
        ((here(),), "no answer"),
        ((Image(IMAGE, present=False, error="dns", detail="r: does not resolve"),), "does not resolve"),
        ((there(None),), "no digest"),
    ],
)
def test_a_registry_that_does_not_tell(images, why):
    with pytest.raises(UserError) as caught:
        updating.image_moves(box(), seen(*images), {IMAGE: BEFORE})
    assert why in str(caught.value)
    assert "--model" in str(caught.value)
