"""Examine a real engine with tiny encoders, and keep its answers for tests/modules/recorded_vectors.json:

    python tests/engines/record_vectors.py IMAGE RELEASE DIRECTORY OUTPUT [--cpus 1]

IMAGE: an engine's image without a need for cards. DIRECTORY: of models made by tiny_encoders.py. The engine
is started by plain Docker with the very arguments that the plan writes, behind the guard, as a release is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "modules")]

import conftest  # noqa: E402, F401  # puts ansible.module_utils where modules find it
from ansible.module_utils.engine_exam import Matter  # noqa: E402
from ansible.module_utils.engine_probe import Endpoint, ProbeError  # noqa: E402
from ansible.module_utils.engine_vector_exam import VectorExam  # noqa: E402
from ansible.module_utils.engine_watch import STAGE_TIMEOUTS_S, GateError, Watch, question_of  # noqa: E402
from ansible.module_utils.progress import Progress  # noqa: E402
from engine_doubles import KEY, unit_state  # noqa: E402

from boxwright import catalog, planner  # noqa: E402
from boxwright.ansible.module_utils.engine_container import BASE_ENV  # noqa: E402
from boxwright.facts import HostFacts  # noqa: E402
from boxwright.spec.box import box_from_variables  # noqa: E402

NAME, PORT, WAIT_S = "boxwright-recording", 18231, 900
GUARD = ROOT / "boxwright" / "ansible" / "module_utils" / "engine_guard.py"
WRAPPER = (
    'export PYTHONPATH=/run/boxwright${PYTHONPATH:+:$PYTHONPATH} && exec "$@" --middleware engine_guard.Guard'
)


class Recorder(Endpoint):
    """An endpoint that keeps what was asked and answered."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", PORT, KEY)
        self.exchanges: list[dict[str, Any]] = []

    def post(self, path: str, body: dict[str, Any], timeout: float) -> Any:
        try:
            found = super().post(path, body, timeout)
        except ProbeError as error:
            self.exchanges.append({"path": path, "asked": body, "status": error.status, "answer": str(error)})
            raise
        self.exchanges.append({"path": path, "asked": body, "status": 200, "answer": found})
        return found


def planned(model: Path, release: str) -> dict[str, Any]:
    """The plan's deployment of a model's directory."""
    variables = {
        "box_gpus": {"model": "rtx4090", "count": 1},
        "box_deployments": [
            {"name": "tiny", "model": {"path": "/models/tiny"}, "image": f"vllm/vllm-openai:v{release}"}
        ],
    }
    box, known = box_from_variables("box1", variables), catalog.load()
    plain = planner.offline_facts(box, known).to_json()
    files = [
        {"path": str(file.relative_to(model)), "size": file.stat().st_size}
        for file in sorted(model.rglob("*"))
        if file.is_file()
    ]
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    plain["models"] = [
        {
            "request": "/models/tiny",
            "origin": "path",
            "directory": "/models/tiny",
            "config": config,
            "files": files,
        }
    ]
    made = planner.plan(box, HostFacts.from_json({**plain, "recorded": True}), known)
    wrong = [found for found in made.gates if found.path.startswith("box_deployments")]
    if wrong:
        raise SystemExit(f"refused: {[found.message for found in wrong]}")
    deployment: dict[str, Any] = made.to_json()["deployments"][0]
    return deployment


def start(image: str, model: Path, cache: Path, deployment: dict[str, Any], cpus: str) -> None:
    """Start the engine as its unit would, but for cards and the key's file."""
    env = {**BASE_ENV, **deployment["runtime"]["env"], **deployment["env"], "VLLM_API_KEY": KEY}
    words = [
        "docker",
        "run",
        "--detach",
        "--name",
        NAME,
        "--cpus",
        cpus,
        "--read-only",
        "--tmpfs",
        "/tmp:exec",
    ]
    words += [
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--shm-size",
        deployment["shm_size"],
    ]
    words += ["--volume", f"{model}:/model:ro", "--volume", f"{cache}:/cache"]
    words += ["--volume", f"{GUARD}:/run/boxwright/engine_guard.py:ro", "--publish", f"127.0.0.1:{PORT}:8000"]
    words += [word for name, value in env.items() for word in ("--env", f"{name}={value}")]
    words += ["--entrypoint", "sh", image, "-c", WRAPPER, "boxwright", *deployment["command"]]
    subprocess.run(words, check=True, timeout=60, capture_output=True)


def examined(model: Path, deployment: dict[str, Any], image: str, cache: Path, cpus: str) -> dict[str, Any]:
    """Start it, examine it, and end it."""
    start(image, model, cache, deployment, cpus)
    endpoint, began = Recorder(), time.monotonic()

    def log() -> list[str]:
        done = subprocess.run(
            ["docker", "logs", NAME], capture_output=True, text=True, timeout=60, check=False
        )
        return (done.stdout + done.stderr).splitlines()

    try:
        with tempfile.TemporaryDirectory() as place:
            watch = Watch(
                "tiny", endpoint, unit_state, lambda: True, list, Progress(str(Path(place, "progress")))
            )
            watch.until_listed("tiny", WAIT_S, dict.fromkeys(STAGE_TIMEOUTS_S, WAIT_S))
            ready = time.monotonic() - began
            question = question_of(deployment["gate"])
            matter = Matter(deployment, question, None, 8192)
            found: dict[str, Any] = {}
            refused = None
            try:
                answer = watch.ask("tiny", question)
                print(answer.text)
                found = VectorExam(watch, endpoint, matter, lambda part: None).run(answer)
                found.pop("reference", None)
            except GateError as error:
                refused = error.kind
                print(f"refused ({error.kind}): {error}")
            return {
                "what": f"{model.name}, vLLM {deployment['release']}",
                "serves": deployment["serves"],
                "model": "tiny",
                "longest": endpoint.longest("tiny"),
                "ready_seconds": round(ready),
                "command": deployment["command"],
                "refused": refused,
                "found": found,
                "exchanges": endpoint.exchanges,
            }
    except Exception:
        print("\n".join(log()[-40:]))
        raise
    finally:
        subprocess.run(["docker", "rm", "--force", NAME], check=False, timeout=60, capture_output=True)


def written(cases: list[dict[str, Any]]) -> str:
    """The cases as JSON, an exchange a line."""
    texts = []
    for case in cases:
        head = json.dumps({**case, "exchanges": []}).removesuffix("]}")
        lines = ",\n".join(json.dumps(one) for one in case["exchanges"])
        texts.append(f"{head}\n{lines}\n]}}")
    return "[\n" + ",\n".join(texts) + "\n]\n"


def main() -> None:
    """Examine every model of the directory, one after another."""
    parser = argparse.ArgumentParser()
    for name in ("image", "release", "directory", "output"):
        parser.add_argument(name)
    parser.add_argument("--cpus", default="1")
    given = parser.parse_args()
    output = Path(given.output)
    cases = json.loads(output.read_text(encoding="utf-8")) if output.exists() else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        for model in sorted(Path(given.directory).resolve().iterdir()):
            deployment = planned(model, given.release)
            print(model.name, " ".join(deployment["command"]))
            case = examined(model, deployment, given.image, Path(cache), given.cpus)
            cases = [one for one in cases if one["what"] != case["what"]] + [case]
            output.write_text(written(cases), encoding="utf-8")


if __name__ == "__main__":
    main()
