import sqlalchemy as sa
from sqlalchemy.orm import Session, declarative_base

Base = declarative_base()


class ShopOrder(Base):
    __tablename__ = "shop_order"
    id = sa.Column(sa.BigInteger, primary_key=True)
    paid = sa.Column(sa.Boolean)


# Python, SQLAlchemy. A plain table that is not in Base.metadata: Alembic neither makes nor drops it.
#   - Only the columns that you set: a mapped class would write None into the others, and that is refused.
outbox = sa.table("outbox", sa.column("aggregatetype"), sa.column("aggregateid"), sa.column("type"), sa.column("payload"))


#   - One session, one transaction: an event after_commit is the very gap that the outbox closes.
#   - flush: the order's row is locked before its message gets its place, so that messages of one order keep their order.
#   - payload is bytes, not str: they stay what they are, whatever charset the URL has.
def pay_order(session: Session, order: int, payload: bytes):
    with session.begin():
        session.get(ShopOrder, order).paid = True
        session.flush()
        session.execute(
            sa.insert(outbox).values(
                aggregatetype="orders",
                aggregateid=str(order),
                type="order_paid",
                payload=payload,
            )
        )
