"""CausalMemory: a gate decides which retrieved candidates a reader may see."""

from .config import CausalMemoryConfig as CausalMemoryConfig, Threshold as Threshold
