import pytest

from nodekin.retrievers.evaluation.judging import run_all


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_what_was_returned_before_an_error_is_kept(
    workers: int, error: type[BaseException]
) -> None:
    returned = []

    def task(number: int) -> int:
        if number == 20:
            raise error
        returned.append(number)
        return number

    got: list[int] = []
    with pytest.raises(error):
        got.extend(run_all([lambda n=n: task(n) for n in range(1000)], workers))
    assert len(got) >= 20
    assert sorted(got) == sorted(returned)
