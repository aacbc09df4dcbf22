"""Language tags: files say `ger`, playlists must say `de` (RFC 5646 takes the shortest code there is)."""

from __future__ import annotations

import re

# ISO 639-1, then its codes in ISO 639-2 (two where the bibliographic and the terminological one differ).
_TABLE = """
aa aar|ab abk|ae ave|af afr|ak aka|am amh|an arg|ar ara|as asm|av ava|ay aym|az aze|ba bak|be bel|bg bul|bi bis|bm bam
bn ben|bo bod tib|br bre|bs bos|ca cat|ce che|ch cha|co cos|cr cre|cs ces cze|cu chu|cv chv|cy cym wel|da dan
de deu ger|dv div|dz dzo|ee ewe|el ell gre|en eng|eo epo|es spa|et est|eu eus baq|fa fas per|ff ful|fi fin|fj fij
fo fao|fr fra fre|fy fry|ga gle|gd gla|gl glg|gn grn|gu guj|gv glv|ha hau|he heb|hi hin|ho hmo|hr hrv|ht hat|hu hun
hy hye arm|hz her|ia ina|id ind|ie ile|ig ibo|ii iii|ik ipk|io ido|is isl ice|it ita|iu iku|ja jpn|jv jav|ka kat geo
kg kon|ki kik|kj kua|kk kaz|kl kal|km khm|kn kan|ko kor|kr kau|ks kas|ku kur|kv kom|kw cor|ky kir|la lat|lb ltz|lg lug
li lim|ln lin|lo lao|lt lit|lu lub|lv lav|mg mlg|mh mah|mi mri mao|mk mkd mac|ml mal|mn mon|mr mar|ms msa may|mt mlt
my mya bur|na nau|nb nob|nd nde|ne nep|ng ndo|nl nld dut|nn nno|no nor|nr nbl|nv nav|ny nya|oc oci|oj oji|om orm|or ori
os oss|pa pan|pi pli|pl pol|ps pus|pt por|qu que|rm roh|rn run|ro ron rum|ru rus|rw kin|sa san|sc srd|sd snd|se sme
sg sag|si sin|sk slk slo|sl slv|sm smo|sn sna|so som|sq sqi alb|sr srp|ss ssw|st sot|su sun|sv swe|sw swa|ta tam|te tel
tg tgk|th tha|ti tir|tk tuk|tl tgl|tn tsn|to ton|tr tur|ts tso|tt tat|tw twi|ty tah|ug uig|uk ukr|ur urd|uz uzb|ve ven
vi vie|vo vol|wa wln|wo wol|xh xho|yi yid|yo yor|za zha|zh zho chi|zu zul
"""
_SHORT = {
    code: short
    for short, *codes in (entry.split() for line in _TABLE.split("\n") for entry in line.split("|") if entry)
    for code in codes
}
# What a language calls itself, for the menus of players; others are shown by their tag.
_OWN_NAMES = """
ar العربية|bg Български|bn বাংলা|ca Català|cs Čeština|da Dansk|de Deutsch|el Ελληνικά|en English|es Español|et Eesti
eu Euskara|fa فارسی|fi Suomi|fr Français|ga Gaeilge|gl Galego|he עברית|hi हिन्दी|hr Hrvatski|hu Magyar
id Bahasa Indonesia|is Íslenska|it Italiano|ja 日本語|ko 한국어|la Latina|lt Lietuvių|lv Latviešu|ms Bahasa Melayu
nb Norsk bokmål|nl Nederlands|nn Norsk nynorsk|no Norsk|pl Polski|pt Português|ro Română|ru Русский|sk Slovenčina
sl Slovenščina|sq Shqip|sr Српски|sv Svenska|ta தமிழ்|te తెలుగు|th ไทย|tr Türkçe|uk Українська|ur اردو
vi Tiếng Việt|zh 中文
"""
_NAMES = dict(entry.split(" ", 1) for line in _OWN_NAMES.split("\n") for entry in line.split("|") if entry)
_TAG = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")


def tag(language: str | None) -> str | None:
    """The tag for a playlist; None if the file says nothing, nonsense, or `und`."""
    said = (language or "").strip().lower().replace("_", "-")
    if said.startswith(("und", "mis", "mul", "zxx")) or not _TAG.fullmatch(said):
        return None
    first, *rest = said.split("-")
    return "-".join([_SHORT.get(first, first), *rest])


def name(language: str | None) -> str | None:
    """What a menu shows: "Deutsch", "pt-br" with its region as "Português (BR)"; None if the language is not known."""
    found = tag(language)
    if found is None:
        return None
    first, _, region = found.partition("-")
    called = _NAMES.get(first)
    return found if called is None else f"{called} ({region.upper()})" if region else called
