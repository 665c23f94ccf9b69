"""Every policy declares its ports truly and exports with a free batch axis."""

import pytest
import torch
from torch import Tensor, nn

from recallgym.policies import BestConstant, CausalGate, KeepAll, KeepNone, Policy, RandomGate, TopOne

POOL = 4
FULL = (("query", 8), ("feedback", 2), ("ranks", 4 * POOL), ("content", 3 * POOL), ("memory", POOL))
ARGUMENTS = {"blocks": FULL, "pool": POOL, "budget": 2, "bank_size": 20}
POLICIES = {
    "gate": lambda: CausalGate(**ARGUMENTS),
    "softmax": lambda: CausalGate(**ARGUMENTS, normalise="softmax"),
    "threshold": lambda: CausalGate(**ARGUMENTS, activation="sigmoid", threshold=0.01),
    "bank": lambda: CausalGate(**ARGUMENTS, head="bank"),
    "keep all": lambda: KeepAll(**ARGUMENTS),
    "keep none": lambda: KeepNone(**ARGUMENTS),
    "best constant": lambda: BestConstant([1, 0, 1, 0, 1], **ARGUMENTS),
    "top one": lambda: TopOne(**ARGUMENTS),
    "random": lambda: RandomGate(**ARGUMENTS),
}


class Outputs(nn.Module):
    """What a bundle exports: the policy's outputs in the order of its ports."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        return self.policy.decide(observation), self.policy.propensity(observation)


def observations(batch: int) -> Tensor:
    x = torch.randn(batch, 42, generator=torch.Generator().manual_seed(batch))
    x[:, -POOL:] = torch.arange(POOL) * 3.0
    return x


@pytest.mark.parametrize("name", POLICIES)
def test_policies_export_and_their_outputs_match_the_ports(name):
    policy = POLICIES[name]()
    batch = {"observation": {0: torch.export.Dim("batch", min=1, max=4096)}}
    program = torch.export.export(Outputs(policy).eval(), (observations(2),), dynamic_shapes=batch).module()
    (port,) = policy.inputs
    assert port.shape == ("batch", 42)
    assert len(port.low) == len(port.high) == 42
    for size in (1, 3, 64):
        x = observations(size)
        for output, exported, direct in zip(policy.outputs, program(x), Outputs(policy)(x), strict=True):
            assert torch.equal(exported, direct)
            assert direct.shape == (size, output.shape[1])
            assert str(direct.dtype) == f"torch.{output.dtype}"
            assert torch.equal(direct.clamp(torch.tensor(output.low), torch.tensor(output.high)), direct)


def test_importing_the_package_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys, recallgym.policies; assert 'torch' not in sys.modules; recallgym.policies.KeepAll"
    subprocess.run([sys.executable, "-c", code], check=True)
