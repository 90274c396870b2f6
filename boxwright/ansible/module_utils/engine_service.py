"""A deployment's unit on the host: what it lacks, how it is started, and how it goes away."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, Dict, List, Optional

from ansible.module_utils import systemctl
from ansible.module_utils.command import ensure, read
from ansible.module_utils.docker_api import Docker, DockerError, executed
from ansible.module_utils.engine_container import container_name
from ansible.module_utils.engine_drift import of_container
from ansible.module_utils.engine_store import Release
from ansible.module_utils.engine_unit import TRIAL_DIRECTORY, unit_name
from ansible.module_utils.systemctl import UnitState

#: Seconds for `systemctl stop`, which the unit's own limit (requests that finish, then the end) keeps far
#: below.
STOP_LIMIT_S = 4500
#: Seconds for `systemctl start`: the wait for the device nodes, and a container made.
START_LIMIT_S = 240
_EXEC = re.compile(r"(?m)^[ \t]*Exec\w+[ \t]*=")


class Service:
    """The unit and the container of one deployment."""

    def __init__(
        self,
        name: str,
        docker: Docker,
        directory: str = systemctl.UNIT_DIRECTORY,
        trial_directory: str = TRIAL_DIRECTORY,
    ) -> None:
        self.name = name
        self.unit = unit_name(name)
        self.container = container_name(name)
        self.path = os.path.join(directory, self.unit)
        self.trial = os.path.join(trial_directory, self.unit)
        self._docker = docker

    def state(self) -> UnitState:
        """The unit as systemd sees it."""
        return systemctl.show(self.unit)

    def running_release(self) -> Optional[str]:
        """The release whose container runs; None when none does."""
        found = self._running()
        return ((found.get("Config") or {}).get("Labels") or {}).get("boxwright.release") if found else None

    def lacks(self, release: Release) -> List[str]:
        """Why the unit must be started (anew) for this release to be what runs; empty when it is."""
        reasons = []
        if (read(self.trial) or read(self.path)) != release.unit:
            reasons.append("its unit is not that of release %s" % release.id)
        state = self.state()
        if state.active == "activating" and state.sub != "auto-restart":
            return reasons
        if not state.running:
            reasons.append("it is not running (%s, %s)" % (state.active, state.sub))
            return reasons
        container = self._running()
        if container:
            reasons += of_container(release, container, self._image_id)
        return reasons

    def overrides(self) -> List[str]:
        """Files beside the unit by which somebody has systemd start something else than the unit says."""
        return [
            path
            for path in self.state().drop_ins
            if os.path.basename(os.path.dirname(path)) == self.unit + ".d" and _EXEC.search(read(path) or "")
        ]

    def install(self, release: Release) -> bool:
        """Have systemd find the release's unit, until the next boot; True when it must read it anew."""
        if read(self.path) == release.unit:
            return self._end_trial()
        return bool(ensure(self.trial, release.unit, 0o644))

    def keep(self, release: Release) -> bool:
        """Have the release's unit found at every boot, too; True when systemd must read it anew."""
        written = ensure(self.path, release.unit, 0o644)
        return self._end_trial() or written

    def start(self) -> None:
        """Start the stopped unit. Raises systemctl.UnitError when it does not even begin."""
        systemctl.restart(self.unit, timeout=START_LIMIT_S)

    def stop(self) -> None:
        """Stop the unit once its running requests are through, and have nothing of it left."""
        systemctl.call("stop", self.unit, timeout=STOP_LIMIT_S)
        # A Docker that is down has none that runs, and the unit removes what is left before it starts.
        with contextlib.suppress(DockerError):
            self._docker.remove_container(self.container)

    def enable(self) -> bool:
        """Have the unit started at boot; True when it was not."""
        if self.state().enabled:
            return False
        systemctl.call("enable", self.unit)
        return True

    def remove(self) -> None:
        """Stop it, take its unit away and leave no container; a unit that was never there is no failure."""
        if self.state().load != "not-found":
            systemctl.call("disable", self.unit)
            self.stop()
        self._end_trial()
        if os.path.lexists(self.path):
            os.unlink(self.path)

    def cards(self) -> Optional[str]:
        """What is wrong with the cards inside the running container; None when they are seen there.

        After `systemctl daemon-reload` a container may have lost its devices while the process that already
        holds them goes on (nvidia-container-toolkit issues 48 and 1227): only the next allocation would tell.
        """
        status, said = executed(self.container, "nvidia-smi", "-L")
        if status in (126, 127) and "nvidia-smi" in said:
            # Device requests of some images bring no nvidia-smi; then the device itself must open.
            status, said = executed(self.container, "sh", "-c", ": < /dev/nvidiactl")
        if status == 0 and "No devices" not in said:
            return None
        return said or "nvidia-smi ended with exit status %d" % status

    def _running(self) -> Optional[Dict[str, Any]]:
        """The container as Docker shows it; None where none runs."""
        found = self._docker.container(self.container)
        return found if found and (found.get("State") or {}).get("Running") else None

    def _image_id(self, reference: str) -> Optional[str]:
        image = self._docker.image(reference)
        return image.id if image else None

    def _end_trial(self) -> bool:
        if not os.path.lexists(self.trial):
            return False
        os.unlink(self.trial)
        return True
