"""Records are judged in threads."""

import pytest

from nodekin.retrievers.evaluation.judging import run_all


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_run_all_keeps_results_before_error(workers: int, error: type[BaseException]) -> None:
    returned = []

    def task(number: int) -> int:
        if number == 20:
            raise error
        returned.append(number)
        return number

    got: list[int] = []
    with pytest.raises(error):
        run_all([lambda n=n: task(n) for n in range(1000)], "test", workers, False, got.append)
    assert len(got) >= 20
    assert sorted(got) == sorted(returned)
