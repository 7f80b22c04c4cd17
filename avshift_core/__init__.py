"""AVShift: is it the car, or the traffic it met?

The paper's symbols and their one name each in the code:

    a-hat                     acc               p_i (local test)             p_value
    gamma-hat                 gamma_hat         q_i (adjusted)               p_adj
    gamma_LCB                 gamma_lcb         R_k, K                       k, n_regions
    gamma_small, gamma_large  gamma_small, gamma_large    p-hat_k, q-hat_k   p_k, q_k
    N_te                      n_te              w-hat_loc                    w_k a region, w a scenario
    k neighbours              n_neighbors       B                            B
    h(z), h-bar_i             h, h_bar          mu_P, mu_Q, mu^LIS           mu_naive, mu_target, mu_lis
    s_i, c_i, r_i             s, c, r           lambda of eq:local_nms       nms_lambda
    epsilon, epsilon_h, m_min support_eps, posterior_eps, m_min    lambda_attr    attr_weight

P is the source, Q the target, always in that order; y = 1 means Q.
"""

from avshift_core.config import AnalysisConfig, EncoderConfig
from avshift_core.errors import AVShiftError

__version__ = "0.5.1"
__all__ = ["AVShiftError", "AnalysisConfig", "CohortQuery", "EncoderConfig", "analyze", "embed", "load_model",
           "make_cohort", "open_corpus", "read_cohort", "read_pair", "read_scenarios"]

_LAZY = {
    "CohortQuery": "avshift_core.scenario.store.query",
    "open_corpus": "avshift_core.scenario.store.corpus",
    "read_scenarios": "avshift_core.scenario.readers",
    "embed": "avshift_core.encoder.encode",
    "load_model": "avshift_core.encoder.weights",
    "read_pair": "avshift_core.latent.corpora",
    "analyze": "avshift_core.shift.analyze",
    "make_cohort": "avshift_core.latent.cohort",
    "read_cohort": "avshift_core.latent.tables",
}


def __getattr__(name: str):
    """Load the engine when it is first used: `import avshift_core` stays quick."""
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'avshift_core' has no attribute '{name}'")
