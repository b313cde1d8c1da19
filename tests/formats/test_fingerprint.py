"""Near-equal texts have near-equal fingerprints, others do not."""

from headwater.formats.fingerprint import distance, fingerprint

TEXT = " ".join(
    f"the {word} river rose past the {word} mill" for word in ("old", "wide", "green", "lower", "quiet") * 8
)


def test_fingerprint_of_the_same_text_is_the_same_whatever_its_case_and_spaces() -> None:
    assert fingerprint(TEXT) == fingerprint("  " + TEXT.upper().replace(" ", "\n "))


def test_fingerprint_of_a_text_with_one_word_changed_is_near() -> None:
    near = fingerprint(TEXT + " today")
    assert distance(fingerprint(TEXT)["simhash"], near["simhash"]) <= 8


def test_fingerprint_of_another_text_is_far() -> None:
    other = fingerprint(" ".join(f"shares of company {n} fell by {n} percent" for n in range(40)))
    assert distance(fingerprint(TEXT)["simhash"], other["simhash"]) > 15


def test_fingerprint_of_chinese_goes_by_characters() -> None:
    one, other = fingerprint("河水上涨了三天" * 5), fingerprint("河水上涨了三天" * 5 + "今天")
    assert one["words"] == 35
    assert distance(one["simhash"], other["simhash"]) <= 20


def test_fingerprint_of_nothing_is_one_too() -> None:
    assert fingerprint("")["words"] == 0
