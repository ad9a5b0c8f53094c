from .declared_types import ENGINES as ENGINES
from .declared_types import RETRIEVERS as RETRIEVERS
from .declared_types import TRANSFORMS as TRANSFORMS
from .opening import SetupOpener as SetupOpener
from .setup_file import SetupFile as SetupFile
