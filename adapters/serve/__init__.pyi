from .page_app import PageApp as PageApp
from .page_app import serve as serve
