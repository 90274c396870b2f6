#!/usr/bin/python
"""Ansible module: an image is on the host, fetched with progress and understood when it cannot be."""

from __future__ import annotations

from typing import Any, Dict, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.docker_api import Docker, DockerError, parse_reference
from ansible.module_utils.progress import Progress
from ansible.module_utils.pull_problem import diagnose

DOCUMENTATION = r"""
module: container_image
short_description: An image is on the host
description:
  - Fetches an image through the engine's API unless it is here, telling how many bytes have come.
options:
  image: {type: str, required: true, description: "Reference with a tag or a digest, as declared."}
  digest:
    description: "Manifest digest (sha256:...) to fetch instead of what the tag means today."
    type: str
  idle_timeout_s:
    description: "Seconds without any byte after which a pull has failed."
    type: int
    default: 300
  progress_file: {type: path, description: "Where to tell how far the work is."}
"""
RETURN = r"""
digest: {type: str, description: "Digest of the manifest; none for an image that never was in a registry."}
reference: {type: str, description: "What to run so that exactly this content runs."}
size: {type: int, description: "Bytes on the disk."}
"""


class Layers:
    """Adds up a pull's events. total is known once every layer that is to come has said its size."""

    _HERE = ("Already exists", "Download complete", "Pull complete", "Verifying Checksum", "Extracting")

    def __init__(self) -> None:
        self._done: Dict[str, int] = {}
        self._size: Dict[str, Optional[int]] = {}

    def event(self, event: Dict[str, Any]) -> None:
        """Take in one event of the engine's stream."""
        layer, status = event.get("id"), str(event.get("status", ""))
        if not layer or status.startswith(("Pulling from", "Pulling repository")):
            return
        self._size.setdefault(layer, None)
        detail = event.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._size[layer] = int(detail["total"])
            self._done[layer] = int(detail.get("current") or 0)
        elif status.startswith(self._HERE):
            # A layer that was here, or too small for a report, has no size to wait for.
            self._size[layer] = self._size[layer] or 0
            self._done[layer] = self._size[layer] or 0

    @property
    def done(self) -> int:
        """Bytes that have come."""
        return sum(self._done.values())

    @property
    def total(self) -> Optional[int]:
        """Bytes to come in all, None while not every layer has said."""
        sizes = list(self._size.values())
        return None if not sizes or None in sizes else sum(size for size in sizes if size is not None)

    @property
    def unpacking(self) -> bool:
        """Whether everything has come."""
        return self.total is not None and self.done >= self.total > 0


def main() -> None:
    """Look, fetch unless it is here, tell what is here now."""
    module = AnsibleModule(
        argument_spec={
            "image": {"type": "str", "required": True},
            "digest": {"type": "str"},
            "idle_timeout_s": {"type": "int", "default": 300},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    image, digest = module.params["image"], module.params["digest"]
    reference = parse_reference(image)
    wanted = reference.pinned(digest) if digest else image
    docker, layers, progress = Docker(), Layers(), Progress(module.params["progress_file"])

    def tell(event: Dict[str, Any]) -> None:
        layers.event(event)
        stage = "unpacking " if layers.unpacking else "fetching "
        progress.update(stage + wanted, layers.done, layers.total, "bytes")

    try:
        found = docker.image(wanted)
        changed = found is None
        if changed and module.check_mode:
            module.exit_json(changed=True, said="%s would be fetched" % wanted)
        if found is None:
            progress.update("asking for " + wanted)
            docker.pull(wanted, tell, module.params["idle_timeout_s"])
            found = docker.image(wanted)
    except DockerError as error:
        problem = diagnose(str(error), wanted, reference.registry)
        module.fail_json(msg="%s\nDo: %s" % (problem.what, problem.fix))
    if found is None:
        module.fail_json(msg="Docker says that it fetched %s, and does not have it" % wanted)
    module.exit_json(
        changed=changed,
        digest=found.digest,
        reference=found.reference(image),
        size=found.size,
        said="%s, %.1f GB on the disk" % (wanted, found.size / 1e9) if changed else "",
    )


if __name__ == "__main__":
    main()
