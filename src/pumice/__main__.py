"""`python -m pumice`."""

from pumice.cli.program import main

main()
