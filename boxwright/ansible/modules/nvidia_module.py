"""Make the NVIDIA kernel module true on a host: built, loaded in the installed version, and again at boot."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

from ansible.module_utils import card_answer, kernel_module
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.command import Result, ensure, read, run, take_away, write

DOCUMENTATION = r"""
module: nvidia_module
short_description: The NVIDIA kernel module, loaded in the version of the installed packages
description:
  - Keeps nouveau off (rebuilding the initramfs only when that changes), builds what DKMS still owes, loads
    C(nvidia) and C(nvidia-uvm) now and at boot, and keeps nvidia-persistenced running.
  - Where the loaded module is of another version or flavor (open, proprietary) than the packages', it is
    exchanged if nothing uses it; otherwise C(reboot_needed) says why the host has to be rebooted. This module
    never reboots.
  - Then asks the libraries, through nvidia-smi, whether they fit the loaded module.
options:
  state:
    description:
      - absent takes the module out of the kernel and removes what was set up for it.
      - restored, once the packages are as they were, loads what held the cards before.
    type: str
    choices: [present, absent, restored]
    default: present
  version: {description: "Version of the installed driver packages (C(580.105.08)).", type: str, default: ""}
  timeout_s: {description: "How long building for one kernel may take, in seconds.", type: int, default: 1800}
