"""Numba kernels: arrays and addresses in, arrays out. Knows no request and no model name.

Importing this package decides where compiled code is cached, which has to happen before anything is compiled.
"""

from puma.kernels import cache

cache.configure()
