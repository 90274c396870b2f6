"""`python -m boxwright.cli` is `invoke` in this environment."""

import sys

try:
    from boxwright.cli.program import main

    main()
except KeyboardInterrupt:
    # While Python still loads: later ones are told by whoever works.
    sys.exit(130)
