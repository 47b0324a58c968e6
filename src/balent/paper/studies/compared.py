"""The measures that the paper compares, under its names."""

from balent.maths import measures
from balent.types import Measure

JUDGED: dict[str, Measure] = {
    "BalEntAcq": measures.balentacq,
    "BALD": measures.bald,
    "Entropy": measures.entropy,
    "MeanSD": measures.mean_sd,
    "ExpectedEffectiveLoss": measures.expected_effective_loss,
    "BetaMarginalEIG": measures.beta_eig,
}
