"""The parts of tools/check_packages.py: the list, the system's package database, what the build and what the scripts use."""
