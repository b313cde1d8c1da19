"""Pages that stand in the way of an article: block pages, consent walls, paywalls, pages for scripts alone. Pure.

Most of their marks are on good pages too, in overlays that never show. So what is found here counts where a page has
no article; only a paywall is named beside the part of the article that it shows. Every expression is linear.
"""

import re
from typing import Literal
from urllib.parse import urlsplit

from headwater.markup import visible_text

Obstacle = Literal["block", "consent", "paywall", "script"]
_EXAMINED = 300_000  # characters of a page
_LITTLE_TEXT = 600  # characters: what a page says that is made by its scripts

_BLOCK = re.compile(
    r"just a moment\.\.\.|attention required! \| cloudflare|/cdn-cgi/challenge-platform/|cf-chl-|cf_chl_"
    r"|_incapsula_resource|captcha-delivery\.com|px-captcha|perimeterx|hcaptcha\.com/1/api\.js|/recaptcha/api\.js"
    r"|verify (?:that )?you are (?:a )?human|are you a robot|unusual traffic from your"
    r"|access (?:to this page has been )?denied|pardon our interruption|request unsuccessful\. incapsula"
    r"|security check to access",
    re.IGNORECASE,
)
_CONSENT = re.compile(
    r"before you continue|vor dem fortfahren|avant de continuer|we value your privacy|cookie[- ]?consent"
    r"|consent[- ]?wall|accept all cookies|alle akzeptieren|tout accepter|privacy-mgmt\.com|sp_message_container"
    r"|didomi|onetrust"
    r"|qc-cmp2|usercentrics|cookiebot|collectconsent|同意并继续|接受所有",
    re.IGNORECASE,
)
_PAYWALL = re.compile(
    r"isaccessibleforfree[\"']?\s*:\s*[\"']?false|subscribe to (?:continue|keep) reading|subscribers? only"
    r"|this (?:article|content|story) is for (?:paying )?subscribers|already a subscriber\?|piano\.io|tp-modal|paywall"
    r"|订阅后(?:继续)?阅读|付费阅读",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"isaccessibleforfree[\"']?\s*:\s*[\"']?false", re.IGNORECASE)
_SCRIPT = re.compile(
    r"<div[^>]{1,200}?\bid=[\"']?(?:root|app|__next|__nuxt|svelte|main-app)[\"']?[^>]{0,200}>\s{0,50}(?:</div>|<!--)"
    r"|enable javascript|requires javascript|turn on javascript|please activate javascript|启用\s*javascript",
    re.IGNORECASE,
)
_CONSENT_HOSTS = re.compile(r"(?:^|\.)(?:consent|guce|cmp|privacy)\.", re.IGNORECASE)


def find_obstacle(page: str, url: str) -> Obstacle | None:
    """What a page without an article is instead; `url` is where it was found in the end."""
    examined = page[:_EXAMINED]
    if _CONSENT_HOSTS.search(urlsplit(url).hostname or ""):
        return "consent"
    if _BLOCK.search(examined):
        return "block"
    if _CONSENT.search(examined):
        return "consent"
    if _PAYWALL.search(examined):
        return "paywall"
    if _SCRIPT.search(examined) or _is_made_by_scripts(examined):
        return "script"
    return None


def has_paywall(page: str) -> bool:
    """Whether a page says of its article that not all of it is there."""
    return _CLOSED.search(page[:_EXAMINED]) is not None


def _is_made_by_scripts(page: str) -> bool:
    return "<script" in page.lower() and len(visible_text(page, _LITTLE_TEXT).strip()) < _LITTLE_TEXT // 4
