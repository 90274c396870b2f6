"""Old releases go, and their images with them where nothing else uses them."""

from __future__ import annotations

from typing import Any, Dict, List, Set

from ansible.module_utils.docker_api import Docker, parse_reference
from ansible.module_utils.engine_store import Store, deployments


def prune(root: str, keep: int, docker: Docker) -> Dict[str, List[str]]:
    """Leave the last releases of every deployment, and remove images that were only of the others.

    Returns what went: releases as `deployment/id`, names of images.
    """
    gone: List[str] = []
    spare: Set[str] = set()
    for name in deployments(root):
        store = Store(root, name)
        excess = store.excess(keep)
        spare.update(reference for one in excess for reference in references(store, one))
        store.remove(excess)
        gone += ["%s/%s" % (name, one) for one in excess]
    return {"releases": gone, "images": remove_images(root, spare, docker)}


def references(store: Store, release: str) -> List[str]:
    """The image of a release, by content; none where its record cannot be read."""
    found = store.read(release)
    reference = found.state.get("reference") if found else None
    return [str(reference)] if reference else []


def remove_images(root: str, spare: Set[str], docker: Docker) -> List[str]:
    """Remove the images that no release on the host is made of any more; the names that went."""
    used = {
        image.id
        for image in (docker.image(reference) for reference in _all_references(root))
        if image is not None
    }
    gone: List[str] = []
    for reference in sorted(spare):
        image = docker.image(reference)
        if image is None or image.id in used:
            continue
        repository = parse_reference(reference).repository
        # Names of another repository are somebody else's: with one of those, the layers stay.
        names: List[str] = [
            name for name in docker.names(image.id) if parse_reference(name).repository == repository
        ]
        gone += [name for name in names if docker.remove_image(name)]
    return gone


def _all_references(root: str) -> Set[str]:
    stores = [Store(root, name) for name in deployments(root)]
    return {reference for store in stores for one in store.releases() for reference in references(store, one)}


def dropped(root: str, name: str) -> Set[str]:
    """The images of every release of a deployment that is about to go."""
    store = Store(root, name)
    found: Dict[str, Any] = {one: references(store, one) for one in store.releases()}
    return {reference for one in found.values() for reference in one}
