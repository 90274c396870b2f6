"""Releases as Kubernetes manifests, and as values of the chart of vLLM's production stack."""

from __future__ import annotations

import re
from typing import Any

from boxwright.ansible.module_utils.engine_container import PORT
from boxwright.export.release import (
    HEALTH_INTERVAL_S,
    HEALTH_RETRIES,
    HEALTH_TIMEOUT_S,
    START_S,
    Release,
    documents,
    head,
)

#: The key's name within its Secret; of the guard's within its ConfigMap, the file's.
KEY = "api-key"
#: Units of Docker's as Kubernetes writes them.
_UNITS = {"": "", "b": "", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"}


def files(releases: list[Release]) -> dict[str, str]:
    """A file of manifests for each release, and one of values for those that the chart can run."""
    found = {f"{one.container.name}.yaml": _manifests(one) for one in releases}
    stack = [one for one in releases if _in_stack(one)]
    if stack:
        found["values.yaml"] = _values(stack)
    return found


def _manifests(release: Release) -> str:
    box = release.container
    labels = {"app.kubernetes.io/name": box.name, "app.kubernetes.io/managed-by": "boxwright"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": box.name,
            "labels": labels,
            "annotations": {"boxwright/release": box.release},
        },
        "spec": {
            "replicas": 1,
            # The cards hold one of them.
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": START_S + 60,
            "selector": {"matchLabels": {"app.kubernetes.io/name": box.name}},
            "template": {
                "metadata": {"labels": labels, "annotations": {"boxwright/release": box.release}},
                "spec": _pod(release),
            },
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": box.name, "labels": labels},
        "spec": {
            "selector": {"app.kubernetes.io/name": box.name},
            "ports": [{"name": "http", "port": box.port, "targetPort": "http"}],
        },
    }
    parts = [deployment, service]
    if not box.outgoing:
        parts.append(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": box.name, "labels": labels},
                "spec": {
                    "podSelector": {"matchLabels": {"app.kubernetes.io/name": box.name}},
                    "policyTypes": ["Egress"],
                    "egress": [],
                },
            }
        )
    if release.guard is not None:
        parts.append(_guard_map(release))
    steps = [
        "Each cluster needs the key as a Secret, here by name only:",
        f"  ./invoke key --host {release.host} --deployment {release.name} | tr -d '\\n' \\",
        f"    | kubectl create secret generic {box.name} --from-file={KEY}=/dev/stdin",
        "The weights are taken from the node that has them; its name there may be another.",
    ]
    return head(release, steps) + documents(*parts)


def _pod(release: Release) -> dict[str, Any]:
    box = release.container
    probe = {
        "httpGet": {"path": "/health", "port": "http"},
        "periodSeconds": HEALTH_INTERVAL_S,
        "timeoutSeconds": HEALTH_TIMEOUT_S,
        "failureThreshold": HEALTH_RETRIES,
    }
    container: dict[str, Any] = {
        "name": "engine",
        "image": box.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [_plain(word) for word in release.entrypoint],
        "args": [_plain(word) for word in box.command],
        "env": _env(release),
        "ports": [{"name": "http", "containerPort": PORT}],
        "securityContext": _security(),
        "startupProbe": {**probe, "periodSeconds": 10, "failureThreshold": START_S // 10},
        "readinessProbe": probe,
        "livenessProbe": probe,
        "volumeMounts": _volume_mounts(release),
    }
    if box.devices:
        container["resources"] = {"limits": {"nvidia.com/gpu": len(box.devices)}}
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": box.stop_timeout_s,
        "nodeSelector": {"kubernetes.io/hostname": release.host},
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **_user(release)},
        "containers": [container],
        "volumes": _volumes(release),
    }


