"""Decision rules and networks: torch modules with named, typed inputs and outputs, every one exportable.

The names below load on first use, so that importing this package does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import __version__ as __version__

if TYPE_CHECKING:
    from .base import Policy, Port
    from .causal_gate import CausalGate
    from .rules import BestConstant, KeepAll, KeepNone, RandomGate, TopOne

__all__ = ["BestConstant", "CausalGate", "KeepAll", "KeepNone", "Policy", "Port", "RandomGate", "TopOne"]

_MODULES = {"CausalGate": "causal_gate", "Policy": "base", "Port": "base"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'rules')}"), name)
