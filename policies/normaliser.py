"""Standardisation inside the module, so that its statistics are saved, exported and served with the policy."""

import torch
from torch import Tensor, nn

from .base import FLOAT_MAX

#: Standardised features are clipped here, as Stable-Baselines3's VecNormalize does (``clip_obs``).
CLIP = 10.0
#: A feature that varies less than this is constant: it is centred and not scaled.
CONSTANT = 1e-6


class Normaliser(nn.Module):
    """Clips to the layout's bounds, standardises, clips to +-10. The identity until :meth:`fit` is called.

    Args:
        size: Number of features D.
    """

    low: Tensor
    high: Tensor
    mean: Tensor
    std: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("low", torch.full((size,), -FLOAT_MAX))
        self.register_buffer("high", torch.full((size,), FLOAT_MAX))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))

    @property
    def fitted(self) -> bool:
        """Whether :meth:`fit` was called, here or before the state was saved."""
        return bool((self.low > -FLOAT_MAX).all())

    def forward(self, observation: Tensor) -> Tensor:
        """Returns standardised features, shape (B, D) like the observation's."""
        clipped = torch.clamp(observation, self.low, self.high)
        return torch.clamp((clipped - self.mean) / self.std, -CLIP, CLIP)

    @torch.no_grad()
    def fit(self, observations: Tensor, low: Tensor, high: Tensor, tied: Tensor) -> None:
        """Sets bounds and statistics.

        Args:
            observations: (M, D) float32, a sample of what the policy will see.
            low: (D,) least value of each feature.
            high: (D,) greatest value of each feature.
            tied: (D,) int64: features with the same number share one mean and one scale.
        """
        if observations.ndim != 2 or observations.shape[1] != self.mean.shape[0]:
            raise ValueError(f"expected observations (M, {self.mean.shape[0]}), got shape {tuple(observations.shape)}")
        x = torch.clamp(observations.double(), low.double(), high.double())  # (M, D)
        groups = torch.zeros(int(tied.max()) + 1, dtype=torch.float64)
        count = groups.index_add(0, tied, torch.ones_like(tied, dtype=torch.float64))
        mean = (groups.index_add(0, tied, x.mean(0)) / count)[tied]  # (D,)
        square = ((x - mean) ** 2).mean(0)
        std = (groups.index_add(0, tied, square) / count)[tied].sqrt()
        self.low.copy_(low)
        self.high.copy_(high)
        self.mean.copy_(mean)
        self.std.copy_(torch.where(std < CONSTANT, torch.ones_like(std), std))
