"""The demo's sources: what they publish and when. Pure: the same seed and the same moment give the same items.

Time is speeded up: what takes a real newsroom an hour happens here within seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

Format = Literal["rss", "atom", "rdf", "json", "sitemap"]
Rhythm = Literal["steady", "random", "bursts", "hourly", "sleepy"]

ENDINGS: dict[Format, str] = {
    "rss": "rss.xml",
    "atom": "atom.xml",
    "rdf": "index.rdf",
    "json": "feed.json",
    "sitemap": "sitemap.xml",
}
HISTORY_SECONDS = 600.0
WINDOW = 20
CORRECTED_EVERY = 3
CORRECTED_AFTER_SECONDS = 20.0

_SUBJECTS = {
    "en": (
        "River",
        "Harbour",
        "Observatory",
        "Library",
        "Orchestra",
        "Workshop",
        "Garden",
        "Archive",
        "Market",
    ),
    "zh": ("河流", "港口", "天文台", "图书馆", "乐团", "工坊", "花园", "档案馆", "集市"),
}
_EVENTS = {
    "en": (
        "opens early",
        "finds a lost map",
        "asks for help",
        "breaks its record",
        "welcomes visitors",
        "goes quiet",
    ),
    "zh": ("提前开放", "找回遗失的地图", "征集志愿者", "刷新纪录", "迎来访客", "安静下来"),
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a source answers instead of its document, from so many days before the demo starts."""

    status: int
    days: float
    location: str = ""


@dataclass(frozen=True, slots=True)
class DemoItem:
    number: int
    title: str
    body: str
    published_at: float


@dataclass(frozen=True, slots=True)
class DemoSource:
    """One source. `gap_seconds` is its mean time between items."""

    slug: str
    name: str
    format: Format
    rhythm: Rhythm
    gap_seconds: float
    language: Literal["en", "zh"] = "en"
    charset: str = "utf-8"
    corrects: bool = False  # some of its items are corrected a while after they came out

    @property
    def path(self) -> str:
        return f"/{self.slug}/{ENDINGS[self.format]}"

    def items(self, start_at: float, now: float) -> list[DemoItem]:
        """Everything published from HISTORY_SECONDS before `start_at` until `now`, oldest first."""
        rng = Random(self.slug)
        return [
            self._item(number, at, rng, now)
            for number, at in enumerate(self._times(start_at - HISTORY_SECONDS, now), start=1)
        ]

    def trouble_at(self, start_at: float, now: float) -> Trouble | None:
        """What it returns instead of its document."""
        return None

    def will_correct(self, number: int) -> bool:
        """Whether an item is corrected CORRECTED_AFTER_SECONDS after it came out."""
        return self.corrects and number % CORRECTED_EVERY == 0

    def _times(self, begin: float, now: float) -> Iterator[float]:
        rng = Random(f"{self.slug} times")
        at = begin
        while True:
            batch = 1
            match self.rhythm:
                case "steady":
                    at += self.gap_seconds * rng.uniform(0.9, 1.1)
                case "random":
                    at += rng.expovariate(1 / self.gap_seconds)
                case "bursts":
                    batch = rng.randint(2, 6)
                    at += rng.expovariate(1 / (self.gap_seconds * batch))
                case "hourly":  # on the minute, as newsrooms publish on the hour
                    at = (at // self.gap_seconds + 1) * self.gap_seconds
                case "sleepy":  # awake for one minute in three
                    at += rng.expovariate(3 / self.gap_seconds)
                    if at % 180 > 60:
                        at += 180 - at % 180
            for _ in range(batch):
                if at > now:
                    return
                yield at
                at += 0.5 if batch > 1 else 0

    def _item(self, number: int, at: float, rng: Random, now: float) -> DemoItem:
        title = f"{rng.choice(_SUBJECTS[self.language])} {rng.choice(_EVENTS[self.language])} ({number})"
        body = f"<p>{title}. <em>{self.name}</em>, #{number}.</p>"
        if self.will_correct(number):
            when = (
                "tomorrow" if now < at + CORRECTED_AFTER_SECONDS else "on Thursday, not tomorrow as we wrote"
            )
            body += f"<p>The doors open at nine {when}, and admission is free.</p>"
        return DemoItem(number, title, body, at)


DOZEN: tuple[DemoSource, ...] = (
    DemoSource("tide", "Tide Tables", "rss", "steady", 8),
    DemoSource("gazette", "The Daily Gazette", "rss", "random", 12, corrects=True),
    DemoSource("kettle", "Kettle & Co. Notes", "atom", "random", 45),
    DemoSource("release", "Release Bells", "atom", "bursts", 15),
    DemoSource("quiet", "Quiet Journal", "atom", "steady", 150),
    DemoSource("wire", "News Wire", "json", "random", 5),
    DemoSource("podcast", "Late Night Radio", "json", "hourly", 60),
    DemoSource("museum", "Museum Bulletin", "rdf", "sleepy", 20),
    DemoSource("harbour", "Harbour Office", "sitemap", "random", 25),
    DemoSource("chenbao", "晨报", "rss", "random", 10, "zh"),
    DemoSource("keji", "科技观察", "atom", "bursts", 20, "zh"),
    DemoSource("laobao", "老报社", "rss", "hourly", 30, "zh", "gb18030"),
)


def many(count: int) -> tuple[DemoSource, ...]:
    """`count` sources: the dozen, then more of the same kinds under numbered names."""
    made = list(DOZEN)
    while len(made) < count:
        model = DOZEN[len(made) % len(DOZEN)]
        number = len(made) // len(DOZEN) + 1
        made.append(
            DemoSource(
                f"{model.slug}{number}",
                f"{model.name} {number}",
                model.format,
                model.rhythm,
                model.gap_seconds,
                model.language,
                model.charset,
            )
        )
    return tuple(made[:count])
