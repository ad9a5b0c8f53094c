"""The store in memory against a simple model, under random writes."""

from hypothesis import settings
from store_machine import StoreMachine

TestMemoryStore = StoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=60, stateful_step_count=30)
