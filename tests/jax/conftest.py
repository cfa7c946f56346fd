"""The CUDA plugins of JAX, and the interpreter with JAX. JAX=0 skips these tests, and says so."""
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def plugin_of(optional):
    """plugin_of("0.11.2") -> the library of that version. VRAMSCOPE_JAX_PLUGINS names another folder with versions."""
    folder = Path(os.environ.get("VRAMSCOPE_JAX_PLUGINS", ROOT / ".cache/plugins"))
    return lambda version: optional("JAX", folder / version / "xla_cuda_plugin.so", f"JAX's CUDA plugin {version}")


@pytest.fixture(scope="session")
def jax_python(optional):
    """The interpreter with JAX. VRAMSCOPE_PYTHON_JAX names another one."""
    return optional("JAX", Path(os.environ.get("VRAMSCOPE_PYTHON_JAX", ROOT / ".venv-jax/bin/python")), "Python with JAX")


@pytest.fixture(scope="session")
def plugin_environment(jax_python):
    """Variables with which JAX computes on the CPU through a plugin behind the C interface that CUDA plugins have."""
    plugin, = jax_python.parent.parent.glob("lib/python*/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so")
    return {**os.environ, "PJRT_NAMES_AND_LIBRARY_PATHS": f"xla_cpu:{plugin}", "JAX_PLATFORMS": "xla_cpu"}
