from .setup_session import load_setup as load_setup
from .setup_session import open_graph as open_graph
from .setup_session import save_setup as save_setup
