"""The Python side of recording, seen from inside: what the hooks put around functions of the frameworks is taken away and put back.

Import it before TensorFlow, under `vramscope run`.
"""
from vramscope._hooks import wrapping

_MARK = "__vramscope_original__"
_wrapped = []           # owner, name, the function around it, the function itself
_wrap = wrapping.wrap


def _noted(owner, name, before=None, after=None):
    done = _wrap(owner, name, before, after)
    if done:
        around = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
        _wrapped.append((owner, name, around, getattr(around, _MARK)))
    return done


wrapping.wrap = _noted


def set_hooks(on):
    for owner, name, around, original in _wrapped:
        setattr(owner, name, around if on else original)
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import backprop
    pywrap_tfe.TFE_Py_RegisterGradientFunction(backprop._gradient_function)


def count():
    return len(_wrapped)
