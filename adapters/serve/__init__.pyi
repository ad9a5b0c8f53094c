from .page_app import PageApp as PageApp
from .tried_setups import TriedSetups as TriedSetups
