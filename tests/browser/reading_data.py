"""A person's feeds for the reader to show: folders, English, Chinese and Arabic articles, pictures, sound, results."""

import time
from pathlib import Path
from typing import Any

from headwater.model import Enclosure, Item, Result
from headwater.store.collecting.sources import add_source, change_source
from headwater.store.core.database import Store
from headwater.store.people.marks import add_tags, set_read_later, set_starred
from headwater.store.people.reading import mark_read
from headwater.store.reading.items import ItemChange, write_items
from headwater.store.reading.results import NewResult, write_results

HOUR = 3_600.0
OWNER = 1
# Each as name and folder.
FEEDS = (
    ("Shoreline Review", "Nature"),
    ("Lantern Astronomy", "Nature"),
    ("石桥周报", "中文 / 城市"),
    ("竹径书评", "中文"),
    ("Stack & Solder", "Engineering"),
    ("Evening Post-Boat", "Engineering"),
    ("صحيفة الميناء", None),
    ("Tidal Radio", None),
)
BODY = """
<p>The old sea wall at {place} was built in one summer and mended in forty. Each winter took a few stones out of it,
and each spring the parish put them back, until last year, when the parish did not.</p>
<p>What grew behind the gap surprised everyone who had signed the plan. Within eleven months the mud had risen by a
hand’s breadth, and with it came glasswort, then <em>sea aster</em>, then the birds that eat both.
<a href="https://shore.example/report">The full report</a> counts nineteen kinds.</p>
<h2>What it cost</h2>
<p>Less than the mending. “We budgeted for concrete,” the treasurer says, “and bought a pair of binoculars.”
The difference pays for the ferry until the end of the decade.</p>
<blockquote>A wall keeps the sea out until it keeps the water in.</blockquote>
<p>The next storm will be the test. The harbour office has hung a tide gauge on the last post of the old wall, and
its readings are <code>public/gauge.csv</code>, every ten minutes.</p>
<figure><img src="{picture}" width="640" height="320" alt="Drawing of the marsh">
<figcaption>The marsh in March.</figcaption></figure>
<ul><li>Nineteen kinds of plants, seven of them new.</li><li>Forty pairs of redshanks.</li><li>One seal.</li></ul>
"""
CHINESE = """
<p>桥头的旧邮局关了三年，去年冬天又亮起了灯。接手的是两位退休的邮递员，他们把分拣台改成了长桌，把信箱留在原处，
钥匙交给街坊。</p><p>每个格子里放的不再是信，而是<em>要还的东西</em>：借来的伞、多出来的钥匙、一袋刚收的豆角。
有人放进一本 1987 年的相册，第二天就有人认出了照片里的河埠头。</p><h2>账本很薄</h2>
<p>一年的花费不到三千元，多半用在灯泡和热水上。管理员说：“我们没有做什么，只是没有把门锁上。”</p>
<blockquote>一座城市有没有余地，看它有没有不锁的门。</blockquote><p>今年秋天，第二间会在河对岸开门。</p>
"""
ARABIC = """
<p>عاد الصيادون إلى الميناء القديم بعد سبع سنوات، ووجدوا المنارة كما تركوها.</p>
<p>ستفتح المدرسة البحرية أبوابها في الربيع.</p>
"""
SUMMARY = """
<ul><li>Saltby stopped mending its sea wall; a salt marsh grew in eleven months.</li>
<li>It costs less than the mending did.</li></ul>
"""
TITLES = (
    (0, "The parish that let the sea wall go", "en", BODY, True),
    (2, "旧邮局的灯又亮了，信箱里换了东西", "zh", CHINESE, True),
    (4, "A year of reading the meter by radio", "en", BODY, True),
    (1, "A pale arc around an ordinary star", "en", BODY, True),
    (3, "书架倒下的那天，我们重新排了一遍目录", "zh", CHINESE, False),
    (5, "How a night ferry keeps its timetable", "en", BODY, False),
    (6, "عودة الصيادين إلى الميناء القديم", "ar", ARABIC, False),
    (
        7,
        "Episode 12: counting waves",
        "en",
        "<p>Two keepers and a tape recorder, on the last manned light.</p>",
        True,
    ),
    (4, "Soldering in the rain, and other bad ideas", "en", BODY, False),
    (1, "The comet that came back late", "en", BODY, True),
    (0, "Glasswort, and how to tell it from samphire", "en", BODY, True),
    (2, "河埠头的三把椅子", "zh", CHINESE, True),
)


