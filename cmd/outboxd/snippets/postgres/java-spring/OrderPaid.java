import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;

// Java, Spring's JdbcTemplate, of the same DataSource as the transaction manager.
//   - @Transactional on the method does what TransactionTemplate does, but not where its own class calls it (self-invocation).
//   - Not in a TransactionalEventListener after the commit: a crash before it runs is the very gap that the outbox closes.
//   - byte[] with convert_from: the bytes stay what they are.
//   - Only the columns that you set: an explicit null in id, due_at, headers and the like is refused.
final class OrderPaid {
    private final TransactionTemplate transaction;
    private final JdbcTemplate jdbc;

    OrderPaid(TransactionTemplate transaction, JdbcTemplate jdbc) {
        this.transaction = transaction;
        this.jdbc = jdbc;
    }

    void payOrder(long order, byte[] payload) {
        transaction.execute(status -> {
            jdbc.update("UPDATE shop_order SET paid = true WHERE id = ?", order);
            return jdbc.update("INSERT INTO outbox (aggregatetype, aggregateid, type, payload)"
                    + " VALUES ('orders', ?, 'order_paid', convert_from(?, 'UTF8'))", Long.toString(order), payload);
        });
    }
}
