"""The catalog's data: whole, sourced, recognised."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from boxwright import catalog
from boxwright.catalog import compact, reading
from boxwright.catalog.images import split

CATALOG = catalog.load()
DATA = Path(catalog.__file__).parent / "data"
#: Parameters in units of 10^9 that the models' makers publish (without vision and drafts).
PUBLISHED = {
    "qwen3-8b": 8.19,
    "qwen3-14b": 14.77,
    "qwen3-32b": 32.76,
    "qwen3-30b-a3b": 30.53,
    "llama-3.1-8b-instruct": 8.03,
    "smollm2-135m-instruct": 0.1345,
}


def test_it_loads_in_no_time():
    catalog.load.cache_clear()
    started = time.process_time()
    catalog.load()
    assert time.process_time() - started < 3


def test_every_data_file_names_its_sources():
    for file in DATA.rglob("*.yml"):
        assert "ource" in file.read_text(encoding="utf-8")[:1500], file


@pytest.mark.parametrize("name", PUBLISHED)
def test_geometry_gives_the_published_number_of_parameters(name):
    assert CATALOG.models[name].architecture.parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=0.001)


def test_the_hybrid_has_27_78e9_parameters_with_vision_and_draft_layer():
    entry = CATALOG.models["qwen3.8-27b"]
    total = entry.architecture.parameters + (entry.vision_bytes + entry.mtp_bytes) / 2
    assert total / 1e9 == pytest.approx(27.78, rel=0.001)
    assert entry.weights.bytes == pytest.approx(total * 2, rel=0.002)


@pytest.mark.parametrize(
    ("name", "pci", "memory", "kind"),
    [
        ("NVIDIA GeForce RTX 5090", "10de:2b85", 32607, "rtx5090"),
        ("NVIDIA GeForce RTX 5090 D", "10de:2b87", 32607, "rtx5090d"),
        ("NVIDIA GeForce RTX 5090 D V2", "10de:ffff", 24463, "rtx5090dv2"),
        ("NVIDIA GeForce RTX 5090", "10de:2b85", 24463, None),
        ("NVIDIA GeForce RTX 4090", "10de:2684", 49140, None),
        ("NVIDIA L40S", "10de:26b9", 46068, "l40s"),
        ("NVIDIA H100 80GB HBM3", "10de:2330", 81559, "h100"),
        ("NVIDIA A100-SXM4-40GB", "10de:20b0", 40960, "a100-40gb"),
        ("NVIDIA RTX 6000 Ada Generation", "10de:26b1", 49140, "rtx6000ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "10de:2bb1", 97887, "rtxpro6000"),
        (None, "10de:2204", None, "rtx3090"),
        (None, "10DE:2684", None, "rtx4090"),
        (None, "10de:ffff", None, None),
        ("Something else", "10de:2204", 24576, None),
    ],
)
def test_cards_are_recognised_by_name_and_memory_or_by_pci_id(name, pci, memory, kind):
    found = CATALOG.recognise(name, pci, memory)
    assert (found.id if found else None) == kind


def test_names_and_pci_ids_are_of_one_kind_each():
    for field in ("names", "pci"):
        values = [value for kind in CATALOG.cards for value in getattr(kind, field)]
        assert len(values) == len(set(values)), field


class TestImages:
    @pytest.mark.parametrize(
        ("reference", "release", "cuda"),
        [
            ("vllm/vllm-openai:v0.9.2", "0.9.2", "12.8"),
            ("vllm/vllm-openai:v0.11.0", "0.11.0", "12.8"),
            ("vllm/vllm-openai:v0.11.2", "0.11.2", "12.9"),
            ("vllm/vllm-openai:v0.19.1", "0.19.1", "12.9"),
            ("vllm/vllm-openai:v0.19.1-cu130", "0.19.1", "13.0"),
            ("vllm/vllm-openai:v0.20.2", "0.20.2", "13.0"),
            ("vllm/vllm-openai:v0.29.0-cu129", "0.29.0", "12.9"),
            ("vllm/vllm-openai:v0.29.0-cu129-ubuntu2404", "0.29.0", "12.9"),
            ("vllm/vllm-openai:v0.32.0-x86_64", "0.32.0", "13.0"),
            ("mirror.example:5000/proxy/vllm/vllm-openai:v0.32.0@sha256:" + "a" * 64, "0.32.0", "13.0"),
            ("vllm/vllm-openai:latest", None, None),
            ("other/image:v0.32.0", None, None),
        ],
    )
    def test_a_tag_tells_release_and_cuda(self, reference, release, cuda):
        found = CATALOG.images.identify(reference)
        assert (found.release, found.cuda, found.problem) == (release, cuda, None)

    @pytest.mark.parametrize("tag", ["v0.33.0-cu129", "v0.19.1-cu129", "v0.29.0-cu130", "v0.29.0-cu118"])
    def test_a_tag_that_was_never_published_says_so(self, tag):
        assert CATALOG.images.identify(f"vllm/vllm-openai:{tag}").problem

    @pytest.mark.parametrize(
        ("reference", "major", "other"),
        [
            ("vllm/vllm-openai:v0.29.0", 12, "vllm/vllm-openai:v0.29.0-cu129"),
            ("vllm/vllm-openai:v0.29.0-cu129", 13, "vllm/vllm-openai:v0.29.0"),
            ("r.example/vllm/vllm-openai:v0.16.0", 13, "r.example/vllm/vllm-openai:v0.16.0-cu130"),
            ("vllm/vllm-openai:v0.33.0", 12, None),
            ("vllm/vllm-openai:latest", 12, None),
        ],
    )
    def test_the_same_release_for_another_cuda(self, reference, major, other):
        assert CATALOG.images.variant(reference, major) == other

    @pytest.mark.parametrize(
        ("reference", "user"),
        [
            ("vllm/vllm-openai:v0.21.0", None),
            ("vllm/vllm-openai:v0.29.0-cu129", "2000:0"),
            ("r.example:5000/vllm/vllm-openai:v0.32.0", "2000:0"),
            ("vllm/vllm-openai:nightly", None),
            ("lmsysorg/sglang:v0.5.23", None),
        ],
    )
    def test_the_account_that_an_image_has_beside_root(self, reference, user):
        assert CATALOG.images.identify(reference).user == user

    def test_drivers_for_cuda_versions(self):
        assert CATALOG.images.driver_branch("12.8") == 525
        assert CATALOG.images.driver_branch("13.0") == 580
        assert CATALOG.images.driver_branch("11.8") is None

    @pytest.mark.parametrize(
        ("reference", "parts"),
        [
            ("name", ("name", None, None)),
            ("org/name:tag", ("org/name", "tag", None)),
            ("localhost/name", ("name", None, None)),
            ("host:5000/org/name", ("org/name", None, None)),
            ("org/name@sha256:ab", ("org/name", None, "sha256:ab")),
        ],
    )
    def test_references_are_taken_apart(self, reference, parts):
        assert split(reference) == parts

    @pytest.mark.parametrize("tag", ["latest", "nightly", "cu129-nightly", "nightly-0a1b2c"])
    def test_tags_that_move(self, tag):
        assert CATALOG.images.identify(f"vllm/vllm-openai:{tag}").moving
        assert CATALOG.images.identify("vllm/vllm-openai").moving
        assert not CATALOG.images.identify("vllm/vllm-openai@sha256:" + "0" * 64).moving


class TestOptions:
    table = CATALOG.options["vllm"]

    def test_every_release_from_0_9_on(self):
        assert len(self.table.releases) == 27
        assert self.table.releases[0] == "0.9.2"
        assert self.table.releases[-1] == "0.33.0"

    @pytest.mark.parametrize(
        ("release", "nearest"),
        [
            ("0.29.0", ("0.29.0", True)),
            ("0.28.1", ("0.28.0", False)),
            ("0.40.0", ("0.33.0", False)),
            ("0.1.0", ("0.9.2", False)),
            (None, ("0.33.0", False)),
        ],
    )
    def test_the_nearest_table_stands_for_a_release_that_was_not_read(self, release, nearest):
        assert self.table.nearest(release) == nearest

    @pytest.mark.parametrize(
        ("name", "first", "last"),
        [
            ("max-num-seqs", "0.9.2", "0.33.0"),
            ("swap-space", "0.9.2", "0.17.1"),
            ("attention-backend", "0.13.0", "0.33.0"),
            ("kv-cache-memory-bytes", "0.10.2", "0.33.0"),
            ("language-model-only", "0.17.1", "0.33.0"),
            ("rope-scaling", "0.9.2", "0.11.0"),
            ("max-num-queued-reqs", "0.29.0", "0.33.0"),
            ("calculate-kv-scales", "0.9.2", "0.27.1"),
        ],
    )
    def test_since_when_and_until_when(self, name, first, last):
        have = self.table.exists_in(name)
        assert (have[0], have[-1]) == (first, last)

    def test_aliases_and_negations(self):
        assert self.table.canonical("tp", "0.32.0") == "tensor-parallel-size"
        assert self.table.canonical("no-enable-prefix-caching", "0.32.0") == "enable-prefix-caching"
        option = self.table.option("enable-prefix-caching", "0.33.0")
        assert option
        assert (option.is_switch, option.negation) == (True, "no-enable-prefix-caching")

    def test_choices_differ_between_releases(self):
        early, late = (self.table.option("kv-cache-dtype", release) for release in ("0.9.2", "0.20.2"))
        assert early
        assert late
        assert "nvfp4" not in (early.choices or ())
        assert "nvfp4" in (late.choices or ())

    def test_no_release_has_the_inventions(self):
        for name in ("enable-mtp", "speculative-model", "num-speculative-tokens", "decode-kernel"):
            assert self.table.exists_in(name) == ()

    def test_names_of_other_parts(self):
        assert self.table.known("env_vars", "VLLM_ATTENTION_BACKEND")[-1] == "0.14.1"
        assert "qwen3_xml" in self.table.part("tool_parsers", "0.29.0")
        assert self.table.known("speculative_methods", "dflash")[0] == "0.20.2"

    def test_the_table_is_small(self):
        assert (DATA / "vllm.json").stat().st_size < 110_000


def test_compacting_keeps_what_the_manifest_says():
    manifest = {
        "about": "options",
        "versions": ["1.0", "2.0"],
        "flags": {
            "<positional> model": {"history": []},
            "--a": {
                "versions": [["1.0", "1.0"]],
                "history": [
                    {"since": "1.0", "type": "int", "default": None, "nargs": 1},
                    {"since": "2.0", "absent": True},
                ],
            },
        },
        **{part: {"x": [["1.0", "2.0"]]} for part in compact.NAMES},
    }
    table = compact.compact(manifest)
    assert table["options"] == {"a": [{"since": "1.0", "type": "int"}, {"since": "2.0", "absent": True}]}
    import json

    assert json.loads("\n".join(compact.lines(table))) == table


def test_versions_compare():
    assert reading.version("v0.29.0") > reading.version("0.9.2")
    assert reading.version("latest") == ()
