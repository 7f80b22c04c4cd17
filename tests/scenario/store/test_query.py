import pytest
from hypothesis import given
from hypothesis import strategies as st

from avshift_core.errors import CorpusError
from avshift_core.scenario.store.query import CohortQuery

TEXT = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8)


def test_order_and_repetition_do_not_matter():
    a = CohortQuery(period=("2026-W11", "2026-W10", "2026-W11"), area="harbor")
    b = CohortQuery.parse("area=harbor , period=2026-W10|2026-W11")
    assert a == b and hash(a) == hash(b)
    assert a.period == ("2026-W10", "2026-W11")


def test_an_empty_text_means_all():
    assert CohortQuery.parse("") == CohortQuery.parse("  ") == CohortQuery()
    assert str(CohortQuery()) == "" and CohortQuery().chosen() == {}


def test_hours_are_numbers():
    assert CohortQuery.parse("hour=9|17|-1").hour == (-1, 9, 17)
    assert CohortQuery(hour=range(3)).hour == (0, 1, 2)


@given(st.builds(CohortQuery, period=st.lists(TEXT, max_size=3), area=st.lists(TEXT, max_size=3),
                 hour=st.lists(st.integers(-1, 23), max_size=3)))
def test_the_text_gives_the_query_back(query):
    assert CohortQuery.parse(str(query)) == query


@pytest.mark.parametrize(("text", "part"), [
    ("week=3", "'week' is no key of a cohort. Keys are period, area"), ("harbor", "Keys are period, area, av_version"),
    ("area=", "empty value"), ("area=a||b", "empty value"), ("area=a,area=b", "given twice"), (",", "does not say"),
    ("hour=noon", "'noon' is no hour"), ("hour=24", "0 to 23"), ("hour=", "empty value"), ("area=a,", "does not say"),
])
def test_what_cannot_be_understood_is_said_in_one_sentence(text, part):
    with pytest.raises(CorpusError, match=part.replace("|", r"\|")):
        CohortQuery.parse(text)


@pytest.mark.parametrize("value", [None, 5, ["area=a"]])
def test_a_cohort_is_text(value):
    with pytest.raises(CorpusError, match="write it as text such as period="):
        CohortQuery.parse(value)


@pytest.mark.parametrize("value", ["", [""], ["a", ""], None, [None]])
def test_empty_values_are_refused_from_python_too(value):
    with pytest.raises(CorpusError, match="empty value"):
        CohortQuery(area=value)
