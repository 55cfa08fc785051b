"""FlagScale's package from PyPI, which holds Megatron-LM as well, so far that their own
parsers of arguments run without a GPU: megatron/training/arguments.py (with FlagScale's
additions), the parser of pipeline layouts, and FlagScale's checks of heterogeneous runs and
its mapping of ranks. These files run as they are in the package. Whatever else they import
of the two projects (kernels, models, checkpoints) is a stand-in without behaviour.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import zipfile

VERSION = "0.8.0"
_PREFIX = "flag_scale/"
_ROOTS = {"megatron": "third_party/Megatron-LM", "flagscale": ""}
_REAL = {
    "megatron.training.arguments",
    "megatron.core.transformer.pipeline_parallel_layer_layout",
    "megatron.core.transformer.enums",
    "flagscale.train.arguments",
    "flagscale.train.hetero.parallel_context",
}


def _cache():
    return os.environ.get("HETEROTRAIN_CACHE") or os.path.expanduser("~/.cache/heterotrain")


def _pip():
    """A pip, if need be in an environment of its own."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "pip"]
    home = os.path.join(_cache(), "pip")
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    return [os.path.join(home, "bin", "python3"), "-m", "pip"]


def folder():
    """Where the package is unpacked; fetched once, without what it depends on."""
    home = os.path.join(_cache(), f"flag_scale-{VERSION}")
    if os.path.isdir(home):
        return home
    wheels = home + ".wheel"
    subprocess.run([*_pip(), "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", wheels,
                    f"flag_scale=={VERSION}"], check=True)
    with zipfile.ZipFile(os.path.join(wheels, os.listdir(wheels)[0])) as wheel:
        files = {_PREFIX + _file(name) for name in _REAL}
        wheel.extractall(home + ".new", files)
    os.replace(home + ".new", home)
    return home


def _file(module):
    return os.path.join(_ROOTS[module.split(".")[0]], module.replace(".", "/") + ".py")


class _Anything(type):
    def __iter__(cls):
        return iter(())

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn


class _StandIn(metaclass=_Anything):
    """Something that can be imported, called, inherited from and listed, and does nothing."""

    def __init__(self, *_arguments, **_named):
        pass


class _StandInLoader(importlib.abc.Loader):
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__getattr__ = lambda name: _stand_in_member(module.__name__, name)


def _stand_in_member(module, name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _StandIn


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in _ROOTS:
            return None
        if name in _REAL:
            return importlib.util.spec_from_file_location(name, os.path.join(folder(), _PREFIX, _file(name)))
        return importlib.machinery.ModuleSpec(name, _StandInLoader(), is_package=True)


def load():
    """Makes the packages importable."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
