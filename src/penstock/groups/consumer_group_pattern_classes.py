"""Classes of characters that patterns can name, and the characters of topic names.

The tables hold ASCII, as RE2's do; a parser takes of each class what its alphabet holds.
"""

import string
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Final

LEGAL: Final = frozenset(string.ascii_letters + string.digits + "._-")

PERL: Final[dict[str, frozenset[str]]] = {
    "d": frozenset(string.digits),
    "s": frozenset("\t\n\f\r "),
    "w": frozenset(string.ascii_letters + string.digits + "_"),
}

POSIX: Final[dict[str, frozenset[str]]] = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, [*range(32), 127])),
    "digit": frozenset(string.digits),
    "graph": frozenset(string.ascii_letters + string.digits + string.punctuation),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(string.ascii_letters + string.digits + string.punctuation + " "),
    "punct": frozenset(string.punctuation),
    "space": frozenset(string.whitespace),
    "upper": frozenset(string.ascii_uppercase),
    "word": frozenset(string.ascii_letters + string.digits + "_"),
    "xdigit": frozenset(string.hexdigits),
}

_CATEGORY_NAMES = """
C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs
"""
_CATEGORIES: Final = frozenset(_CATEGORY_NAMES.split())

# Scripts that RE2 knows and no name of a topic can be written in.
_SCRIPT_NAMES = """
Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid
Canadian_Aboriginal Carian Cham Cherokee Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari
Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo
Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese
Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Lepcha Limbu Linear_B Lisu Lycian Lydian
Malayalam Mandaic Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic
Old_Persian Old_South_Arabian Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan
Saurashtra Shavian Sinhala Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet
Tamil Telugu Thaana Thai Tibetan Tifinagh Ugaritic Unknown Vai Yi
"""
_OTHER_SCRIPTS: Final = frozenset(_SCRIPT_NAMES.split())


def unicode_class(name: str) -> Callable[[str], bool] | None:
    r"""The test for what `\p{name}` names, a category or a script; None: there is no such."""
    if name == "Any":
        return lambda char: True
    if name in _CATEGORIES:
        return lambda char: unicodedata.category(char).startswith(name)
    if name == "Latin":
        return lambda char: char.isalpha()
    if name == "Common":
        return lambda char: not char.isalpha()
    if name in _OTHER_SCRIPTS:
        return lambda char: False
    return None


@cache
def cases(char: str) -> str:
    """All that fold to the same: the Kelvin sign is a k, and the long s an s."""
    return char.lower() + char.upper() + {"k": "\u212a", "s": "\u017f"}.get(char.lower(), "")
