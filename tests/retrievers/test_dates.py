from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.conditions import read_date

MORNING = datetime(2024, 1, 31, 10, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "value",
    [
        *("", "tea", "1/2/2024", "2024-13-01", "2024-02-30", "31.1.2024", "12", "2024-01-31x"),
        *("2024-01-31T25:00", "1.2.3", "10:00", "２０２４", "May 2024", "20240131", "0000-01-01"),
        *("-2024", "2024-01-31 " * 9, 2024, 2024.5, None, [date(2024, 1, 1)]),
        *("2024-01-31" + " " * 1_000_000 + "x", "1" * 1_000_000),
    ],
)
def test_read_date_of_other_value_is_none(value: object) -> None:
    assert read_date(value) is None


MOMENTS = st.datetimes(
    timezones=st.one_of(
        st.none(), st.integers(-14 * 60, 14 * 60).map(lambda n: timezone(timedelta(minutes=n)))
    )
)

FORMS = ("%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%d %H:%M:%S.%f%z")


@given(MOMENTS, MOMENTS, st.sampled_from(FORMS))
def test_instants_compare_as_in_python(one: datetime, other: datetime, form: str) -> None:
    def moment(value: datetime) -> datetime:
        return value if value.tzinfo else value.replace(tzinfo=timezone.utc)

    expected = (moment(one) > moment(other)) - (moment(one) < moment(other))
    # strftime does not pad years on all platforms
    text = one.strftime(form.replace("%Y", f"{one.year:04}")).strip()
    for value in (one, text):
        when = read_date(value)
        assert when is not None, value
        assert when.compare(read_date(other)) == expected
        day = (one.date() > other.date()) - (one.date() < other.date())
        assert when.compare(read_date(other.date())) == day
        assert when.compare(read_date(other.date().isoformat()[:4])) == (
            (one.year > other.year) - (one.year < other.year)
        )
