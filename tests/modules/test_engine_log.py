"""The stage that the start of an engine has reached, out of its log."""

from ansible.module_utils.engine_log import Stages

START = """\
(APIServer pid=1) INFO 03-18 13:40:01 [api_server.py:1839] vLLM API server version 0.32.0
(APIServer pid=1) INFO 03-18 13:40:02 [utils.py:233] non-default args: {'model_tag': '/model', 'compilation_config': 'torch.compile'}
(EngineCore_DP0 pid=191) INFO 03-18 13:40:30 [core.py:93] Initializing a V1 LLM engine (v0.32.0) with config: model='/model'
(EngineCore_DP0 pid=191) INFO 03-18 13:40:35 [gpu_model_runner.py:3562] Starting to load model /model...
Loading safetensors checkpoint shards:   0% Completed | 0/4 [00:00<?, ?it/s]\rLoading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  1.9it/s]
(EngineCore_DP0 pid=191) INFO 03-18 13:41:09 [backends.py:643] Using cache directory: /cache/vllm/torch_compile_cache/4aae/rank_0_0/backbone for vLLM's torch.compile
(EngineCore_DP0 pid=191) INFO 03-18 13:41:09 [backends.py:703] Dynamo bytecode transform time: 5.73 s
(EngineCore_DP0 pid=191) Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  50%|█████     | 2/4
(EngineCore_DP0 pid=191) INFO 03-18 13:42:09 [core.py:259] init engine (profile, create kv cache, warmup model) took 12.50 seconds
(APIServer pid=1) INFO:     Application startup complete.
""".strip("\n").split("\n")  # noqa: E501


def test_stages_of_a_start():
    stages, seen = Stages(), []
    for line in START:
        stages.feed([line])
        seen.append(stages.stage)
    assert seen == ["starting"] * 2 + ["loading"] * 3 + ["compiling"] * 2 + [
        "capturing",
        "warming",
        "listening",
    ]
    assert stages.shards == (2, 4)


def test_no_way_back():
    stages = Stages()
    stages.feed(START)
    stages.feed(START)
    assert stages.stage == "listening"
