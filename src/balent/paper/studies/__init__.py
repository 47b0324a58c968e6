"""The paper's figures and claims, recomputed: one file a study, and the table of their names."""

from balent.paper.studies import (
    abstention,
    acquisition_time,
    beta_bald,
    beta_fit,
    fano,
    formulas,
    monte_carlo,
    moons,
    rank_correlation,
    surfaces,
)
from balent.paper.studies.study import Study

__all__ = ["STUDIES"]

STUDIES: dict[str, Study] = {
    "formulas": formulas.STUDY,
    "beta-fit": beta_fit.STUDY,
    "rank-correlation": rank_correlation.STUDY,
    "beta-bald": beta_bald.STUDY,
    "fano": fano.STUDY,
    "surfaces": surfaces.STUDY,
    "moons": moons.STUDY,
    "abstention": abstention.STUDY,
    "monte-carlo": monte_carlo.STUDY,
    "acquisition-time": acquisition_time.STUDY,
}
