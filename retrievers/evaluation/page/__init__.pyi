from .page import make_page as make_page
from .plots import PlotCost as PlotCost
from .plots import plot_differences as plot_differences
from .plots import plot_quality as plot_quality
from .wording import PageLanguage as PageLanguage
from .wording import stylesheet as stylesheet
