"""Learners of policies, from PPO to the exact gradient, and what they share; each module is imported by its name."""

from .. import __version__ as __version__
