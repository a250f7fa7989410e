"""`python -m pumice`."""

from pumice.cli.main import main

main()
