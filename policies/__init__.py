"""Decision rules and networks: torch modules with named, typed inputs and outputs, every one exportable.

The names below load on first use, so that importing this package does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import __version__ as __version__

if TYPE_CHECKING:
    from .base import Policy as Policy
    from .base import Port as Port
    from .causal_gate import CausalGate as CausalGate
    from .rules import BestConstant as BestConstant
    from .rules import KeepAll as KeepAll
    from .rules import KeepNone as KeepNone
    from .rules import RandomGate as RandomGate
    from .rules import TopOne as TopOne

_MODULES = {
    "Policy": "base",
    "Port": "base",
    "CausalGate": "causal_gate",
    "BestConstant": "rules",
    "KeepAll": "rules",
    "KeepNone": "rules",
    "RandomGate": "rules",
    "TopOne": "rules",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it offers {', '.join(sorted(_MODULES))}")
