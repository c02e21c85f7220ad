"""The bytes that are computed for a machine are the bytes that it has; its pool is resident once it is made."""

import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from puma.config.engine import EngineConfig
from puma.models.architectures import llama
from puma.models.formats.gguf import read_gguf
from puma.models.model import load_model
from puma.models.outline import read_shape
from puma.models.sizes import machine_sizes
from puma.models.tensors import Tensors
from puma.models.weights import allocate, commit
from tests.tiny import Shape, Tiny

SHAPES = (Shape(), Shape(layers=3, heads=6, kv_heads=3, feed_forward=160, tied=False))


def resident():
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def taken(array):
    """Bytes of the whole allocation that an array is a part of."""
    return taken(array.base) if isinstance(array.base, np.ndarray) else array.nbytes


@pytest.mark.parametrize("code", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"threads": 3, "max_batch_size": 5, "max_step_tokens": 40}])
def test_sizes_are_those_of_the_arrays(tmp_path, shape, code, options):
    tiny = Tiny(tmp_path / "tiny.gguf", code, shape)
    options = {"memory_pool_bytes": 3 << 20, "threads": 2, "context_length": 300} | options
    model = load_model(tiny.path, EngineConfig(**options))
    with read_gguf(tiny.path) as file:
        hyperparameters = read_shape(file, shape.vocabulary)
        buffers = llama.build(hyperparameters, Tensors.of(file)).buffers
    sizes = machine_sizes(buffers, hyperparameters, model.plan, model.limits)
    arrays = [*model._machine._kept, *model._machine._rope]
    assert sum(taken(array) for array in arrays) == sizes.kv_bytes + sizes.scratch_bytes
    # Nothing but the lines to spare comes on top of the pool.
    assert 0 < sizes.kv_bytes - model.plan.pool_bytes <= 2 * 2 * 64
    model.close()


COMMITTED = """
from tests.models.test_sizes import resident
from puma.models.weights import allocate, commit

size = 64 << 20
before = resident()
array = allocate(size)
assert resident() - before < size // 8
commit(array)
assert resident() - before > size - size // 8
assert not array.any()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_committed_pages_are_resident():
    # In a process that has no free memory of its own yet.
    subprocess.run([sys.executable, "-c", COMMITTED], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097])
def test_any_size_can_be_committed(size):
    array = allocate(size)
    commit(array)
    assert array.size == size


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_pool_is_resident_when_the_model_is_loaded(tmp_path):
    tiny = Tiny(tmp_path / "tiny.gguf")
    load_model(tiny.path, EngineConfig(threads=1, memory_pool_bytes=1 << 20)).close()
    before, pool = resident(), 256 << 20
    model = load_model(tiny.path, EngineConfig(threads=1, memory_pool_bytes=pool))
    assert resident() - before > pool * 0.95
    model.close()


REFUSED = """
import resource, sys
from pathlib import Path
from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.models.model import load_model

path = Path(sys.argv[1])
load_model(path, EngineConfig(threads=1, memory_pool_bytes=1 << 20)).close()
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, resource.RLIM_INFINITY))
try:
    load_model(path, EngineConfig(threads=1, memory_pool_bytes=(3 << 30) - (64 << 20)))
except ConfigError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_memory_that_is_refused_is_told_of_as_a_wrong_pool(tmp_path):
    tiny = Tiny(tmp_path / "tiny.gguf")
    line = [sys.executable, "-c", REFUSED, str(tiny.path)]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ.copy())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("memory_pool_bytes = 3154116608: the system gives this process less memory"), done
