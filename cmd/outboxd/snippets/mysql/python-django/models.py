import uuid

from django.db import models, transaction


class ShopOrder(models.Model):
    paid = models.BooleanField(default=False)

    class Meta:
        managed = False
        db_table = "shop_order"


# Python, Django. managed = False: the tables of the outbox are outboxd's, and no migration of yours makes or drops them.
#   - Django makes the id: it writes every field of the model, and an explicit None in it would be refused.
#   - payload is bytes: they stay what they are, whatever charset OPTIONS has.
class OutboxMessage(models.Model):
    id = models.CharField(primary_key=True, max_length=36, default=lambda: str(uuid.uuid4()))
    aggregatetype = models.TextField()
    aggregateid = models.TextField()
    type = models.TextField()
    payload = models.BinaryField()

    class Meta:
        managed = False
        db_table = "outbox"


#   - Both statements inside atomic, on the same database: with several, using= has to be the same everywhere.
#   - Not in transaction.on_commit: a crash before it runs is the very gap that the outbox closes.
@transaction.atomic
def pay_order(order: int, payload: bytes):
    ShopOrder.objects.filter(pk=order).update(paid=True)
    OutboxMessage.objects.create(aggregatetype="orders", aggregateid=str(order), type="order_paid", payload=payload)
