from .setups import load_setup as load_setup
from .setups import open_graph as open_graph
from .setups import save_setup as save_setup
