"""Numba kernels: arrays and addresses in, arrays out. Knows no request and no model name."""
