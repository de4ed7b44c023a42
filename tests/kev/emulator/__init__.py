"""Tests of the emulator; a package, so that its modules share what conftest has."""
