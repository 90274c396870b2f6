"""The command line of nvidia-ctk."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any, Dict, List, Optional

from .. import files, paths
from . import cdi, nvml

CONFIGURATION = """#accept-nvidia-visible-devices-as-volume-mounts = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
#swarm-resource = "DOCKER_RESOURCE_GPU"

[nvidia-container-cli]
environment = []
ldconfig = "@/sbin/ldconfig"
load-kmods = true
#no-cgroups = false

[nvidia-container-runtime]
log-level = "info"
mode = "auto"
runtimes = ["runc", "crun"]

[nvidia-container-runtime.modes]

[nvidia-container-runtime.modes.cdi]
annotation-prefixes = ["cdi.k8s.io/"]
default-kind = "nvidia.com/gpu"
spec-dirs = ["/etc/cdi", "/var/run/cdi"]
"""


def cdi_version(version: str) -> str:
    """1.19 and later write the newer format, which older engines cannot read."""
    return "0.7.0" if tuple(map(int, version.split(".")[:2])) >= (1, 19) else "0.5.0"


def main(version: str, arguments: Optional[List[str]] = None) -> int:
    """`nvidia-ctk {--version, cdi generate, cdi list, runtime configure, config}`; 1 on errors."""
    parser = argparse.ArgumentParser(prog="nvidia-ctk", allow_abbrev=False)
    parser.add_argument("--version", "-v", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--debug", "-d", action="store_true")
    verbs = parser.add_subparsers(dest="verb")
    kinds = verbs.add_parser("cdi").add_subparsers(dest="what", required=True)
    generate = kinds.add_parser("generate")
    generate.add_argument("--output", default=os.environ.get("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH", ""))
    generate.add_argument("--format", default="yaml", choices=["yaml", "json"])
    kinds.add_parser("list")
    configure = verbs.add_parser("runtime").add_subparsers(dest="what", required=True).add_parser("configure")
    configure.add_argument("--runtime", default="docker", choices=["docker"])
    configure.add_argument("--config", default="/etc/docker/daemon.json")
    configure.add_argument("--set-as-default", "--nvidia-set-as-default", action="store_true")
    configure.add_argument("--cdi.enabled", dest="cdi_enabled", action="store_true")
    config = verbs.add_parser("config")
    config.add_argument("--config-file", default="/etc/nvidia-container-runtime/config.toml")
    config.add_argument("--in-place", "-i", action="store_true")
    options = parser.parse_args(arguments)
    if options.version:
        print(
            "NVIDIA Container Toolkit CLI version %s\ncommit: 0000000000000000000000000000000000000000"
            % version
        )
        return 0
    if options.verb == "cdi":
        return _generate(options, version) if options.what == "generate" else _list()
    if options.verb == "runtime":
        return _configure(options)
    if options.verb == "config":
        return _config(options)
    parser.print_help()
    return 0


def log(level: str, message: str) -> None:
    """One line of the toolkit's log on stderr."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print('time="%s" level=%s msg=%s' % (stamp, level, json.dumps(message)), file=sys.stderr)


def _generate(options: argparse.Namespace, version: str) -> int:
    if not options.quiet:
        log("info", "Auto-detected mode as 'nvml'")
    try:
        spec = cdi.generate(cdi_version(version))
    except nvml.NvmlError as error:
        log(
            "error",
            "failed to generate CDI spec: failed to create device CDI specs: failed to initialize NVML: "
            + error.symbol,
        )
        return 1
    text = json.dumps(spec, indent=4) if options.format == "json" else "---\n" + cdi.to_yaml(spec)
    if not options.output:
        print(text)
        return 0
    try:
        files.write(paths.at(options.output), text + "\n")
    except PermissionError as error:
        log("error", "failed to save CDI spec: failed to write CDI spec: %s" % error)
        return 1
    log("info", "Generated CDI spec with version " + spec["cdiVersion"])
    return 0


def _list() -> int:
    devices = cdi.known()
    log("info", "Found %d CDI devices" % len(devices))
    for device in devices:
        print(device)
    return 0


def _configure(options: argparse.Namespace) -> int:
    path = paths.at(options.config)
    text = files.read(path)
    try:
        settings: Dict[str, Any] = json.loads(text) if text and text.strip() else {}
    except ValueError as error:
        log("error", "unable to load config for runtime docker: unable to read config: %s" % error)
        return 1
    log(
        "info",
        "Loading config from %s" % options.config
        if text
        else "Config file does not exist; using empty config",
    )
    settings.setdefault("runtimes", {})["nvidia"] = {"args": [], "path": "nvidia-container-runtime"}
    if options.set_as_default:
        settings["default-runtime"] = "nvidia"
    if options.cdi_enabled:
        settings.setdefault("features", {})["cdi"] = True
    files.write(path, json.dumps(settings, indent=4) + "\n")
    log("info", "Wrote updated config to %s" % options.config)
    log("info", "It is recommended that docker daemon be restarted.")
    return 0


def _config(options: argparse.Namespace) -> int:
    if not options.in_place:
        print(CONFIGURATION, end="")
    elif files.read(paths.at(options.config_file)) is None:
        files.write(paths.at(options.config_file), CONFIGURATION)
    return 0
