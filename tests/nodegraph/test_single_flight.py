"""Callers that want the same wait for the first of them."""

import threading

from nodekin.nodegraph.concurrency import SingleFlight


def in_another_thread(call):
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join(60)
    return results[0]


def test_a_key_that_is_given_up_can_be_claimed_again():
    flight: SingleFlight[str, int] = SingleFlight()
    assert flight.claim(["tea", "tea"]) == (["tea"], {})
    claimed, others = in_another_thread(lambda: flight.claim(["tea", "milk"]))
    assert (claimed, list(others)) == (["milk"], ["tea"])
    flight.release(["tea"])
    flight.release(["tea"])
    assert others["tea"].result(0) is None
    assert flight.claim(["tea"]) == (["tea"], {})


def test_a_result_goes_to_those_who_wait_and_to_later_ones_until_the_release():
    flight: SingleFlight[str, int] = SingleFlight()
    flight.claim(["tea"])
    _, others = in_another_thread(lambda: flight.claim(["tea"]))
    flight.resolve({"tea": 3})
    _, later = in_another_thread(lambda: flight.claim(["tea"]))
    assert (others["tea"].result(0), later["tea"].result(0)) == (3, 3)
    flight.release(["tea"])
    assert in_another_thread(lambda: flight.claim(["tea"])) == (["tea"], {})


def test_a_thread_waits_neither_for_itself_nor_for_a_task():
    flight: SingleFlight[str, int] = SingleFlight()
    flight.claim(["tea"])
    assert flight.claim(["tea"]) == (["tea"], {})
    flight.claim(["milk"], "loop")
    assert flight.claim(["milk"]) == (["milk"], {})
