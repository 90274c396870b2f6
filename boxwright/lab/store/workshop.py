"""Running a program of another system than this machine's, in a container of its root directory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import requests
from docker.errors import APIError
from docker.types import Mount

from boxwright.errors import UserError
from boxwright.lab.docker import engine
from boxwright.lab.state import Lab, Report

#: Seconds that a program may take; importing the engine takes 40 on a quiet machine of two processors.
TIMEOUT = 1800


def run(
    root: Path,
    argv: Sequence[str],
    report: Report,
    *,
    what: str,
    binds: Mapping[str, Path],
    environment: Mapping[str, str],
) -> str:
    """Run a program in a container whose root directory is the tar archive `root`; its output.

    The program runs as this process's user and without a network, and may write to the directories in `binds`
    (by the place where it sees them). what: the deed in words. Raises UserError with the last lines when it
    fails.
    """
    lab = Lab.here()
    client = engine(report)
    labels = lab.labels(role="builder")
    image = ""
    try:
        image = _load(
            client.api.import_image_from_file(
                str(root),
                repository=f"bw-{lab.id}-workshop",
                tag=f"{os.getpid()}-{root.stem[-12:]}",
                changes=[f'LABEL "{key}"="{value}"' for key, value in labels.items()],
            ),
            root,
        )
        mounts = [Mount(place, str(path), type="bind") for place, path in binds.items()]
        container = client.containers.create(
            image,
            list(argv),
            user=f"{os.getuid()}:{os.getgid()}",
            network_mode="none",
            labels=labels,
            environment=dict(environment),
            mounts=mounts,
        )
        try:
            container.start()
            status = int(container.wait(timeout=TIMEOUT)["StatusCode"])
            output = container.logs().decode(errors="replace").strip()
        except requests.Timeout as error:
            raise UserError(f"could not {what}", why=f"it was not done after {TIMEOUT} s") from error
        finally:
            container.remove(force=True, v=True)
    except APIError as error:
        raise UserError(f"could not {what}", why=error.explanation) from error
    finally:
        if image:
            client.images.remove(image, force=True)
    if status:
        raise UserError(
            f"could not {what}: {argv[0]} ended with {status}",
            why="\n  ".join(output.splitlines()[-8:]) or None,
        )
    return output


def _load(answer: str, root: Path) -> str:
    """The id of the image that the engine's answer to an import tells of."""
    lines = [json.loads(line) for line in answer.splitlines() if line.strip()]
    for line in lines:
        if "error" in line:
            raise UserError(
                "the engine could not load a root directory",
                where=str(root),
                why=str(line["error"]),
                ways_out=("remove that file: `up` makes it anew",),
            )
    return str(lines[-1]["status"])
