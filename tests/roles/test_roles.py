"""Every role's molecule scenario, and that its verify is able to fail."""

import pytest

from boxwright.cli import molecule

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("role", molecule.roles_with_scenarios())
def test_role(role):
    """Syntax, check mode, converge, idempotence, verify; then the result is broken and verify must see it."""
    try:
        before = [step for step in molecule.STEPS if step != "destroy"]
        assert molecule.run(role, "destroy", *before) == 0
        assert molecule.play(role, "break.yml") == 0
        assert molecule.run(role, "verify") != 0, (
            f"{role}: verify passes on a host that was broken on purpose"
        )
    finally:
        molecule.run(role, "destroy")
