import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A web server around receive of docs/receiving.md, and a charge. Its port is the argument. */
final class Server {
    static final Pattern COMMAND = Pattern.compile("\\{\"order\":(\\d+)(?:,\"until\":\"([^\"]+)\")?}");

    static String charge(Connection db, byte[] body) throws SQLException {
        Matcher command = COMMAND.matcher(new String(body, StandardCharsets.UTF_8));
        if (!command.matches()) {
            throw new IllegalArgumentException("no order");
        }
        try (PreparedStatement insert = db.prepareStatement("INSERT INTO charge (order_id) VALUES (?) RETURNING number")) {
            insert.setLong(1, Long.parseLong(command.group(1)));
            ResultSet made = insert.executeQuery();
            made.next();
            if (command.group(2) != null) { // so long does the work take
                Files.createFile(Path.of(command.group(2) + ".begun"));
                while (!Files.exists(Path.of(command.group(2)))) {
                    Thread.sleep(20);
                }
            }
            return "{\"id\":\"charge-" + made.getLong(1) + "\"}";
        } catch (IOException | InterruptedException e) {
            throw new SQLException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        String url = "jdbc:postgresql://" + System.getenv("SHOP_HOST") + ":" + System.getenv("SHOP_PORT") + "/" + System.getenv("SHOP_DATABASE");
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            Map<String, String> headers = new HashMap<>();
            exchange.getRequestHeaders().forEach((name, values) -> headers.put(name.toLowerCase(Locale.ROOT), values.get(0)));
            Receive.Answer answer;
            try (Connection db = DriverManager.getConnection(url, System.getenv("SHOP_USER"), System.getenv("SHOP_PASSWORD"))) {
                answer = Receive.receive(db, headers, exchange.getRequestBody().readAllBytes(), Server::charge);
            } catch (Exception e) {
                System.err.println(e);
                answer = new Receive.Answer(500, "it did not work");
            }
            byte[] text = answer.text().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(answer.status(), text.length);
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(text);
            }
        });
        server.start();
    }
}