def _security() -> dict[str, Any]:
    return {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def _user(release: Release) -> dict[str, int]:
    """As whom it runs, where that is not root; the key and the guard are of its group."""
    if not release.container.user:
        return {}
    uid, gid = (int(part) for part in release.container.user.split(":"))
    return {"runAsUser": uid, "runAsGroup": gid, "fsGroup": gid}


def _env(release: Release) -> list[dict[str, str]]:
    return [{"name": name, "value": _plain(value)} for name, value in sorted(release.container.env.items())]


def _plain(text: str) -> str:
    """A text in which Kubernetes finds no variable, `$(NAME)`, of its own."""
    return text.replace("$(", "$$(")


def _volume_mounts(release: Release, *, key: bool = True) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = []
    for one in release.container.mounts:
        if one.what == "key" and not key:
            continue
        mount: dict[str, Any] = {"name": one.what, "mountPath": one.target, "readOnly": one.read_only}
        if one.what in ("key", "guard"):
            # One file of the volume; the directory holds others' files, too.
            mount["subPath"] = one.target.rpartition("/")[2]
        mounts.append(mount)
    return [*mounts, {"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}]


def _volumes(release: Release, *, key: bool = True) -> list[dict[str, Any]]:
    box = release.container
    found: list[dict[str, Any]] = []
    for one in box.mounts:
        if one.what == "key" and key:
            found.append({"name": "key", "secret": {"secretName": box.name, "defaultMode": 0o440}})
        elif one.what == "guard":
            found.append({"name": "guard", "configMap": {"name": f"{box.name}-guard"}})
        elif one.what != "key":
            kind = "Directory" if one.read_only else "DirectoryOrCreate"
            found.append({"name": one.what, "hostPath": {"path": one.source, "type": kind}})
    return [
        *found,
        {"name": "tmp", "emptyDir": {"medium": "Memory"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _quantity(box.shm_size)}},
    ]


def _guard_map(release: Release) -> dict[str, Any]:
    box = release.container
    name = next(one.target for one in box.mounts if one.what == "guard").rpartition("/")[2]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{box.name}-guard"},
        "data": {name: release.guard},
    }


def _quantity(size: str) -> str:
    """`2g` as Kubernetes writes it: `2Gi`. Raises ValueError for what is no size."""
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", size.strip().lower())
    if found is None:
        raise ValueError(f"{size!r} is no size")
    return found[1] + _UNITS[found[2]]


def _in_stack(release: Release) -> bool:
    """Whether the chart can run it: it writes `vllm serve` itself, and hands the key over as a variable."""
    return release.container.command[:2] == ["vllm", "serve"] and release.key_variable == "VLLM_API_KEY"


def _values(releases: list[Release]) -> str:
    """The chart's values. It has one Secret for all models, and a router in front that calls them."""
    first = releases[0]
    secret = first.container.name
    values = {
        "servingEngineSpec": {
            "enableEngine": True,
            "containerPort": PORT,
            "imagePullPolicy": "IfNotPresent",
            "vllmApiKey": {"secretName": secret, "secretKey": KEY},
            "containerSecurityContext": _security(),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "startupProbe": {
                "initialDelaySeconds": 15,
                "periodSeconds": 10,
                "failureThreshold": START_S // 10,
                "httpGet": {"path": "/health", "port": PORT},
            },
            "livenessProbe": {
                "initialDelaySeconds": 15,
                "periodSeconds": HEALTH_INTERVAL_S,
                "failureThreshold": HEALTH_RETRIES,
                "httpGet": {"path": "/health", "port": PORT},
            },
            "modelSpec": [_model(one) for one in releases],
        },
    }
    steps = [
        "Values of the chart of vLLM's production stack (vllm/vllm-stack 0.1.12). It has one key for all",
        "models, as a Secret that is here by name only:",
        f"  ./invoke key --host {first.host} --deployment {first.name} | tr -d '\\n' \\",
        f"    | kubectl create secret generic {secret} --from-file={KEY}=/dev/stdin",
        "  helm install vllm vllm/vllm-stack --values values.yaml",
        "The chart's own check of the key covers /v1; a guard of all paths is none of its values.",
    ]
    return "#\n".join(head(one, steps if one is releases[-1] else ()) for one in releases) + documents(values)


def _model(release: Release) -> dict[str, Any]:
    box = release.container
    repository, _, tag = box.image.partition("@")
    name, colon, version = repository.rpartition(":")
    if not colon or "/" in version:
        name, version = repository, ""
    model, *words = box.command[2:]
    kept = [one for one in _volume_mounts(release, key=False) if one["name"] != "guard"]
    return {
        "name": re.sub(r"[^a-z0-9-]", "-", box.deployment.lower()),
        "repository": name,
        # The chart writes `repository:tag`: a digest goes behind a tag.
        "tag": f"{version or 'pinned'}@{tag}" if tag else version or "latest",
        "modelURL": model,
        "replicaCount": 1,
        "requestCPU": 2,
        "requestMemory": "8Gi",
        "requestGPU": len(box.devices),
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [release.host]}
                ]
            }
        ],
        "vllmConfig": {
            # Switched on by hand it is for models that write text: the others may answer wrongly with it.
            "enablePrefixCaching": not {"--no-enable-prefix-caching", "--runner", "--task"} & set(words),
            "extraArgs": _without(words, ("--host", "--port")),
        },
        "env": _env(release),
        "extraVolumes": [one for one in _volumes(release, key=False) if one["name"] != "guard"],
        "extraVolumeMounts": kept,
    }


def _without(words: list[str], options: tuple[str, ...]) -> list[str]:
    """The words without options that the chart gives itself, nor their values."""
    found, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif word.partition("=")[0] not in options:
            found.append(word)
    return found
