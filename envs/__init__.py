"""The backends as Gymnasium environments. Importing this package registers them, and loads Gymnasium only."""

from .. import __version__ as __version__  # first, so that a bare `import envs` fails before it registers anything

# isort: split
from gymnasium.envs.registration import register

register(
    id="recallgym/CausalMemory-v0",
    entry_point="recallgym.envs.causal_memory.single:CausalMemoryEnv",
    vector_entry_point="recallgym.envs.causal_memory.vector:CausalMemoryVectorEnv",
)
