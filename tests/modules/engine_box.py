"""A host with units and containers, on which what a release's plan says is how its engine behaves."""

import sys
from pathlib import Path

from ansible.module_utils import engine_room, engine_switch, engine_watch, systemctl
from ansible.module_utils.engine_store import Store
from ansible.module_utils.systemctl import UnitError

from boxwright.ansible.modules import engine_gate, engine_key, engine_rollback, engine_trial

sys.path.insert(0, str(Path(__file__).parent))
from engine_doubles import KEY, Server, unit_state


class Box:
    """A host with units, containers and one server; what a release's plan says is how its engine behaves."""

    def __init__(self, root, monkeypatch):
        self.root, self.units, self.running, self.enabled = root, {}, {}, set()
        self.calls, self.log = [], []
        self.server = Server()
        self.crashes, self.cards = set(), {}
        self.states = {}
        self.boot, self.trials, self.full = {}, set(), None
        self.images, self.removed = {}, []
        self.takes_new_keys, self.overrides = True, []
        (root / "key").write_text(KEY + "\n")
        box = self

        class Service:
            def __init__(self, name, docker):
                self.name, self.container = name, f"boxwright-{name}"

            def state(self):
                return box.states.get(self.name, unit_state(enabled=self.name in box.enabled))

            def running_release(self):
                return box.running.get(self.name)

            def lacks(self, release):
                reasons = [] if box.units.get(self.name) == release.unit else ["its unit is another's"]
                return (
                    reasons if box.running.get(self.name) == release.id else [*reasons, "it is not running"]
                )

            def overrides(self):
                return box.overrides

            def install(self, release):
                changed = box.units.get(self.name) != release.unit
                box.units[self.name] = release.unit
                if box.boot.get(self.name) == release.unit:
                    box.trials.discard(self.name)
                else:
                    box.trials.add(self.name)
                return changed

            def keep(self, release):
                changed = (self.name in box.trials) or box.boot.get(self.name) != release.unit
                box.boot[self.name] = release.unit
                box.trials.discard(self.name)
                return changed

            def start(self):
                release = box.found(self.name)
                box.calls.append(("start", release.id))
                if release.id in box.crashes:
                    box.running.pop(self.name, None)
                    box.states[self.name] = unit_state("activating", "auto-restart", status=1)
                    box.log.append("ValueError: no room")
                    if release.plan.get("unstartable"):
                        raise UnitError("systemctl restart failed")
                else:
                    box.states.pop(self.name, None)
                    box.running[self.name] = release.id
                    if box.takes_new_keys:
                        box.server.key = (root / "key").read_text().strip()
                    box.server.models = [release.plan.get("behaves", self.name)]

            def stop(self):
                box.calls.append(("stop", self.name))
                box.running.pop(self.name, None)

            def enable(self):
                new = self.name not in box.enabled
                box.enabled.add(self.name)
                return new

            def remove(self):
                box.calls.append(("remove", self.name))
                box.running.pop(self.name, None)

            def cards(self):
                return box.cards.get(box.running.get(self.name))

        class Journal:
            @classmethod
            def of_start(cls, invocation):
                return cls()

            def new(self):
                found, box.log = box.log, []
                return found

        class Docker:
            def image(self, name):
                return box.images.get(name)

            def names(self, identity):
                return [name for name, image in box.images.items() if image.id == identity]

            def remove_network(self, name):
                box.removed.append(name)
                return True

            def remove_image(self, name):
                box.removed.append(name)
                return True

        for module in (engine_gate, engine_key, engine_rollback, engine_trial):
            monkeypatch.setattr(module, "Docker", Docker)
        monkeypatch.setattr(engine_room, "wait", lambda wants, tell: box.full)
        for module in (engine_gate, engine_switch, engine_trial):
            monkeypatch.setattr(module, "Service", Service)
        monkeypatch.setattr(systemctl, "Journal", Journal)
        monkeypatch.setattr(systemctl, "call", lambda *words, **kw: box.calls.append(words))
        monkeypatch.setattr(engine_watch, "POLL_S", 0.01)
        monkeypatch.setattr(
            engine_watch.Watch.__init__, "__defaults__", (engine_watch.time.monotonic, lambda s: None)
        )

    @property
    def deeds(self):
        """What was started and stopped."""
        return [call for call in self.calls if call != ("daemon-reload",)]

    def found(self, name):
        """The release whose unit systemd finds."""
        store = Store(str(self.root), name)
        (release,) = [one for one in map(store.read, store.releases()) if one.unit == self.units[name]]
        return release

    def release(self, identity, name="qwen", **plan):
        """Put a release on the disk, as engine_release does."""
        state = {"name": name, "bind": "127.0.0.1", "port": self.server.port,
                 "key_file": str(self.root / "key"),
                 "access": "cdi", "stop_timeout_s": 1, "revision": "a" * 40, "quantize": None,
                 "command": ["vllm", "--shutdown-timeout", "5"],
                 "reference": f"vllm@{identity}"}  # fmt: skip
        plan = {
            "name": name,
            "served_name": name,
            "gate": {"prompt": "?", "expect": "Paris", "timeout_s": 5},
            **plan,
        }
        Store(str(self.root), name).write(identity, state, plan, f"unit of {identity}\n")
        return plan

    def found_plan(self, identity, name="qwen"):
        """The plan of a release that lies there."""
        return Store(str(self.root), name).read(identity).plan

    def link(self, link, name="qwen"):
        return Store(str(self.root), name).link(link)
