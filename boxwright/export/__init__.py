"""A release written for what others run containers with: compose, Quadlet, Kubernetes.

Each writes out the one description that the box's own unit is made of (engine_container); none adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from boxwright.export import compose, kubernetes, quadlet
from boxwright.export.release import Release

#: Format -> what writes it: releases of one box -> file name -> text.
FORMATS: Mapping[str, Callable[[list[Release]], dict[str, str]]] = {
    "compose": compose.files,
    "quadlet": quadlet.files,
    "k8s": kubernetes.files,
}
