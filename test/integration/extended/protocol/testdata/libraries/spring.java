// books URL TOKEN: a program with Spring's JdbcTemplate, which changes three books in a transaction.
import java.sql.SQLException;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.*;
import org.springframework.transaction.support.TransactionTemplate;

class Books {
    public static void main(String[] args) {
        String token = args[1];
        var source = new DriverManagerDataSource(args[0]);
        var jdbc = new JdbcTemplate(source);
        try {
            new TransactionTemplate(new DataSourceTransactionManager(source)).execute(status -> {
                if (!token.isEmpty()) {
                    // sqlfence {
                    jdbc.queryForObject("SELECT set_config('sqlfence.tokens', concat(?, ' ', txid_current()), true)", String.class, token);
                    // sqlfence }
                }
                jdbc.update("UPDATE books SET price = ? WHERE id = ?", 30, 1);
                jdbc.update("INSERT INTO books (id, title, price) VALUES (?, ?, ?)", 3, "three", 33);
                jdbc.update("DELETE FROM books WHERE id = ?", 2);
                return null;
            });
            System.out.println("ok");
        } catch (DataAccessException e) {
            System.out.println(((SQLException) e.getMostSpecificCause()).getSQLState()); // refusal
        }
    }
}
