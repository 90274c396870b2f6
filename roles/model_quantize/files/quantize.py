"""Makes an INT4 checkpoint of a 16-bit one; run by the module quantized_model.

Argument: a JSON file with method (autoawq or llmcompressor: with_<method>.py beside this file has the work),
source, output and view (directories), bits, group_size, kept (names or patterns of modules that stay as they
are), calibration (a text file), blocks (at most so many), block_tokens, layer_bytes and device (auto, cuda,
cpu). Says on standard output, one JSON object a line, what it does: "stage", "layers" with done and total, at
last "done" or "error" with a kind. Needs no hub.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I leaves it out

from parts import Refused, say

#: Bytes of a card that a layer's calibration needs beside the layer itself: activations and candidates of a
#: scale.
CARD_HEADROOM = 6 * 1024**3

#: Asked of a process of its own: this one must choose its cards before torch is loaded.
CARDS = """
import json, torch
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps([torch.cuda.mem_get_info(n)[0] for n in range(count)]))
"""


def choose_device(wanted: str, layer_bytes: int) -> tuple[str, str]:
    """Where to work and why; makes the other cards invisible. layer_bytes: the largest layer."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", CARDS], stdout=subprocess.PIPE, text=True, timeout=180, check=False
    )
    free = json.loads(done.stdout) if done.returncode == 0 else []
    needed = 4 * layer_bytes + CARD_HEADROOM
    best = max(range(len(free)), key=free.__getitem__, default=None)
    if wanted != "cpu" and best is not None and free[best] >= needed:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(best)
        return "cuda", f"card {best} has {free[best] / 1024**3:.1f} GiB free"
    why = (
        "torch sees no card"
        if best is None
        else f"no card has the {needed / 1024**3:.1f} GiB free that a layer needs"
    )
    if wanted == "cuda":
        raise Refused("no-card", why)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    return "cpu", "asked for" if wanted == "cpu" else why


def main() -> int:
    """Work; the exit status is 0 when the last event is done, 1 when it is an error."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.dup2(2, 1)
    try:
        device, why = choose_device(job["device"], job["layer_bytes"])
        say(event="device", device=device, why=why)
        importlib.import_module(f"with_{job['method']}").quantize(job, device)
    except Refused as error:
        say(event="error", kind=error.kind, detail=str(error))
        return 1
    except MemoryError:
        say(event="error", kind="memory", detail="")
        return 1
    except Exception as error:
        card = type(error).__name__ == "OutOfMemoryError"
        say(
            event="error",
            kind="card-memory" if card else "unexpected",
            detail=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
        )
        raise
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    say(event="done", device=device, peak_bytes=peak)
    return 0


if __name__ == "__main__":
    sys.exit(main())
