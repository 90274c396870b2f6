"""Have the INT4 checkpoints that a host makes itself: made once, checked, found again."""

from __future__ import annotations

import os
import time
from typing import Any, Dict

from ansible.module_utils import store_room, way_out
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.progress import Progress
from ansible.module_utils.python_environment import EnvironmentFailed, Step, Wanted, ensure
from ansible.module_utils.quantization import ABSENT, THERE, Checkpoint, QuantizeError, Settings, Tool

DOCUMENTATION = r"""
module: quantized_model
short_description: INT4 checkpoints made on the host with AutoAWQ or llm-compressor
description:
  - Makes each checkpoint in a staging directory, with its method's tools in a Python environment of their
    own, checks it (every tensor, the configuration that the engine reads, how well it predicts a text that it
    was not calibrated with) and renames it into the store with a manifest.
  - A finished one whose manifest says the same source, method, sizes, calibration text and tool is left
    alone; one made otherwise is not replaced, as an engine may be serving it.
options:
  store: {description: "Directory of the store.", type: path, required: true}
  wanted:
    description:
      - "What to make, as the plan has it: method, bits, group_size, source (weights), directory."
      - "calibration: a text of its own; without one, that of all."
    type: list
    elements: dict
    required: true
  tools:
    description:
      - "By method: requirement (autoawq==0.2.9), architectures (values of model_type that it knows), path (of
        its environment), packages, constraints."
    type: dict
    required: true
  environment:
    description: "What the environments have in common: torch, index URLs, size in bytes."
    type: dict
    required: true
  program: {description: "The quantizing program: name of file -> text.", type: dict, required: true}
  calibration: {description: "Calibration text, paragraphs parted by empty lines.", type: str, required: true}
  blocks: {description: "Most blocks of calibration text.", type: int, default: 128}
  block_tokens: {description: "Tokens of a block.", type: int, default: 512}
  worse_percent:
    description: "How much higher a result's perplexity may be than its source's."
    type: int
    default: 25
  device: {description: "Where to work.", type: str, choices: [auto, cuda, cpu], default: auto}
  proxy: {description: "URL of a proxy, for the packages.", type: str}
  no_proxy: {type: list, elements: str, default: [], description: "Hosts that are reached without it."}
  reserve: {description: "Bytes that stay free on the filesystem.", type: int, default: 2000000000}
  timeout_s: {description: "How long one model may take, in seconds.", type: int, default: 86400}
  lock_timeout_s:
    description: "How long to wait for another quantization on the host, in seconds."
    type: int
    default: 86400
  progress_file: {description: "Where to tell how far it is.", type: path}
"""


