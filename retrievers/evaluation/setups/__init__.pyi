from .opening import SetupOpener as SetupOpener
from .setup_file import ENGINES as ENGINES
from .setup_file import RETRIEVERS as RETRIEVERS
from .setup_file import TRANSFORMS as TRANSFORMS
from .setup_file import SetupFile as SetupFile
