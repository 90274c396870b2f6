"""`python -m boxwright.cli` is `invoke` in this environment."""

from boxwright.cli.program import main

main()
