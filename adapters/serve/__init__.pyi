from .page_app import PageApp as PageApp
from .serving import serve as serve
from .tried_setups import TriedSetups as TriedSetups
