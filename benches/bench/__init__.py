"""The rooms of the benchmark driver: benches/run.py is the door."""
