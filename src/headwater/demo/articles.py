"""Invented titles and articles, in English and Chinese, put together from parts. Pure."""

from random import Random

_TITLES = {
    ("water", "en"): (
        (
            "The river",
            "Harbour mouth",
            "The north pier",
            "Low water",
            "The ferry",
            "A spring tide",
            "The lock",
        ),
        (
            "opens early this year",
            "closes for dredging until Friday",
            "brings back the eels",
            "is measured again after forty years",
            "holds against the wind",
            "waits for the pilot",
            "leaves a new sandbank",
        ),
    ),
    ("science", "en"): (
        (
            "A faint second ring",
            "The beaver ledger",
            "Salt marsh, second year",
            "What moss remembers",
            "A slow comet",
        ),
        (
            "found in old plates",
            "and the map that was wrong",
            "seen through borrowed glass",
            "counted by hand",
            "and why the error bars matter",
            "explained to a patient reader",
        ),
    ),
    ("code", "en"): (
        ("sluice 4.2", "The scheduler", "What a 304 is worth", "A parser", "Timer slack", "An index"),
        (
            "learns to wait",
            "is out, with fewer locks",
            "after a year of polite polling",
            "rewritten in an afternoon, debugged for a month",
            "and the bug that only sleeps on Sundays",
        ),
    ),
    ("town", "en"): (
        ("The library", "Market street", "The orchestra", "Night buses", "The old mill", "A school garden"),
        (
            "finds a lost map",
            "asks for volunteers",
            "breaks its own record",
            "moves next door",
            "will stay open on Mondays",
            "gets a second chance",
        ),
    ),
    ("town", "zh"): (
        ("城东图书馆", "老码头", "乐团", "夜班公交", "花园小学", "集市"),
        ("找回遗失的地图", "征集志愿者", "刷新了自己的纪录", "搬到隔壁", "周一照常开放", "迎来第二次机会"),
    ),
    ("code", "zh"): (
        ("三百块钱的旧手机", "一个调度器", "解析器", "县里的气象站", "一行配置"),
        ("撑起了整个网络", "学会了等待", "省下八成请求", "用一个下午重写，调试了一个月", "背后的小故事"),
    ),
}
_SENTENCES = {
    "en": (
        "No one had planned it, and yet everything was ready when the doors opened.",
        "The figures come from three winters of careful notes, kept in pencil and checked twice.",
        "On the map of 1962 the line looks like a dropped thread; on the map of 1984 it looks like a ruler.",
        "“We waited for the right morning,” the keeper said, “and then it took an hour.”",
        "What lay between was a summer of excavators, a grant, and a promise.",
        "Two farms gave up a meadow; they are paid by the cubic metre of water they hold.",
        "The next measurement is due in spring, and the river will have the last word.",
        "Everyone who wants to help brings boots, patience and a thermos.",
    ),
    "zh": (
        "没有人事先计划，但开门那天一切都已就绪。",
        "数据来自三个冬天的记录，用铅笔写下，又核对了两遍。",
        "在旧地图上，那条线像一根落下的线头；在新地图上，它像一把尺子。",
        "“我们等的是合适的早晨，”管理员说，“之后只用了一个小时。”",
        "志愿者带着靴子、耐心和一壶热茶，从清晨忙到傍晚。",
        "下一次测量定在春天，最后的答案要看河水怎么说。",
    ),
}


def write_article(theme: str, language: str, rng: Random) -> tuple[str, str]:
    """A title and an HTML body."""
    beginnings, ends = _TITLES.get((theme, language)) or _TITLES["town", language]
    space = " " if language == "en" else ""
    title = f"{rng.choice(beginnings)}{space}{rng.choice(ends)}"
    sentences = rng.sample(_SENTENCES[language], k=min(6, len(_SENTENCES[language])))
    first, second = space.join(sentences[:3]), space.join(sentences[3:])
    return title, f"<p>{first}</p><p>{second}</p>"
