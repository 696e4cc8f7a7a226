"""``python -m datadefense`` is the command line."""

from datadefense.cli.app import main

main()
