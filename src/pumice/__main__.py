"""`python -m pumice`."""

from pumice.cli.entry_point import main

main()
