"""Every role's molecule scenario, and that its verify is able to fail."""

import pytest

from boxwright.cli import molecule

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("role", molecule.roles_with_scenarios())
def test_role(role):
    """Syntax, check mode, converge, idempotence, verify; then the result is broken and verify must see it."""
    try:
        assert molecule.run(role, "destroy") == 0
        # The host is kept after the sequence of tests/molecule/base.yml, to be broken.
        assert molecule.run(role, "test", "--destroy", "never") == 0
        assert molecule.play(role, "break.yml") == 0
        assert molecule.run(role, "verify") != 0, f"{role}: verify passes on a host broken on purpose"
    finally:
        molecule.run(role, "destroy")
