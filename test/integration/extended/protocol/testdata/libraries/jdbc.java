// books URL TOKEN: a program with JDBC, which changes three books in a transaction.
import java.sql.*;

class Books {
    public static void main(String[] args) throws Exception {
        String token = args[1];
        try (Connection c = DriverManager.getConnection(args[0])) {
            c.setAutoCommit(false);
            if (!token.isEmpty()) {
                // sqlfence {
                try (var s = c.prepareStatement("SELECT set_config('sqlfence.tokens', concat(?, ' ', txid_current()), true)")) {
                    s.setString(1, token); s.executeQuery();
                }
                // sqlfence }
            }
            try (var s = c.prepareStatement("UPDATE books SET price = ? WHERE id = ?")) {
                s.setLong(1, 30);
                s.setLong(2, 1);
                s.executeUpdate();
            }
            try (var s = c.prepareStatement("INSERT INTO books (id, title, price) VALUES (?, ?, ?)")) {
                s.setLong(1, 3);
                s.setString(2, "three");
                s.setLong(3, 33);
                s.executeUpdate();
            }
            try (var s = c.prepareStatement("DELETE FROM books WHERE id = ?")) {
                s.setLong(1, 2);
                s.executeUpdate();
            }
            c.commit();
            System.out.println("ok");
        } catch (SQLException e) {
            System.out.println(e.getSQLState()); // refusal
        }
    }
}
