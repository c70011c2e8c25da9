import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

// Java, JDBC. Connection: jdbc:postgresql://db/shop.
//   - setAutoCommit(false), and the same connection for both statements: else each is a transaction of its own.
//   - setBytes with convert_from: the bytes stay what they are. setString does as well, where the payload is a String.
//   - An id of your own is a java.util.UUID by setObject; as a String it wants CAST(? AS uuid).
//   - Only the columns that you set: setNull in id, due_at, headers and the like is refused.
final class OrderPaid {
    static void payOrder(Connection connection, long order, byte[] payload) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement change = connection.prepareStatement("UPDATE shop_order SET paid = true WHERE id = ?");
             PreparedStatement message = connection.prepareStatement(
                     "INSERT INTO outbox (aggregatetype, aggregateid, type, payload)"
                     + " VALUES ('orders', ?, 'order_paid', convert_from(?, 'UTF8'))")) {
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
