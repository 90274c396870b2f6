"""The lab's engine multiplies by 4-bit weights as vLLM's own operator does, on every processor."""

import json
from pathlib import Path

import pytest

from boxwright.lab.state import Lab
from boxwright.lab.store import environment, workshop

pytestmark = pytest.mark.lab

PROGRAM = Path(__file__).with_name("int4_products.py")


@pytest.mark.parametrize("release", [environment.VLLM, *environment.EARLIER])
def test_products_are_those_with_the_weights_that_a_checkpoint_stands_for(release):
    """Each kind of checkpoint goes through vLLM's own reading of it; where the processor has AVX-512, the
    operator is vLLM's own, too."""
    # The packages are shared, and their images' digests are known: nothing may be left among them.
    alone = {"HOME": "/tmp", "VLLM_NO_USAGE_STATS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    site = environment.ensure(Lab.here().cache, print, release)
    said = workshop.run(
        environment.base(print),
        ["python3", "-W", "ignore", "-c", PROGRAM.read_text(encoding="utf-8")],
        print,
        what="multiply by 4-bit weights",
        binds={environment.SITE: site},
        environment={**environment.SETTINGS, **alone},
    )
    found = json.loads(said.splitlines()[-1])
    assert set(found) == {"torch.bfloat16", "torch.float16"}
    for numbers, kinds in found.items():
        assert {"awq", "compressed-tensors"} <= set(kinds)
        assert all(distance < 1 for distance in kinds.values()), (numbers, kinds)
