"""The real vLLM, CPU build, as a directory of Python packages: what the engine image and nothing else is made
of.

The packages are unpacked by this machine's pip; a container of the image's base system then imports what a
starting engine imports. That shows that they work, and leaves byte code: a start takes a third of the time
with it. One plug-in is added, which stands in for instructions of the processor: int4_product.py.
"""

from __future__ import annotations

import csv
import os
import platform
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from boxwright.errors import UserError
from boxwright.lab import images
from boxwright.lab.state import Report
from boxwright.lab.store import elf, packages, workshop
from boxwright.lab.store.cache import digest, kept, sources

PYTHON, VLLM, TORCH = "3.11", "0.32.0", "torch==2.13.0+cpu"
#: Releases before VLLM that can be had, too, for upgrades from one real release to another.
EARLIER = ("0.29.0",)
#: The engine's plug-in by its name among the packages: it stands in for AVX-512, and for nothing else.
PLUG_IN = "boxwright_lab_int4_product"
DATA = Path(__file__).with_name("data")
PINS = DATA / "engine.txt"
#: Where Debian's Python looks for packages that are not Debian's: a site directory, so that .pth files work.
SITE = f"/usr/local/lib/python{PYTHON}/dist-packages"
#: Every source file's time (2026-01-01), in byte code, which is only used for a source of that time, and in
#: images.
TIME = 1767225600

BASE = images.Recipe(
    name="engine-base",
    suite="bookworm",
    packages=("python3", "libgomp1", "libnuma1"),
    setup="rm -rf /usr/share/man/* /usr/share/doc/* /usr/share/locale/* /usr/share/info/*\n",
)

