"""``python -m shiftbed`` is the ``shiftbed`` command."""

from shiftbed.cli import main

main()
