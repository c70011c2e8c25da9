import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

// Java, JDBC. Connection: jdbc:mysql://db/shop or jdbc:mariadb://db/shop.
//   - setAutoCommit(false), and the same connection for both statements: else each is a transaction of its own.
//   - setBytes: the bytes stay what they are. setString converts the characters to the connection's charset.
//   - An id of your own is a String by setString: some drivers send a java.util.UUID as 16 bytes.
//   - Only the columns that you set: setNull in id, due_at, headers and the like is refused.
final class OrderPaid {
    static void payOrder(Connection connection, long order, byte[] payload) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement change = connection.prepareStatement("UPDATE shop_order SET paid = true WHERE id = ?");
             PreparedStatement message = connection.prepareStatement(
                     "INSERT INTO outbox (aggregatetype, aggregateid, type, payload) VALUES ('orders', ?, 'order_paid', ?)")) {
            change.setLong(1, order);
            change.executeUpdate();
            message.setString(1, Long.toString(order));
            message.setBytes(2, payload);
            message.executeUpdate();
            connection.commit();
        } catch (SQLException | RuntimeException e) {
            connection.rollback();
            throw e;
        }
    }
}
