import java.sql.Connection;

/** Calls the snippet of JDBC. */
final class Java {
    public static void main(String[] args) throws Exception {
        Shop.payEach((port, charset, order, payload) -> {
            try (Connection connection = Shop.connect(port, charset)) {
                OrderPaid.payOrder(connection, order, payload);
            }
        });
    }
}
