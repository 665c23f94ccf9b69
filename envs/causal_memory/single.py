"""``recallgym/CausalMemory-v0``: which retrieved candidates may be read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from .config import CausalMemoryConfig
from .core import INFO_KEYS, Dynamics, Step
from .live import Outcomes

SESSION_BLOCK = 64
"""Sessions drawn at a time."""


class CausalMemoryEnv(gym.Env[NDArray[np.float32], NDArray]):
    """A gate decides which retrieved candidates a frozen reader may see, from a query and the last reading's feedback.

    ## Description
    A reader (a frozen language model) answers the questions of a session. For each question retrieval proposes a pool
    of N candidates, of which at most k are shown. The agent masks the pool *before* it is ranked and read: an
    intervention on retrieval whose effect on the answer is known exactly, because the reader's outcome under every
    reading set was enumerated once and is replayed from an outcome table (or computed live).

    A session hides a latent, the retrieval condition (healthy, or degraded by stale or noisy neighbours), and shares
    one token budget among its questions.

    ## Action Space
    With `action="bits"` (default) a `MultiBinary(N+1)`: a keep-bit for each candidate in pool order, then the search
    bit. With `action="weights"` a `Box(0, 1, (N+1,), float32)`: a boost for each candidate, s (1 + w); a boost below
    `threshold` rejects the candidate; the search runs if the last weight is at least 1/2.

    | mode | a rejected candidate's score s | a kept one's |
    |---|---|---|
    | `hard` | -inf: not read, except through the fallback | s (1 + w) |
    | `soft` | 0.1 s | s (1 + w) |
    | `multiply` | s w | s w |

    Scores are those of the primary retriever, shifted to be non-negative within the pool; for bits w is `alpha` x bit
    (`multiply`: the bit). The top k of the adjusted scores are read, in pool order. When nothing is left, `fallback`
    chooses. With `early_exit`, a search bit of 0 or a mask that rejects everything skips the search: nothing is read
    and no search is paid. A reading over the token budget loses its last candidates until it fits.

    ## Observation Space
    A `Box` of the blocks named in `observe`, concatenated in that order, float32, clipped to the bounds given here:

    | block | entries | unit | bounds | content |
    |---|---|---|---|---|
    | `query` | d | | [-100, 100] | embedding of the question, not normalised |
    | `domain` | m | | [-100, 100] | intent and keyword features of the question's words |
    | `feedback` | 2 | nats | [-20, 0], [0, 20] | U_self and entropy of the previous reading; 0 at first |
    | `budget` | 2 | share | [0, 1] | token budget left (1 where there is none), steps left |
    | `ranks` | 4 N | | [-1000, 1000], [-1, 32767] | of each candidate: dense, sparse score; dense, sparse rank |
    | `content` | F N | | [-100, 100] | query-passage features of each candidate |
    | `memory` | N | | [0, 2**24] | index of each candidate in the bank |
    | `latent` | C | | [0, 1] | one-hot retrieval condition: a positive control, which no deployment knows |

    The default, `query, feedback, budget`, is content-free, as published: it holds nothing about the candidates. The
    observation after the last step repeats the last question.

    ## Rewards
    Net step utility, in nats a token of the reference answer:

    U_ref(read) - U_ref(keep-all) - `token_price` x tokens / 100 - `search_price` x searched

    U_ref is the mean log-probability of the reference answer; keep-all is the unmasked top k of the primary retriever;
    tokens are prompt tokens above the empty prompt. Positive is good. U_ref is in the reward and in `info` only: what
    is observed is U_self, of the answer that the reader generated itself.

    ## Starting State
    A session draws, uniformly, one of the split's document families and a retrieval condition; then for each step a
    question of the family, with replacement. Between steps the condition changes with probability `switch`. Draws are
    a hash of (seed, episode, step): `reset(seed=s)` begins episode 0 of s, `reset()` the next episode.

    ## Episode End
    `terminated` after `steps` questions: a finite session is the task. `truncated` is always False.

    ## Information
    `reset` gives `seed` and `episode`. `step` gives, for the question just answered: `row` (question x conditions +
    condition) and `set` (column of the table) as read; `utility` (before prices) and `u_ref`, nats a token; `tokens`;
    `searched`; `fell_back`; numbers of candidates `rejected`, `leaked` (rejected, yet read) and `harmful`
    (contradicting or stale, and read); `exact_match` and `f1` of the greedy answer; `regret`, the best net utility of
    any reading set of this row minus the reward (NaN live). None of it may be observed by a policy.

    ## Data and Oracle
    An outcome table (`recallgym outcomes info` describes the shipped one). `recallgym.envs.causal_memory.oracle` gives
    the best set of a row and the exact optimum of a session under its token budget.

    ## More than a bandit?
    Two things tie steps together: feedback reveals the latent condition, which persists, and the token budget is
    shared. Actions do not change which questions come. With `switch` at 1/2 (two conditions) and `token_budget=None`
    what remains is a contextual bandit, and a discount of 0 loses nothing.

    On the shipped table it is nearly that at the default prices, too: three passages are worth reading under both
    conditions, and a session seldom runs out of tokens. At `token_price=4` one passage pays under one condition only,
    so that knowing it is worth something; ablation C14 is judged there.

    ## Arguments
    The fields of :class:`~recallgym.envs.causal_memory.config.CausalMemoryConfig`, as keywords:

    ```python
    import gymnasium
    env = gymnasium.make("recallgym.envs:recallgym/CausalMemory-v0", mode="soft", token_price=0.05)
    ```

    Args:
        config: The configuration; the default one if None.
        outcomes: Replaces the table's outcomes by a live reader's.
        render_mode: ``ansi`` for a line about the last step.
        **settings: Fields of the configuration to replace.

    ## Version History
    * v0: initial version.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's form

    def __init__(
        self,
        config: CausalMemoryConfig | None = None,
        *,
        outcomes: Outcomes | None = None,
        render_mode: str | None = None,
        **settings: Any,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be 'ansi' or None, got {render_mode!r}")
        self.render_mode = render_mode
        self.config = replace(config or CausalMemoryConfig(), **settings)
        self.dynamics = Dynamics(self.config, outcomes)
        self.observation_space, self.action_space = make_spaces(self.dynamics)
        self._shape = self.action_space.shape
        self._seed = self.config.seed
        self._episode = -1
        self._drawn: tuple[int, int] | None = None
        self._rows: NDArray[np.int64] | None = None  # (T,)
        self._step, self._left = 0, 0
        self._feedback: tuple[float, float] = (0.0, 0.0)
        self._last: Step | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts the first session of a seed, or the next session where none is given.

        Args:
            seed: Seed of this and the following sessions.
            options: Not used.

        Returns:
            The observation (D,) float32, and an info with ``seed`` and ``episode``, which identify the session.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._episode = seed, -1
        self._episode += 1
        self._rows = self._draw_session()
        self._step = 0
        self._left = self.dynamics.limit
        self._feedback = (0.0, 0.0)
        self._last = None
        return self.observe(), {"seed": self._seed, "episode": self._episode}

    def step(self, action: NDArray) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Answers the session's current question.

        Args:
            action: (N+1,) bits, or weights in [0, 1]; the last is the search.

        Returns:
            Observation (D,), reward, terminated, truncated (always False) and info, as the class documents.

        Raises:
            RuntimeError: The session has ended, or none was begun.
            ValueError: The action has another shape, or values that are not bits (weights: not in [0, 1]).
        """
        if self._rows is None or self._step == self.config.steps:
            raise RuntimeError("the session has ended or was never begun: call reset() before step()")
        action = np.asarray(action)
        if action.shape != self._shape:
            raise ValueError(f"the action must have shape {self._shape}, got {action.shape}")
        row = self._rows[self._step]
        if self.config.action == "bits":
            choice = self.dynamics.choose_bits(row, _bit_code(action))
        elif not ((action >= 0) & (action <= 1)).all():
            raise ValueError(f"the action must hold weights in [0, 1], got {action}")
        else:
            choice = self.dynamics.choose_weights(row[None], action[None]).at(0)
        step = self.dynamics.step(row, choice, self._left)
        self._left -= int(step.tokens)
        self._feedback, self._last = step.feedback, step
        self._step += 1
        info = dict(zip(INFO_KEYS, step, strict=False))
        info["searched"], info["fell_back"] = bool(step.searched), bool(step.fell_back)
        return self.observe(), float(step.reward), self._step == self.config.steps, False, info

    def observe(self) -> NDArray[np.float32]:
        """Returns the current observation (D,), such as after :meth:`set_state`."""
        if self._rows is None:
            raise RuntimeError("call reset() or set_state() before observe()")
        row = self._rows[min(self._step, self.config.steps - 1)]
        return self.dynamics.observe(row, self._feedback, self._left, self._step)

    def render(self) -> str | None:
        """Returns a line about the last step under ``render_mode="ansi"``."""
        if self.render_mode is None:
            return None
        position = f"step {self._step}/{self.config.steps}"
        if self._last is None:
            return f"{position}: nothing read yet in this session\n"
        table, last = self.dynamics.table, self._last
        question, condition = divmod(int(last.row), table.conditions)
        return (
            f"{position}: {table.meta['questions'][question]['id']} ({table.meta['conditions'][condition]})"
            f" read {np.flatnonzero(table.sets[last.set]).tolist()}{' by fallback' if last.fell_back else ''}"
            f", {last.tokens} tokens; utility {last.utility:+.3f}, regret {last.regret:.3f} nats\n"
        )

    def get_state(self) -> dict[str, Any]:
        """Returns all that the future depends on, as plain numbers."""
        if self._rows is None:
            raise RuntimeError("call reset() before get_state()")
        return {
            "table": self.dynamics.table.fingerprint,
            "seed": self._seed,
            "episode": self._episode,
            "step": self._step,
            "left": self._left,
            "u_self": float(self._feedback[0]),
            "entropy": float(self._feedback[1]),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of an environment of the same configuration, bit-identically.

        Raises:
            ValueError: The state is of another table.
        """
        check_state(state, self.dynamics)
        self._seed, self._episode = int(state["seed"]), int(state["episode"])
        self._rows = self._draw_session()
        self._step, self._left = int(state["step"]), int(state["left"])
        self._feedback = (float(state["u_self"]), float(state["entropy"]))
        self._last = None

    def _draw_session(self) -> NDArray[np.int64]:
        """Returns the session's rows (T,). Sessions are drawn a block at a time: a call costs more than its draws."""
        block = self._episode - self._episode % SESSION_BLOCK
        if self._drawn != (self._seed, block):
            self._drawn = (self._seed, block)
            self._block = self.dynamics.session_rows(self._seed, np.arange(block, block + SESSION_BLOCK))
        return self._block[self._episode - block]


def make_spaces(dynamics: Dynamics) -> tuple[gym.Space[NDArray[np.float32]], gym.Space[NDArray]]:
    """Returns the observation and action space of one environment."""
    layout, size = dynamics.layout, dynamics.table.pool + 1
    observation: gym.Space[Any] = spaces.Box(layout.low, layout.high, dtype=np.float32)
    if dynamics.config.action == "bits":
        return observation, spaces.MultiBinary(size)
    return observation, spaces.Box(0, 1, (size,), dtype=np.float32)


def check_state(state: Mapping[str, Any], dynamics: Dynamics) -> None:
    """Raises ValueError when a state was taken over another table or does not fit the configuration."""
    if state["table"] != dynamics.table.fingerprint:
        raise ValueError(f"the state is of table {state['table']}, this environment's is {dynamics.table.fingerprint}")
    if not 0 <= state["step"] <= dynamics.config.steps:
        raise ValueError(f"the state is at step {state['step']}, sessions here have {dynamics.config.steps} steps")


def _bit_code(action: NDArray) -> int:
    code = 0
    for i, bit in enumerate(action.tolist()):
        if bit == 1:
            code |= 1 << i
        elif bit != 0:
            raise ValueError(f"the action must hold bits, 0 or 1; got {action}")
    return code