class Call:
    """One call of the module."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module, self.params = module, module.params
        self.progress = Progress(self.params["progress_file"])
        self.settings = Settings(**{name: self.params[name] for name in Settings._fields})
        self.tools = {
            method: Tool(str(one["requirement"]), [str(kind) for kind in one["architectures"]])
            for method, one in self.params["tools"].items()
        }

    def run(self) -> Dict[str, Any]:
        """Have every checkpoint; the result. Raises QuantizeError, EnvironmentFailed, BusyError."""
        wanted = {
            one["directory"]: Checkpoint(self.settings, self.tools, one) for one in self.params["wanted"]
        }
        results = [self.have(checkpoint) for checkpoint in wanted.values()]
        told = "; ".join(result["msg"] for result in results)
        return {
            "changed": any(result["changed"] for result in results),
            "models": results,
            "msg": told or "nothing is to be quantized",
            "said": told,
        }

    def have(self, checkpoint: Checkpoint) -> Dict[str, Any]:
        """One checkpoint."""
        state = checkpoint.state()
        result = {"directory": checkpoint.directory, "changed": state != THERE}
        if state == THERE:
            return dict(result, msg="%s: INT4 checkpoint there" % checkpoint.name)
        if self.module.check_mode:
            # On a host without the source yet, only that it would be made can be said.
            if os.path.isdir(checkpoint.source):
                checkpoint.look_at_source()
            return dict(result, msg="%s: an INT4 checkpoint would be made" % checkpoint.name)
        lock = os.path.join(self.settings.store, ".locks", "quantize.lock")
        with store_room.alone(lock, self.waiting, self.params["lock_timeout_s"]):
            if checkpoint.state() == THERE:
                return dict(result, changed=False, msg="%s: made by another run meanwhile" % checkpoint.name)
            made = self.make(checkpoint)
        if state != ABSENT:
            made["msg"] += ", in place of a flawed one: " + state
        return dict(result, **made)

    def make(self, checkpoint: Checkpoint) -> Dict[str, Any]:
        """Make the checkpoint, check it, put it in its place."""
        started = time.monotonic()
        tensors, estimate = checkpoint.look_at_source()
        checkpoint.check_resources(estimate)
        environment = self.environment(checkpoint.method)
        packages = ensure(environment, self.progress.update)
        told = checkpoint.quantize(environment.path, self.params["program"], estimate, self.progress)
        checkpoint.check(tensors)
        perplexity = checkpoint.check_perplexity(told)
        size = checkpoint.publish(
            {
                "recipe": checkpoint.recipe(),
                "packages": packages,
                "device": told["device"],
                "calibration": {"blocks": told["blocks"], "block_tokens": told["block_tokens"]},
                "perplexity": perplexity,
            }
        )
        seconds = round(time.monotonic() - started)
        if told["device"] == "cpu" and self.settings.device == "auto":
            self.module.warn(
                "%s was quantized on the processor, which is slow: %s" % (checkpoint.name, told["why"])
            )
        return {
            "device": told["device"],
            "seconds": seconds,
            "bytes": size,
            "peak_bytes": told["peak_bytes"],
            "perplexity": perplexity,
            "msg": "%s: INT4 checkpoint made in %d s, %s, perplexity %.4g, was %.4g"
            % (
                checkpoint.name,
                seconds,
                store_room.human(size),
                perplexity["result"],
                perplexity["source"],
            ),
        }

    def environment(self, method: str) -> Wanted:
        """A method's environment: torch and its like first, then the quantizer without its dependencies."""
        common, tool = self.params["environment"], self.params["tools"][method]
        return Wanted(
            tool["path"],
            [
                Step([common["torch"], *tool["packages"]], []),
                Step([tool["requirement"]], ["--no-deps", "--no-build-isolation"]),
            ],
            tool["constraints"],
            common["index_url"],
            common["torch_index_url"],
            self.params["proxy"] or "",
            int(common["size"]),
        )

    def waiting(self, holder: str) -> None:
        """Told while another run quantizes."""
        self.progress.update("waiting: %s quantizes on this host" % holder)


def main() -> None:
    """Ansible's entry point."""
    module = AnsibleModule(
        argument_spec={
            "store": {"type": "path", "required": True},
            "wanted": {"type": "list", "elements": "dict", "required": True},
            "tools": {"type": "dict", "required": True},
            "environment": {"type": "dict", "required": True},
            "program": {"type": "dict", "required": True},
            "calibration": {"type": "str", "required": True},
            "blocks": {"type": "int", "default": 128},
            "block_tokens": {"type": "int", "default": 512},
            "worse_percent": {"type": "int", "default": 25},
            "device": {"type": "str", "choices": ["auto", "cuda", "cpu"], "default": "auto"},
            "proxy": {"type": "str"},
            "no_proxy": {"type": "list", "elements": "str", "default": []},
            "reserve": {"type": "int", "default": 2_000_000_000},
            "timeout_s": {"type": "int", "default": 86400},
            "lock_timeout_s": {"type": "int", "default": 86400},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    way_out.follow(module)
    try:
        result = Call(module).run()
    except (QuantizeError, EnvironmentFailed) as error:
        module.fail_json(msg=str(error))
    except store_room.BusyError as error:
        module.fail_json(msg="a quantization is under way on this host: %s. End it and run again" % error)
    except OSError as error:
        module.fail_json(
            msg="%s: %s. Check the filesystem of the store, then run again"
            % (error.filename or module.params["store"], error.strerror or error)
        )
    else:
        module.exit_json(**result)


if __name__ == "__main__":
    main()
