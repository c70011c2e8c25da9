import java.sql.Connection;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import org.springframework.transaction.support.TransactionTemplate;

/** Calls the snippet of Spring's JdbcTemplate. */
final class JavaSpring {
    public static void main(String[] args) throws Exception {
        Shop.payEach((port, charset, order, payload) -> {
            try (Connection connection = Shop.connect(port, charset)) {
                SingleConnectionDataSource source = new SingleConnectionDataSource(connection, true);
                TransactionTemplate transaction = new TransactionTemplate(new DataSourceTransactionManager(source));
                new OrderPaid(transaction, new JdbcTemplate(source)).payOrder(order, payload);
            }
        });
    }
}
