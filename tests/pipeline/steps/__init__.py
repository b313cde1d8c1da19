"""Tests of the step types, each run as the engine runs it, against real servers on loopback."""
