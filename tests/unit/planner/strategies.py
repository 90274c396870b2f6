"""Boxes and facts as odd as the types allow, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from boxwright import catalog
from boxwright.facts.model import (
    Card,
    Driver,
    File,
    HostFacts,
    Image,
    Link,
    ModelFiles,
    OperatingSystem,
    Power,
    Release,
    TensorGroup,
)
from boxwright.facts.room import Filesystem, Listener, Memory
from boxwright.spec.box import (
    Box,
    Cards,
    Deployment,
    Hub,
    ModelRef,
    Quantize,
    Secret,
    Speculative,
    Tuning,
)
from boxwright.spec.box import (
    Driver as DeclaredDriver,
)

CATALOG = catalog.load()
TABLE = CATALOG.options["vllm"]
HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "; rm -rf /",
            "$(reboot)",
            "`id`",
            "--api-key=stolen",
            "-tp 8",
            "--model",
            "\x00",
            "a\nb",
            "{{ lookup('pipe','id') }}",
            "'; DROP TABLE",
            "%s%n",
            "../../etc/passwd",
            "\u202e",
            "null",
            "true",
            "1e999",
            "NaN",
            "",
            " ",
            "é" * 300,
            "\ud800",
            '"',
            "\\",
            "--",
            "-1",
            '{"a": 1}',
            "[1,",
            "auto",
        ]
    ),
)
INTEGERS = st.one_of(st.integers(-2, 70), st.sampled_from([0, -1, 1 << 31, 1 << 63, 10**30]))
POSITIVE = st.one_of(st.integers(1, 300_000), st.sampled_from([1 << 31, 10**15]))
VALUES = st.recursive(
    st.one_of(HOSTILE, INTEGERS, st.booleans(), st.none(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.dictionaries(HOSTILE, inner, max_size=3)
    ),
    max_leaves=6,
)
OPTIONS = st.one_of(
    st.sampled_from(TABLE.names()),
    HOSTILE,
    st.sampled_from(["enable-mtp", "swap_space", "tp", "speculative-config.method", "quantization"]),
)
COMMITS = st.sampled_from(["a" * 40, "main", "v1"])
MODELS = st.one_of(
    st.builds(ModelRef, name=st.one_of(st.sampled_from(sorted(CATALOG.models)), HOSTILE)),
    st.builds(ModelRef, repo=st.one_of(st.just("org/name"), HOSTILE), revision=st.none() | COMMITS | HOSTILE),
    st.builds(ModelRef, path=st.one_of(st.just("/srv/model"), HOSTILE)),
)
IMAGES = st.one_of(
    st.sampled_from(TABLE.releases).map(lambda release: f"vllm/vllm-openai:v{release}"),
    st.sampled_from(
        [
            "vllm/vllm-openai:latest",
            "vllm/vllm-openai",
            "reg:5000/vllm/vllm-openai:v0.33.0-cu129",
            "lmsysorg/sglang:v0.5.23",
            "vllm/vllm-openai@sha256:" + "0" * 64,
            "vllm/vllm-openai:v0.1.0",
            "vllm/vllm-openai:v0.99.0-cu999",
            "mine:1",
        ]
    ),
    HOSTILE,
)
KV = st.one_of(
    st.sampled_from(
        ["auto", "bf16", "fp16", "fp8", "fp8_e4m3", "nvfp4", "turboquant_k8v4", "int4_per_token_head"]
    ),
    HOSTILE,
)
DEPLOYMENTS = st.builds(
    Deployment,
    name=st.one_of(st.sampled_from(["q", "s"]), HOSTILE),
    model=MODELS,
    image=IMAGES,
    engine=st.sampled_from(["vllm", "sglang"]),
    gpus=st.none() | st.lists(st.integers(-1, 9), max_size=9).map(tuple),
    context=st.one_of(st.just("auto"), POSITIVE, INTEGERS),
    concurrency=INTEGERS,
    kv_cache=KV,
    speculative=st.builds(
        Speculative,
        method=st.sampled_from(["none", "mtp", "dflash2", "ngram"]),
        tokens=st.none() | INTEGERS,
        model=st.none() | MODELS | st.just(ModelRef(name="qwen3.8-27b-dflash2")),
    ),
    prefix_caching=st.none() | st.booleans(),
    tensor_parallel=st.none() | INTEGERS,
    pipeline_parallel=INTEGERS,
    gpu_memory_utilization=st.none() | st.floats(0, 1) | st.floats(),
    kv_cache_memory_bytes=st.none() | INTEGERS | st.integers(1, 1 << 40),
    max_batched_tokens=st.none() | INTEGERS,
    port=st.integers(0, 70_000),
    bind=st.one_of(st.sampled_from(["127.0.0.1", "0.0.0.0", "::", "192.0.2.7"]), HOSTILE),
    api_key=st.none() | HOSTILE.map(Secret),
    quantize=st.none() | st.builds(Quantize, group_size=st.sampled_from([32, 64, 128, 0, -1])),
    extra_args=st.dictionaries(OPTIONS, VALUES, max_size=4),
    env=st.dictionaries(
        st.one_of(HOSTILE, st.sampled_from(["VLLM_ATTENTION_BACKEND", "VLLM_USE_V1", "HF_TOKEN"])),
        HOSTILE,
        max_size=3,
    ),
    gate_prompt=st.none() | HOSTILE,
    gate_expect=st.none() | HOSTILE,
)
KINDS = st.one_of(st.sampled_from([kind.id for kind in CATALOG.cards]), HOSTILE)
BOXES = st.builds(
    Box,
    host=HOSTILE,
    gpus=st.lists(
        st.builds(Cards, model=KINDS, count=st.one_of(st.integers(0, 9), INTEGERS)), max_size=2
    ).map(tuple),
    deployments=st.lists(DEPLOYMENTS, max_size=3).map(tuple),
    hub=st.builds(Hub, endpoint=HOSTILE, token=st.none() | HOSTILE.map(Secret)),
    driver=st.builds(
        DeclaredDriver,
        branch=st.one_of(st.sampled_from(["570", "580", "535"]), HOSTILE),
        version=st.none() | HOSTILE,
        manage=st.booleans(),
    ),
    tuning=st.builds(
        Tuning,
        min_clock_mhz=INTEGERS,
        max_clock_mhz=st.none() | INTEGERS,
        memory_clock_mhz=st.none() | INTEGERS,
        power_limit_w=st.none() | INTEGERS,
        cards=st.dictionaries(
            st.sampled_from(["0", "1", "GPU-0"]) | HOSTILE,
            st.dictionaries(
                st.sampled_from(["min_clock_mhz", "max_clock_mhz", "power_limit_w"]), st.none() | INTEGERS
            ),
            max_size=2,
        ),
    ),
    settings=st.dictionaries(
        st.sampled_from(
            [
                "nvidia_driver_flavor",
                "model_weights_allow_pickle",
                "model_weights_allow_code",
            ]
        ),
        VALUES,
    ),
)
CONFIGS = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(
            [
                "num_hidden_layers",
                "hidden_size",
                "num_attention_heads",
                "vocab_size",
                "head_dim",
                "num_key_value_heads",
                "intermediate_size",
                "max_position_embeddings",
                "layer_types",
                "linear_num_value_heads",
                "linear_num_key_heads",
                "linear_key_head_dim",
                "linear_value_head_dim",
                "linear_conv_kernel_dim",
                "full_attention_interval",
                "num_experts",
                "num_experts_per_tok",
                "sliding_window",
                "quantization_config",
                "text_config",
                "architectures",
                "mtp_num_hidden_layers",
            ]
        ),
        st.one_of(st.integers(1, 64), VALUES),
        min_size=5,
    ),
)
ERRORS = st.none() | st.sampled_from(
    ["dns", "unreachable", "tls", "unauthorized", "forbidden", "not-found", "invalid", "new"]
)
MODEL_FILES = st.builds(
    ModelFiles,
    request=st.sampled_from(["org/name", "org/name@main", "Qwen/Qwen3.8-27B"]),
    origin=st.sampled_from(["hub", "store", "path"]),
    repo=st.sampled_from(["org/name", "Qwen/Qwen3.8-27B", "Qwen/Qwen3-8B-AWQ"]),
    revision=st.none() | COMMITS,
    directory=st.none() | st.just("/srv/model"),
    files=st.lists(
        st.builds(File, path=st.sampled_from(["model.safetensors", "config.json"]), size=INTEGERS)
    ).map(tuple),
    config=CONFIGS,
    tensors=st.none()
    | st.lists(
        st.builds(
            TensorGroup, name=HOSTILE, count=st.just(1), bytes=st.integers(0, 1 << 40), dtype=st.just("BF16")
        ),
        max_size=3,
    ).map(tuple),
    complete=st.booleans(),
    error=ERRORS,
    detail=HOSTILE,
)
CARDS = st.builds(
    Card,
    index=st.integers(0, 9),
    pci_bus=st.just("0000:01:00.0"),
    pci_id=st.sampled_from(["10de:2b85", "10de:2204", "10de:ffff", ""]),
    name=st.none() | st.sampled_from(["NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 3090"]) | HOSTILE,
    memory_total_mib=st.none() | st.integers(0, 200_000),
    memory_reserved_mib=st.none() | st.integers(0, 1000),
    memory_used_mib=st.none() | st.integers(0, 200_000),
    compute_capability=st.none() | st.sampled_from(["8.6", "12.0", "x", ""]),
    power=st.builds(
        Power, st.none(), st.none(), st.none() | st.floats(0, 1000), st.none() | st.floats(0, 1000)
    ),
    link=st.builds(Link, width=st.none() | st.integers(0, 16)),
    topology=st.lists(st.sampled_from(["X", "PHB", "NV4"]), max_size=3).map(tuple),
    mig=st.none() | st.booleans(),
    lost=st.booleans(),
)
FACTS = st.builds(
    HostFacts,
    host=HOSTILE,
    os=st.builds(
        OperatingSystem,
        st.sampled_from(["debian", "ubuntu", "arch"]),
        HOSTILE,
        HOSTILE,
        st.sampled_from(["x86_64", "aarch64"]),
        HOSTILE,
    ),
    cards=st.lists(CARDS, max_size=4, unique_by=lambda card: card.index).map(tuple),
    driver=st.builds(
        Driver,
        state=st.sampled_from(["absent", "loaded", "mismatch", "no-devices", "nouveau", "failed"]),
        loaded_version=st.none() | st.sampled_from(["570.124.06", "580.105.08"]) | HOSTILE,
        installed_version=st.none() | HOSTILE,
        secure_boot=st.none() | st.booleans(),
        signing_key=st.none() | HOSTILE,
        signing_key_state=st.none() | st.sampled_from(["enrolled", "pending", "absent"]) | HOSTILE,
        next_kernel=st.none() | HOSTILE,
        problem=st.none() | HOSTILE,
    ),
    memory=st.builds(Memory, st.integers(0, 1 << 40), st.integers(0, 1 << 40)),
    addresses=st.lists(st.sampled_from(["192.0.2.2", "fd00::2"])).map(tuple),
    filesystems=st.lists(
        st.builds(
            Filesystem,
            st.sampled_from(["/", "/var/lib/boxwright", "/var/lib/docker"]),
            st.just("/"),
            st.just("1"),
            st.just(1),
            st.integers(0, 1 << 42),
            st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    listening=st.lists(
        st.builds(
            Listener,
            st.sampled_from([22, 8000]),
            st.sampled_from(["0.0.0.0", "::", "127.0.0.1"]),
            st.none() | HOSTILE,
            st.none() | st.sampled_from(["boxwright-q", "x"]),
        ),
        max_size=3,
    ).map(tuple),
    images=st.lists(
        st.builds(
            Image,
            reference=IMAGES,
            present=st.booleans(),
            size=st.none() | st.integers(0, 1 << 40),
            env=st.dictionaries(st.sampled_from(["CUDA_VERSION"]), HOSTILE),
            error=ERRORS,
            detail=HOSTILE,
        ),
        max_size=2,
    ).map(tuple),
    models=st.lists(MODEL_FILES, max_size=3).map(tuple),
    releases=st.lists(
        st.builds(
            Release,
            st.sampled_from(["q", "gone"]),
            HOSTILE,
            st.booleans(),
            st.dictionaries(st.sampled_from(["image", "command", "env", "port"]), VALUES),
        ),
        max_size=2,
    ).map(tuple),
    tuning=st.dictionaries(st.sampled_from(["cards", "format"]), VALUES | st.dictionaries(HOSTILE, VALUES)),
    recorded=st.booleans(),
)

#: Variables of a box as a person may well write them.
DECLARATIONS = st.fixed_dictionaries(
    {
        "box_gpus": st.fixed_dictionaries(
            {"model": st.sampled_from(["rtx3090", "rtx4090", "rtx5090"]), "count": st.integers(1, 4)}
        ),
        "nvidia_driver_branch": st.sampled_from(["570", "580", "590"]),
        "box_deployments": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["a", "b", "c"]),
                    "model": st.sampled_from(sorted(CATALOG.models)) | st.just({"path": "/srv/model"}),
                    "image": st.sampled_from(TABLE.releases).map(lambda one: f"vllm/vllm-openai:v{one}"),
                },
                optional={
                    "context": st.sampled_from(["auto", 4096, 65536]),
                    "port": st.integers(1024, 65535),
                    "bind": st.sampled_from(["127.0.0.1", "0.0.0.0", "::"]),
                    "gpus": st.sampled_from([1, [0]]),
                    "kv_cache": st.sampled_from(["auto", "fp8"]),
                    "env": st.just({"NCCL_P2P_DISABLE": "1"}),
                    "extra_args": st.just({"enforce-eager": True}),
                },
            ),
            max_size=3,
            unique_by=lambda one: one["name"],
        ),
    },
    optional={
        "nvidia_driver_cuda_toolkit": st.just("12.8"),
        "gpu_tuning_max_clock_mhz": st.integers(300, 2500),
        "gpu_tuning_power_limit_w": st.integers(100, 600),
        "box_allow_from": st.sampled_from([[], ["192.0.2.7", "2001:db8::/32"]]),
        "gpu_tuning_persistence": st.booleans(),
        "gpu_tuning_memory_clock_mhz": st.integers(5000, 9000),
        "gpu_tuning_cards": st.just({"0": {"max_clock_mhz": 1500, "power_limit_w": None}}),
        "container_runtime_daemon_config": st.just({"log-opts": {"max-size": "10m"}, "dns": ["9.9.9.9"]}),
    },
)
