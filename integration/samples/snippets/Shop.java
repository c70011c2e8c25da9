import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.Scanner;

/**
 * Pays an order for each line of the standard input: port, character set, order, file of the payload. Says of each whether it
 * is paid.
 */
final class Shop {
    interface Payment {
        void pay(String port, String charset, long order, byte[] payload) throws Exception;
    }

    static final boolean POSTGRES = System.getenv("SHOP_DIALECT").equals("postgres");
    static final String USER = System.getenv("SHOP_USER");
    static final String PASSWORD = System.getenv("SHOP_PASSWORD");

    static String url(String port) {
        String at = System.getenv("SHOP_HOST") + ":" + port + "/" + System.getenv("SHOP_DATABASE");
        return POSTGRES ? "jdbc:postgresql://" + at + "?sslmode=disable" : "jdbc:mariadb://" + at;
    }

    /** A connection in a session of that character set; the driver of PostgreSQL knows none but UTF-8. */
    static Connection connect(String port, String charset) throws Exception {
        Connection connection = DriverManager.getConnection(url(port), USER, PASSWORD);
        if (!POSTGRES) {
            try (Statement names = connection.createStatement()) {
                names.execute("SET NAMES " + charset);
            }
        }
        return connection;
    }

    static void payEach(Payment payment) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNext()) {
            String port = lines.next(), charset = lines.next(), order = lines.next(), file = lines.next();
            try {
                payment.pay(port, charset, Long.parseLong(order), Files.readAllBytes(Path.of(file)));
                System.out.println(order + " paid");
            } catch (Exception e) {
                System.out.println(order + " not paid: " + e);
            }
        }
    }
}
