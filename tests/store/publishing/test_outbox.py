"""What is put into the outbox is sent once for its key, in batches where its target wants that."""

from typing import Any

import pytest
from sqlalchemy import func, select

from headwater.errors import ConflictError, InputError, NotFoundError
from headwater.store.core.database import Store
from headwater.store.core.tables import deliveries, waiting_messages
from headwater.store.publishing.outbox import (
    DeliveryEnd,
    NewDelivery,
    claim_deliveries,
    due_batches,
    forget_deliveries,
    get_delivery,
    list_deliveries,
    next_delivery_at,
    put_in_outbox,
    retry_delivery,
    settle_deliveries,
    take_batch,
)
from headwater.store.publishing.targets import (
    Target,
    add_target,
    change_target,
    get_target,
    list_targets,
    refuse_unknown_targets,
    remove_target,
)
from tests.clock import NOON

HOOK = Target("hook", "webhook", {"url": "https://a.example/"})


def message(key: str, target: str = "hook", **more: Any) -> NewDelivery:
    return NewDelivery(target, key, f"Title {key}", f"Text {key}", **more)


def test_targets_are_added_changed_listed_and_removed(store: Store) -> None:
    with store.writing() as connection:
        added = add_target(connection, HOOK, NOON)
        assert (added.name, added.config, added.batch_items) == ("hook", {"url": "https://a.example/"}, 20)
        with pytest.raises(ConflictError, match="there is a target hook already"):
            add_target(connection, HOOK, NOON)
        with pytest.raises(InputError, match="cannot be a target's name"):
            add_target(connection, Target("a b", "webhook"), NOON)
        assert change_target(connection, "hook", NOON + 1, batch_minutes=5.0).batch_minutes == 5.0
        assert [target.name for target in list_targets(connection)] == ["hook"]
        refuse_unknown_targets(connection, ["hook"])
        with pytest.raises(InputError, match="there is no target other"):
            refuse_unknown_targets(connection, ["hook", "other"])
        put_in_outbox(connection, [message("1")], "alert", NOON)
        remove_target(connection, "hook")
        assert list_deliveries(connection) == []
        with pytest.raises(NotFoundError):
            get_target(connection, "hook")


def test_message_is_put_into_the_outbox_once_for_its_key(store: Store) -> None:
    with store.writing() as connection:
        add_target(connection, HOOK, NOON)
        put_in_outbox(connection, [message("1"), message("1"), message("2", "unknown")], "digest", NOON)
        put_in_outbox(connection, [message("1")], "digest", NOON + 1)
        [found] = list_deliveries(connection)
        assert (found.key, found.kind, found.status, found.due_at) == ("1", "digest", "pending", NOON)


def test_delivery_is_claimed_settled_and_claimed_again_when_its_lease_is_over(store: Store) -> None:
    with store.writing() as connection:
        add_target(connection, HOOK, NOON)
        put_in_outbox(connection, [message("1", data={"a": 1}), message("2")], "item", NOON)
        assert next_delivery_at(connection) == NOON
        [first, second] = claim_deliveries(connection, 5, now=NOON, lease_until=NOON + 60)
        assert (first.delivery.key, first.delivery.data, first.target.name) == ("1", {"a": 1}, "hook")
        assert claim_deliveries(connection, 5, now=NOON + 59, lease_until=NOON + 99) == []
        settle_deliveries(connection, [DeliveryEnd(first, "sent", NOON + 1)])
        [again] = claim_deliveries(connection, 5, now=NOON + 60, lease_until=NOON + 120)
        assert again.delivery.id == second.delivery.id
        settle_deliveries(connection, [DeliveryEnd(second, "failed", NOON + 61, error_message="late")])
        assert get_delivery(connection, second.delivery.id).status == "pending", "its lease had passed on"
        settle_deliveries(connection, [DeliveryEnd(again, "pending", NOON + 61, NOON + 70, "busy")])
        assert next_delivery_at(connection) == NOON + 70
        [third] = claim_deliveries(connection, 5, now=NOON + 70, lease_until=NOON + 120)
        assert third.delivery.attempts == 2
        settle_deliveries(connection, [DeliveryEnd(third, "failed", NOON + 71, error_message="no")])
        assert [
            (each.status, each.error_message) for each in list_deliveries(connection, status="failed")
        ] == [("failed", "no")]
        retry_delivery(connection, third.delivery.id, NOON + 80)
        assert next_delivery_at(connection) == NOON + 80
        with pytest.raises(ConflictError):
            retry_delivery(connection, first.delivery.id, NOON)
        assert forget_deliveries(connection, NOON + 100) == 1
        assert connection.execute(select(func.count()).select_from(deliveries)).scalar_one() == 1


def test_items_for_a_target_with_batches_wait_and_other_messages_do_not(store: Store) -> None:
    with store.writing() as connection:
        add_target(connection, Target("hook", "webhook", {}, batch_minutes=60.0, batch_items=2), NOON)
        put_in_outbox(connection, [message(str(number)) for number in range(3)], "item", NOON)
        put_in_outbox(connection, [message("0")], "item", NOON)
        put_in_outbox(connection, [message("alert")], "alert", NOON)
        assert [each.key for each in list_deliveries(connection)] == ["alert"]
        assert due_batches(connection, NOON) == ["hook"], "none was sent yet"
        assert [each.key for each in take_batch(connection, "hook", NOON)] == ["0", "1"]
        assert take_batch(connection, "hook", NOON + 3_599) == []
        assert due_batches(connection, NOON + 3_599) == []
        assert [each.key for each in take_batch(connection, "hook", NOON + 3_600)] == ["2"]
        assert take_batch(connection, "hook", NOON + 9_999) == []
        assert take_batch(connection, "unknown", NOON) == []


def test_messages_of_a_target_that_no_longer_batches_are_due_at_once(store: Store) -> None:
    with store.writing() as connection:
        add_target(connection, Target("hook", "webhook", {}, batch_minutes=60.0), NOON)
        put_in_outbox(connection, [message("1")], "item", NOON)
        take_batch(connection, "hook", NOON)
        put_in_outbox(connection, [message("2")], "item", NOON)
        change_target(connection, "hook", NOON, batch_minutes=None)
        assert due_batches(connection, NOON + 1) == ["hook"]
        assert len(take_batch(connection, "hook", NOON + 1)) == 1
        assert connection.execute(select(func.count()).select_from(waiting_messages)).scalar_one() == 0