def furnish_reading(directory: Path, pictures: str, *, extra: int = 0) -> None:
    """Fill the database in `directory`; `pictures` is where `/1.svg` and the like can be fetched.

    `extra` further plain articles are older than all others.
    """
    now = time.time()
    with Store.open(f"sqlite:///{directory / 'headwater.db'}") as store, store.writing() as connection:
        sources = []
        for place, (name, folder) in enumerate(FEEDS):
            url = f"https://feed-{place}.example/feed"
            source = add_source(connection, name=name, type="rss.feed", url=url, now=now, folder=folder)
            change_source(connection, source.id, now, schedule_enabled=True)
            sources.append(source.id)
        for number in range(extra):
            url = f"https://feed-0.example/x{number}"
            plain = Item(f"x{number}", url=url, title=f"Note {number}", content="<p>A note.</p>")
            _write(connection, sources[number % len(sources)], plain, now - 10 * 24 * HOUR - number * HOUR)
        for place, (feed, title, language, body, has_picture) in reversed(list(enumerate(TITLES))):
            picture = f"{pictures}/{place % 6 + 1}.svg"
            item = Item(
                f"i{place}",
                url=f"https://feed-{feed}.example/{place}",
                title=title,
                author=("Mara Lind", "沈知白", "ليلى")[("en", "zh", "ar").index(language)],
                content=body.format(place="Saltby", picture=picture),
                language=language,
                image_url=picture if has_picture else None,
                enclosures=(Enclosure(f"{pictures}/waves.wav", "audio/wav", 9_000),) if feed == 7 else (),
                extras={
                    "chapters": [
                        {"start": "0:00", "title": "The light"},
                        {"start": "0:01", "title": "The waves"},
                    ]
                }
                if feed == 7
                else None,
            )
            _write(connection, sources[feed], item, now - HOUR * (0.4 + 3.1 * place))
        newest = _number_of(connection, "i0")
        whole = BODY.format(place="Saltby", picture=f"{pictures}/1.svg") * 2
        results = (
            Result("summary", body=SUMMARY, format="html"),
            Result("full_text", body=whole, format="html"),
            Result("translation", "zh", CHINESE, "html", "zh", {"title": "放手海堤的教区"}),
            Result("tags", data=["coast", "birds"]),
            Result("score", data={"score": 8.0, "reason": "Close to your interests."}),
        )
        write_results(connection, [NewResult(newest, 1, result, now - 120) for result in results])
        set_starred(connection, OWNER, [newest], True, now)
        set_read_later(connection, OWNER, [_number_of(connection, "i2")], 7.0, now)
        add_tags(connection, OWNER, [newest, _number_of(connection, "i3")], ["water"], now)
        mark_read(connection, OWNER, [_number_of(connection, "i5"), _number_of(connection, "i9")], True)


def _number_of(connection: Any, external_id: str) -> int:
    row = connection.exec_driver_sql(
        "SELECT id FROM items WHERE url LIKE ?", (f"%/{external_id[1:]}",)
    ).first()
    assert row is not None
    return int(row[0])


def _write(connection: Any, source_id: int, item: Item, at: float) -> None:
    key = item.external_id.encode()
    write_items(connection, [(source_id, (ItemChange("new", item, key, key, (), b"new", at),), at)])


def picture(number: int) -> str:
    """A scene in simple shapes."""
    sky, hill, near = (
        ("#f1d7ae", "#8fb0a4", "#5d8c6b"),
        ("#22364a", "#3c6478", "#d9a35a"),
        ("#e4ebdc", "#a9c29a", "#6d9a5e"),
        ("#171b36", "#4a4a86", "#e8c690"),
        ("#e9dccb", "#b98b6a", "#7c3f45"),
        ("#d5e8ec", "#6fb0bf", "#2f7387"),
    )[(number - 1) % 6]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 320" width="640" height="320">'
        f'<rect width="640" height="320" fill="{sky}"/>'
        f'<circle cx="{90 * number}" cy="80" r="34" fill="#fff" opacity=".7"/>'
        f'<path d="M0 190l120-70 90 60 110-80 120 70 90-40 110 60v130H0z" fill="{hill}"/>'
        f'<path d="M0 240c120-40 240 30 360-10s200-20 280 10v80H0z" fill="{near}"/></svg>'
    )


def waves() -> bytes:
    """Twenty seconds of silence as a WAV file."""
    samples = b"\x80" * 160_000
    header = b"RIFF" + (36 + len(samples)).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    form = b"\1\0\1\0" + (8_000).to_bytes(4, "little") * 2 + b"\1\0\x08\0"
    return header + form + b"data" + len(samples).to_bytes(4, "little") + samples
