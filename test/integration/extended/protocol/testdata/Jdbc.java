import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

public class Jdbc {
    // {page}

    interface Write { void run() throws SQLException; }

    static void refused(String what, Write write) {
        try {
            write.run();
            System.out.println(what + ": done");
        } catch (SQLException e) {
            String says = refusal(e);
            System.out.println(what + ": " + (says == null ? "None" : says));
        }
    }

    static void execute(Connection c, String query) throws SQLException {
        try (var s = c.createStatement()) {
            s.execute(query);
        }
    }

    public static void main(String[] args) throws SQLException {
        try (Connection c = DriverManager.getConnection(args[0])) {
            long token = takeToken(c);
            System.out.println("token " + token);
            c.setAutoCommit(false);
            setPrice(c, 1, 30, token);
            c.commit();
            c.setAutoCommit(true);
            System.out.println("set");
            refused("without a token", () -> execute(c, "UPDATE books SET price = 1 WHERE id = 1"));
            refused("with an older one", () -> setPrice(c, 1, 1, token - 1));
            refused("with a higher one", () -> setPrice(c, 1, 1, token + 1));
            refused("removed without a token", () -> execute(c, "DELETE FROM books WHERE id = 2"));
            refused("removed with an older one", () -> remove(c, 2, token - 1));
            remove(c, 2, token);
            System.out.println("removed");
            refused("something else", () -> execute(c, "SELECT 1/0"));
        }
    }
}
