"""RecallGym: retrieval, memory and generation of LLM systems as Gymnasium environments.

``import recallgym`` is light on purpose: it brings the version and nothing else. The environments
register with ``import recallgym.envs``.
"""

__version__ = "0.1.0"
