import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.util.UUID;

// Java, JPA (Hibernate).
//   - Only the columns that you set are mapped: a null in due_at, headers and the like would be written, and is refused
//     (or Hibernate's @DynamicInsert, which leaves out what is null).
//   - payload is a String: a byte[] would be bound as bytea, which is for the column payload_bytes.
//   - No hbm2ddl and no @PreUpdate on it: the table is outboxd's, and a row is not changed after the commit.
@Entity
@Table(name = "outbox")
class OutboxMessage {
    @Id
    @Column(updatable = false)
    UUID id = UUID.randomUUID();
    String aggregatetype;
    String aggregateid;
    String type;
    String payload;
}

//   - persist, not merge; and flush first: the order's row is locked before its message gets its place.
//   - Not in @PostPersist or after the commit: a crash in between is the very gap that the outbox closes.
final class OrderPaid {
    static void payOrder(EntityManager manager, long order, String payload) {
        manager.createNativeQuery("UPDATE shop_order SET paid = true WHERE id = ?1").setParameter(1, order).executeUpdate();
        OutboxMessage message = new OutboxMessage();
        message.aggregatetype = "orders";
        message.aggregateid = Long.toString(order);
        message.type = "order_paid";
        message.payload = payload;
        manager.persist(message);
    }
}
