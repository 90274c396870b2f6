"""SGLang's command for a declaration, read by the real SGLang's own parser, as a host has it read."""

import dataclasses
import json

import pytest

from boxwright import catalog, planner
from boxwright.engines import sglang
from boxwright.lab.state import Lab
from boxwright.lab.store import environment, packages, workshop
from boxwright.lab.store.cache import digest, kept
from boxwright.spec.box import Box, Cards, Deployment, ModelRef, Speculative

pytestmark = pytest.mark.lab

RELEASE = "0.5.23"
PLACE = "/opt/sglang"
#: What its parser's modules need beside the packages of vLLM.
NEEDED = ("orjson==3.13.0",)
#: What the parser imports and never asks, kernels for cards (a gigabyte) and notebooks: it has every name.
ABSENT = """\
import importlib.abc, importlib.machinery, sys, types

class Anything(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(self.__name__ + "." + name)

    def __call__(self, *given, **named):
        return given[0] if len(given) == 1 and callable(given[0]) and not named else self

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("triton", "IPython"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Anything(spec.name)

    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Finder())
"""
#: Reads many command lines, since the parser's modules take half a minute to load; what became of each.
ALL = """\
import io, contextlib, json, traceback
program, found = sys.argv[1], []
for words in json.loads(sys.argv[2]):
    sys.argv, said, status = ["-c", *words], io.StringIO(), 0
    with contextlib.redirect_stderr(said):
        try:
            exec(program, {"__name__": "__main__"})
        except SystemExit as end:
            status = end.code or 0
    found.append([status, said.getvalue().strip().splitlines()[-1:]])
print("FOUND " + json.dumps(found))
"""
DECLARED = {
    "plain": {},
    "two cards": {"count": 2},
    "mtp": {"speculative": Speculative("mtp", 3)},
    "dflash": {"speculative": Speculative("dflash2", 7)},
    "ngram": {"speculative": Speculative("ngram", 4)},
    "fp8 cache": {"kv_cache": "fp8"},
    "bf16 cache": {"kv_cache": "bf16"},
    "a share of the card, no prefix cache": {"gpu_memory_utilization": 0.85, "prefix_caching": False},
    "its own context": {"context": "auto"},
    "vectors": {"model": ModelRef(name="qwen3-embedding-0.6b")},
    "an encoder that ranks": {"model": ModelRef(name="bge-reranker-v2-m3"), "context": "auto"},
    "options of one's own": {"extra_args": {"attention-backend": "triton", "log-level": "warning"}},
}


def command(count=1, **changes):
    deployment = Deployment(
        "qwen",
        ModelRef(name="qwen3.8-27b-int4"),
        f"lmsysorg/sglang:v{RELEASE}",
        engine="sglang",
        context=32768,
    )
    box = Box(
        "box1", gpus=(Cards("rtx5090", count),), deployments=(dataclasses.replace(deployment, **changes),)
    )
    known = catalog.load()
    [case] = planner.plan(box, planner.offline_facts(box, known), known).cases
    assert not case.command.problems
    return list(case.command.argv)


def unpacked(cache):
    """The package, unpacked; nothing that it depends on."""

    def make(folder):
        packages.download([f"sglang=={RELEASE}", *NEEDED], folder, environment.PYTHON)
        packages.install(list(folder.glob("*.whl")), folder / "site", environment.PYTHON)

    (cache / "sglang").mkdir(exist_ok=True)
    return kept(cache / "sglang" / f"{RELEASE}-{digest(*NEEDED)}", print, f"SGLang {RELEASE}", make) / "site"


@pytest.fixture(scope="module")
def read():
    """Has the real parser read command lines; for each its exit status, and the last line of its errors."""

    def run(lines):
        lab = Lab.here()
        said = workshop.run(
            environment.base(print),
            ["python3", "-W", "ignore", "-c", ABSENT + ALL, sglang.PARSE, json.dumps(lines)],
            print,
            what="have SGLang's parser read its options",
            binds={environment.SITE: environment.ensure(lab.cache, print), PLACE: unpacked(lab.cache)},
            environment={"PYTHONPATH": PLACE, "HOME": "/tmp", "TORCHDYNAMO_DISABLE": "1"},
        )
        return json.loads(said.rpartition("FOUND ")[2])

    return run


def test_every_declaration_is_taken_and_what_is_none_is_not(read):
    lines = [command(**changes)[1:] for changes in DECLARED.values()]
    wrong = [[*lines[0], "--kv-cache-dtype", "fp3"], [*lines[0], "--swap-space", "4"]]
    found = read([*lines, *wrong])
    assert dict(zip(DECLARED, found, strict=False)) == {name: [0, []] for name in DECLARED}
    assert [status for status, _ in found[-2:]] == [2, 2], found[-2:]
    assert "unrecognized arguments: --swap-space" in found[-1][1][0]
    assert "invalid choice" in found[-2][1][0]
