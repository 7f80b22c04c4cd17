from dataclasses import fields

import pytest

from avshift_core.__main__ import _parser
from avshift_core.config import AnalysisConfig
from avshift_core.errors import ConfigError


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"B": 0.0}, "B is 0; it must be at least"),
        ({"B": -2.0}, "B is -2"),
        ({"alpha": 0.9}, "alpha is 0.9; it must be from"),
        ({"classifier": "oracle"}, "choose one of auto, mlp"),
        ({"gamma_small": 0.2}, "gamma_small below gamma_large"),
        ({"B": float("nan")}, "B is nan"),
        ({"folds": 1}, "folds is 1"),
    ],
)
def test_settings_out_of_range(change, sentence):
    with pytest.raises(ConfigError, match=sentence):
        AnalysisConfig(**change)


def test_the_papers_procedure_differs_where_it_should():
    paper = AnalysisConfig.paper()
    assert (paper.split_by, paper.bound, paper.classifier) == ("row", "wilson", "mlp")
    assert (paper.gamma_small, paper.gamma_large) == (0.01, 0.1)


def test_every_setting_is_a_flag_and_in_the_report(line_analysis):
    from avshift_core.report import to_report

    arguments = vars(_parser().parse_args(["compare", "--source", "p", "--target", "q"]))
    report = to_report(line_analysis)["config"]
    for setting in fields(AnalysisConfig):
        assert setting.name in arguments
        assert setting.name in report
        assert setting.metadata["help"]
