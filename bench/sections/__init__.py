"""The sections of the benchmark; see run.py."""