#: Settings without which the trimmed CPU build does not start, whatever flags it is started with. No compiler
#: is there: what torch would compile runs as it is, as with --enforce-eager. A fixed memory for the KV cache
#: in GiB, since the default is a share of the machine's. No threads bound to processors: one for each card is
#: more than some have.
SETTINGS = {
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_USE_AOT_COMPILE": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}

#: Between them they import what a server, its engine and its workers import, models and drafting included.
IMPORTED = (
    "vllm.entrypoints.cli.main",
    "vllm.entrypoints.cli.serve",
    "vllm.entrypoints.openai.api_server",
    "vllm.entrypoints.launchers.api_server.entry",
    "vllm.v1.engine.async_llm",
    "vllm.v1.engine.core",
    "vllm.v1.executor.multiproc_executor",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.worker.cpu_model_runner",
    "vllm.v1.attention.backends.cpu_attn",
    "vllm.model_executor.models.llama",
    "vllm.model_executor.models.qwen3",
    "vllm.model_executor.models.qwen3_5",
    "vllm.model_executor.models.qwen3_5_mtp",
    "vllm.model_executor.layers.quantization.auto_awq",
    "vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors",
    PLUG_IN,
    "vllm.renderers.hf",
    "model_hosting_container_standards.sagemaker",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.lifespan.on",
    "setproctitle",
    "pydantic.v1",
)
IMPORT = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"

#: Not needed to serve: tests, headers and programs for building, examples. Patterns below the site directory.
UNWANTED = (
    "bin",
    "torch/include",
    "torch/bin/*[tT]est*",
    "torch/bin/protoc*",
    "torch/share",
    "torch/test",
    "torch/lib/*.a",
    "torch/lib/*test*",
    "numba/tests",
    "numba/cuda/tests",
    "sympy/**/tests",
    "networkx/**/tests",
    "numpy/**/tests",
    "**/*.pyi",
    # Where each package came from on this machine: the image is to be the same on every one.
    "*.dist-info/direct_url.json",
    "*.dist-info/REQUESTED",
)


def base(report: Report) -> Path:
    """The root directory of the image's base system, as a tar archive."""
    return images.root(BASE, report)


def ensure(cache: Path, report: Report, release: str = VLLM) -> Path:
    """The directory with the packages of a release, made when it is missing.

    Raises UserError, among others on a machine for whose processor there are no packages.
    """
    if platform.machine() != "x86_64":
        raise UserError(
            f"the lab's engine is built for x86-64, and this machine is {platform.machine()}",
            ways_out=("run the lab on an x86-64 machine",),
        )
    recipe = digest(release, *requirements(release), *sources("environment.py", "elf.py", "int4_product.py"))
    made = kept(
        cache / "engine" / f"site-{recipe}",
        report,
        f"the engine (vLLM {release})",
        lambda folder: _make(folder, cache, report, release),
    )
    return made / "site"


def torch_wheel(cache: Path, report: Report) -> Path:
    """The wheel of torch's CPU build, kept in the cache: the engine has it, and the wheel index too."""
    folder = kept(
        cache / "torch" / f"{TORCH.partition('==')[2]}-cp311",
        report,
        f"download of {TORCH}",
        lambda place: packages.download_torch(TORCH, place, PYTHON),
    )
    return next(folder.glob("*.whl"))


def requirements(release: str = VLLM) -> list[str]:
    """The packages of a release beside torch, each with its hash."""
    found = {_name(line): line for line in _lines(PINS)}
    if release != VLLM:
        for line in _lines(DATA / f"engine-{release}.txt"):
            if line.startswith("-"):
                del found[line[1:]]
            else:
                found[_name(line)] = line
    return list(found.values())


def _lines(pins: Path) -> list[str]:
    lines = (line.strip() for line in pins.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _name(requirement: str) -> str:
    return requirement.partition("==")[0]


def _make(folder: Path, cache: Path, report: Report, release: str) -> None:
    wheels, site = folder / "wheels", folder / "site"
    wheels.mkdir()
    report("lab: downloading the engine's packages (about 500 MB)")
    with ThreadPoolExecutor(3) as pool:
        system = pool.submit(base, report)
        torch = pool.submit(torch_wheel, cache, report)
        packages.download(requirements(release), wheels, PYTHON, hashes=True)
        packages.install([*wheels.glob("*.whl"), torch.result()], site, PYTHON)
        shutil.rmtree(wheels)
        _trim(site)
        _mend(site, release)
        _plug_in(site)
        for path in _files(site):
            if ".so" in path.suffixes:
                elf.strip(path)
            os.utime(path, (TIME, TIME))
        root = system.result()
    report("lab: importing the engine once, for its byte code")
    workshop.run(
        root,
        ["python3", "-W", "ignore", "-c", IMPORT, *IMPORTED],
        report,
        what="import the engine",
        binds={SITE: site},
        environment={**SETTINGS, "HOME": "/tmp", "VLLM_NO_USAGE_STATS": "1"},
    )


def _trim(site: Path) -> None:
    """Remove what is not needed, also from the packages' lists of their files."""
    for pattern in UNWANTED:
        for path in list(site.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    for record in site.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8").splitlines()
        kept_lines = sorted(line for line in lines if (site / next(csv.reader([line]))[0]).exists())
        record.unlink()
        _write(record, "\n".join([*kept_lines, ""]))


def _mend(site: Path, release: str) -> None:
    """Three repairs, each of something seen to fail with vllm-cpu 0.32.0."""
    # Every command asks for the version of a distribution called vllm; the package's own name is vllm-cpu.
    alias = site / f"vllm-{release}+cpu.dist-info"
    alias.mkdir()
    _write(alias / "METADATA", f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}+cpu\n")
    # A worker whose first prompt is short dies of SIGILL where the processor has AMX: nothing has asked the
    # kernel for its tiles yet. arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA); an error where there is no AMX,
    # which is well.
    _write(site / "zz_amx.pth", "import ctypes; ctypes.CDLL(None).syscall(158, 0x1023, 18)\n")
    # torchvision's compiled part is for CUDA and does not load beside this torch; its Python part then still
    # wants the two operators to be known by their signatures.
    with (site / "torchvision" / "extension.py").open("a", encoding="utf-8") as extension:
        extension.write("""

if not _has_ops():
    _signatures = torch.library.Library("torchvision", "DEF")
    _signatures.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _signatures.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
""")


def _plug_in(site: Path) -> None:
    """Add int4_product.py, which vLLM loads in each of its processes as it does any plug-in."""
    [source] = sources("int4_product.py")
    _write(site / f"{PLUG_IN}.py", source.read_text(encoding="utf-8"))
    description = site / f"{PLUG_IN}-1.dist-info"
    description.mkdir()
    _write(description / "METADATA", f"Metadata-Version: 2.1\nName: {PLUG_IN}\nVersion: 1\n")
    _write(description / "entry_points.txt", f"[vllm.general_plugins]\n{PLUG_IN} = {PLUG_IN}:register\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