"""

#: Prefix of every path; tests point it at a directory of theirs.
ROOT = ""
HEADER = "# Kept by Boxwright; edits are overwritten.\n"
FILES = {
    "/etc/modprobe.d/boxwright-nvidia.conf": HEADER + "blacklist nouveau\noptions nouveau modeset=0\n",
    # Containers are given /dev/nvidia-uvm, which has to be there before Docker starts them at boot.
    "/etc/modules-load.d/boxwright-nvidia.conf": HEADER + "nvidia\nnvidia-uvm\n",
}
INITRAMFS = "/etc/modprobe.d/boxwright-nvidia.conf"
#: What makes the initramfs of every kernel anew, by distribution; the first that is there does it.
REBUILDS = (["update-initramfs", "-u", "-k", "all"], ["dracut", "--force", "--regenerate-all"])
PENDING = "/var/lib/boxwright/initramfs-pending"
#: What held the cards before us: {"nouveau": bool, "nvidia": version or null}.
BEFORE = "/var/lib/boxwright/kernel-module-before.json"
DAEMON = "nvidia-persistenced.service"
#: What a host does while libraries and loaded module are of two versions.
MISMATCH = 'nvidia-smi and new containers fail with "Driver/library version mismatch"'
#: What it does while they are of one version, and the module of the flavor that is declared no more.
ONE_VERSION = "the cards are driven by it until then"


class ModuleError(Exception):
    """The module cannot be made true; the text says why and what to do."""


class KernelModule:
    """One call's work. done: what was (or would be) changed, in words."""

    def __init__(self, params: Dict[str, Any], check: bool) -> None:
        self.params, self.check = params, check
        self.state = kernel_module.read_state(ROOT)
        self.version = params["version"] or self.state.on_disk or ""
        self.done: List[str] = []
        self.reboot_needed = ""

    def act(self, what: str, argv: List[str], timeout: float = 120) -> Result:
        """Run a program that changes something, unless this is check mode."""
        self.done.append(what)
        return Result(0, "", "") if self.check else run(argv, timeout=timeout)

    def present(self) -> None:
        """Configure, build, load, keep loaded. Raises ModuleError."""
        if not self.check and not os.path.exists(ROOT + BEFORE):
            write(
                ROOT + BEFORE, json.dumps({"nouveau": self.state.nouveau, "nvidia": self.state.loaded}) + "\n"
            )
        self.configure({ROOT + path: text for path, text in FILES.items()})
        self.build(self.state.kernel)
        self.load()
        if not self.reboot_needed:
            self.agree()
        if not self.reboot_needed:
            self.daemon()
        if self.state.next_kernel != self.state.kernel:
            self.build(self.state.next_kernel)
            if not self.check and not kernel_module.on_disk(self.state.next_kernel):
                raise ModuleError(
                    "kernel %s boots next, and there is no driver for it: see `dkms status`, or install the "
                    "package of modules for that kernel; do not reboot before" % self.state.next_kernel
                )

    def absent(self) -> None:
        """Take the module out of the kernel if nothing uses it, and remove our files.

        Where nothing of ours is left, the module is somebody else's, as after an uninstall that restored it.
        """
        if not any(os.path.exists(ROOT + path) for path in (*FILES, BEFORE)):
            return
        if self.state.loaded is not None:
            self.stop_daemon()
            left = self.unload()
            if left:
                self.reboot_needed = "the module is in use and stays loaded until the next boot: %s" % left
        self.configure({ROOT + path: None for path in FILES})

    def restored(self) -> None:
        """Once packages are as they were: what held the cards before us holds them again, now or at boot."""
        text = read(ROOT + BEFORE)
        if text is None:
            return
        try:
            before = json.loads(text)
            nouveau, nvidia = bool(before["nouveau"]), before["nvidia"]
        except (KeyError, TypeError, ValueError) as error:
            raise ModuleError("%s is damaged (%s): delete it and reboot" % (BEFORE, error)) from None
        free = self.state.loaded is None and not self.state.nouveau
        wanted = ["nvidia", "nvidia-uvm"] if nvidia and self.state.on_disk else ["nouveau"] if nouveau else []
        for name in wanted if free else ():
            put = self.act("load %s" % name, ["modprobe", name])
            if put.rc != 0:
                self.done.pop()
                self.reboot_needed = "%s comes back with the next boot (%s)" % (name, put.text.strip())
                break
        self.done.append("remove %s" % BEFORE)
        if not self.check:
            take_away(ROOT + BEFORE)
            self.state = kernel_module.read_state(ROOT)

    def configure(self, files: Dict[str, Optional[str]]) -> None:
        """Our files; the initramfs anew when what it holds of them changed, also in a run cut off before."""
        pending = ROOT + PENDING
        for path, text in files.items():
            differs = os.path.exists(path) if text is None else ensure(path, text, check=True)
            if not differs:
                continue
            self.done.append("%s %s" % ("remove" if text is None else "write", path))
            if self.check:
                continue
            if path.endswith(INITRAMFS):
                write(pending, "")
            if text is None:
                os.unlink(path)
            else:
                ensure(path, text)
        if not os.path.exists(pending):
            return
        for argv in REBUILDS:
            made = self.act("rebuild the initramfs", argv, timeout=900)
            if made.rc != 127:
                break
            # Without any of them, this host boots without an initramfs (a container, a minimal image).
            self.done.pop()
        if made.rc not in (0, 127):
            raise ModuleError("the initramfs cannot be rebuilt: %s" % made.text[-600:])
        if not self.check:
            os.unlink(pending)

    def build(self, kernel: str) -> None:
        """Let DKMS build what it owes a kernel. Raises ModuleError."""
        owed = kernel_module.unbuilt(self.state, self.version, kernel)
        if owed is None:
            return
        if not os.path.isdir("%s/lib/modules/%s/build" % (ROOT, kernel)):
            raise ModuleError(
                "there are no kernel headers for %s (/lib/modules/%s/build), so the driver cannot be "
                "built for it: install %s" % (kernel, kernel, kernel_module.headers_of(kernel, ROOT))
            )
        argv = ["dkms", "install", "--force", "%s/%s" % (owed.name, owed.version), "-k", kernel]
        made = self.act("build the module for %s" % kernel, argv, timeout=self.params["timeout_s"])
        if made.rc != 0:
            raise ModuleError(
                "DKMS cannot build %s %s for kernel %s:\n%s"
                % (owed.name, owed.version, kernel, made.text[-800:])
            )
        if not self.check:
            self.state = kernel_module.read_state(ROOT)

    def load(self) -> None:
        """The module of the packages' version in the kernel, or the reason why that takes a reboot."""
        state, version = self.state, self.version
        if state.loaded is not None and version and (state.loaded != version or state.other_flavor):
            self.exchange()
        elif state.loaded is None and state.nouveau:
            gone = self.act("take nouveau out of the kernel", ["modprobe", "-r", "nouveau"])
            if gone.rc != 0:
                self.done.pop()
                self.reboot_needed = (
                    "nouveau holds the cards and is in use; it stays away from the next boot on "
                    "(%s is installed)" % (version or "the driver")
                )
            else:
                self.insert()
        elif state.loaded is None or not state.uvm:
            self.insert()

    def insert(self) -> None:
        """modprobe both modules. Raises ModuleError."""
        for name in ("nvidia", "nvidia-uvm"):
            put = self.act("load %s %s" % (name, self.version), ["modprobe", name])
            if put.rc != 0:
                raise ModuleError(kernel_module.explain_load(put, self.state.kernel, ROOT))
        if self.check:
            return
        self.state = kernel_module.read_state(ROOT)
        if self.version and self.state.loaded != self.version:
            self.reboot_needed = "module %s is loaded, %s is installed" % (self.state.loaded, self.version)

    def exchange(self) -> None:
        """Another module is loaded: take it out and load the installed one, if nothing uses the cards."""
        state = self.state
        loaded, installed = state.loaded or "", self.version
        if state.other_flavor:
            loaded, installed = (
                "%s (%s)" % (loaded, state.flavor),
                "%s (%s)" % (installed, state.flavor_on_disk),
            )
        self.done.append("exchange module %s for %s" % (loaded, installed))
        if self.check:
            return
        was_running = self.stop_daemon()
        left = self.unload()
        if not left:
            self.insert()
            return
        if was_running:
            run(["systemctl", "start", DAEMON], timeout=120)
        self.done.pop()
        meanwhile = MISMATCH if state.loaded != self.version else ONE_VERSION
        self.reboot_needed = "module %s is loaded and in use, %s is installed (%s): %s" % (
            loaded,
            installed,
            meanwhile,
            left,
        )

    def agree(self) -> None:
        """The libraries that programs load fit the loaded module, or the two versions. Raises ModuleError.

        The package's version does not tell: another installer may have put its libraries before them.
        """
        if self.state.loaded is None or (self.check and self.done):
            return
        answer = card_answer.ask(["index"], ROOT)
        if answer.outcome == "hung":
            raise ModuleError("the cards do not answer: %s" % answer.why)
        if answer.outcome == "mismatch":
            self.reboot_needed = "%s (%s)" % (answer.why, MISMATCH)

    def unload(self) -> str:
        """Take the driver's modules out; what is in the way, or "". A refusal leaves them as they were."""
        taken: List[str] = []
        for name in kernel_module.UNLOAD_ORDER:
            if not os.path.isdir("%s/sys/module/%s" % (ROOT, name)):
                continue
            gone = self.act("take %s out of the kernel" % name, ["modprobe", "-r", name])
            if gone.rc != 0:
                self.done.pop()
                for back in reversed(taken):
                    run(["modprobe", back], timeout=120)
                    self.done.pop()
                return gone.text.splitlines()[0] if gone.text else "modprobe -r %s failed" % name
            taken.append(name)
        return ""

    def daemon(self) -> None:
        """nvidia-persistenced enabled and running."""
        values = daemon_state()
        if values.get("LoadState") != "loaded":
            if not self.check:
                raise ModuleError("%s is not installed, though its package was asked for" % DAEMON)
            return
        if values.get("UnitFileState") in ("enabled", "static") and values.get("ActiveState") == "active":
            return
        # While module and libraries differed, the daemon failed until systemd gave it up.
        if not self.check:
            run(["systemctl", "reset-failed", DAEMON])
        started = self.act("enable and start nvidia-persistenced", ["systemctl", "enable", "--now", DAEMON])
        if started.rc != 0:
            raise ModuleError("nvidia-persistenced does not start: %s" % started.text)

    def stop_daemon(self) -> bool:
        """Stop nvidia-persistenced, which keeps the module in use (also between tries); whether it ran."""
        values = daemon_state()
        if values.get("LoadState") == "loaded" and not self.check:
            stopped = run(["systemctl", "stop", DAEMON], timeout=120)
            if stopped.rc != 0:
                raise ModuleError("nvidia-persistenced does not stop: %s" % stopped.text)
        return values.get("ActiveState") == "active"


def daemon_state() -> Dict[str, str]:
    """systemd's LoadState, UnitFileState and ActiveState of nvidia-persistenced."""
    shown = run(["systemctl", "show", "-p", "LoadState,UnitFileState,ActiveState", DAEMON]).stdout
    return dict(line.partition("=")[::2] for line in shown.splitlines())


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent", "restored"], "default": "present"},
            "version": {"type": "str", "default": ""},
            "timeout_s": {"type": "int", "default": 1800},
        },
        supports_check_mode=True,
    )
    work = KernelModule(module.params, module.check_mode)
    before = work.state
    try:
        {"present": work.present, "absent": work.absent, "restored": work.restored}[module.params["state"]]()
    except ModuleError as error:
        module.fail_json(msg=str(error), done=work.done)
    module.exit_json(
        changed=bool(work.done),
        said=work.reboot_needed or "%s loaded" % (work.state.loaded or "not"),
        done=work.done,
        reboot_needed=work.reboot_needed,
        kernel=work.state.kernel,
        next_kernel=work.state.next_kernel,
        installed=work.version,
        loaded_before=before.loaded,
        loaded=work.state.loaded,
        diff={"before": "", "after": "".join(line + "\n" for line in work.done)},
    )


if __name__ == "__main__":
    main()
