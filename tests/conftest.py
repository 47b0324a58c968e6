"""What holds for every test: examples are the same at every run, and each worker keeps to one core."""

import os

import pytest
import torch
from hypothesis import settings

from balent import kernels
from balent.acquisition.engines.cluster import PRIVATE

os.environ.update(PRIVATE)  # Ray listens on this machine only, and reports nothing

settings.register_profile("balent", deadline=None, derandomize=True, database=None, max_examples=25)
settings.load_profile("balent")
torch.set_num_threads(1)

KERNELS = ["torch", *kernels.levels()]


@pytest.fixture
def use_kernel(monkeypatch):
    """A function that turns to the kernel of that name, until the test ends."""

    def use(name):
        monkeypatch.setenv("BALENT_KERNEL", name)
        kernels.active.cache_clear()

    yield use
    kernels.active.cache_clear()


@pytest.fixture(params=KERNELS)
def kernel(request, use_kernel):
    """Each kernel of this machine in turn, plain torch among them."""
    use_kernel(request.param)
    return request.param


@pytest.fixture(params=kernels.levels())
def level(request, use_kernel):
    """Each instruction set of the compiled kernel in turn."""
    use_kernel(request.param)
    return request.param
