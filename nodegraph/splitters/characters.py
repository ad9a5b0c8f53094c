"""Character classes of the scripts that are written without spaces between words.

Han, kana and hangul, and the South-East Asian scripts; hangul has spaces, but the words between
them carry endings that a search should see through, so it is treated the same.
"""

from __future__ import annotations

# Written for a regular expression's [...].
UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Myanmar, Khmer
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"  # iteration marks, kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # hangul syllables
    "\U00020000-\U0003ffff"  # Han, extensions
)
