package sealed_test

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/test/integration/harness"
)

// shapes are the forms of the table on PostgreSQL.
var shapes = map[string]string{
	"plain": "ALTER TABLE books ADD region text NOT NULL DEFAULT 'a'",
	"partitions": `DROP TABLE books;
		CREATE TABLE books (id integer, price integer, author integer, fence_token bigint NOT NULL DEFAULT 0, region text NOT NULL DEFAULT 'a', PRIMARY KEY (id, region)) PARTITION BY LIST (region);
		CREATE TABLE books_a (region text NOT NULL DEFAULT 'a', fence_token bigint NOT NULL DEFAULT 0, author integer, price integer, id integer NOT NULL);
		ALTER TABLE books ATTACH PARTITION books_a FOR VALUES IN ('a');
		CREATE TABLE books_b PARTITION OF books DEFAULT`,
	"a child": "ALTER TABLE books ADD region text NOT NULL DEFAULT 'a'; CREATE TABLE rare (PRIMARY KEY (id)) INHERITS (books)",
}

// shapeTriggers write to row 50 without a token, and ignore the refusal. They write to row 61 with the token of row 10.
const shapeTriggers = `
	ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors (id) ON DELETE CASCADE ON UPDATE SET NULL;
	CREATE FUNCTION touch(how integer) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN
		CASE how
			WHEN 0 THEN UPDATE books SET price = -1 WHERE id = 50;
			WHEN 1 THEN DELETE FROM books WHERE id = 50;
			WHEN 2 THEN UPDATE books SET price = -1, fence_token = 900 WHERE id = 50;
			WHEN 3 THEN INSERT INTO books (id, price, fence_token) VALUES (51, -1, 900);
			ELSE WITH d AS (DELETE FROM books WHERE id = 50 RETURNING id) UPDATE books SET price = -1 FROM d WHERE books.id = 50;
		END CASE;
		RETURN true;
	EXCEPTION WHEN SQLSTATE 'FT001' OR SQLSTATE 'FT002' OR SQLSTATE 'FT003' THEN RETURN true; END$$;
	CREATE FUNCTION after() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
		PERFORM touch(OLD.id % 5);
		RETURN NULL;
	END$$;
	CREATE FUNCTION before() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
		UPDATE books SET price = 888, fence_token = NEW.fence_token WHERE id = 61;
		RETURN NEW;
	END$$;
	CREATE TRIGGER after AFTER UPDATE OR DELETE ON books FOR EACH ROW WHEN (OLD.id < 12) EXECUTE FUNCTION after();
	CREATE TRIGGER before BEFORE UPDATE ON books FOR EACH ROW WHEN (OLD.id = 10) EXECUTE FUNCTION before();
	CREATE VIEW v AS SELECT * FROM books WHERE id < 40`

// A bare driver sends random statements to sealed tables. Each change of a row must come from a write that presents a
// valid token, and the seal must not refuse writes that present valid tokens.
func TestRandomStatements(t *testing.T) {
	for name, shape := range shapes {
		for tokens, rules := range map[string][]sqlfence.Rule{"row": nil, "ledger": {sqlfence.Ledger()}, "keys": {sqlfence.Key("id"), sqlfence.Ledger()},
			"row, from transactions": fromTransaction(), "ledger, from transactions": fromTransaction(sqlfence.Ledger()),
			"keys, from transactions": fromTransaction(sqlfence.Key("id"), sqlfence.Ledger())} {
			t.Run(name+", "+tokens, func(t *testing.T) {
				seed := harness.Seed(t)
				l := newUnsealed(t, harness.Bases[1], rules...)
				l.exec(t, shape)
				l.exec(t, "INSERT INTO authors (id) SELECT * FROM generate_series(1, 3); TRUNCATE books; INSERT INTO books (id, price, author, fence_token) SELECT n, 0, 1 + n % 3, n % 4 FROM generate_series(1, 12) AS n; INSERT INTO books (id, price) VALUES (50, 0), (61, 0); INSERT INTO fencing_tokens (name, token) SELECT concat('books/', n), 0 FROM generate_series(1, 61) AS n")
				l.exec(t, shapeTriggers)
				l.seal(t)
				conn, err := l.plain.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				a := &attacker{sqlWriter: &sqlWriter{r: rand.New(rand.NewPCG(seed, 1)), shape: name, keys: strings.HasPrefix(tokens, "keys"), tag: 1000}, t: t, conn: conn, seed: seed,
					ledger: !strings.HasPrefix(tokens, "row"), takes: strings.HasSuffix(tokens, "transactions")}
				if err := conn.QueryRowContext(t.Context(), "SELECT current_setting('server_version_num')::integer").Scan(&a.version); err != nil {
					t.Fatal(err)
				}
				for n := range harness.Rounds(t, 120) {
					a.newest = int64(7 + n/10) // from the ledger's token on, because no token falls
					a.round()
				}
				if !testing.Short() && a.landed < harness.Rounds(t, 120)/12 {
					t.Errorf("seed %d: only %d statements have changed something", seed, a.landed)
				}
			})
		}
	}
}

// A stock is the table's rows, by number and partition.
type stock map[string]struct {
	id          int
	price, mark int64
}

// An attacker sends random statements, and knows their permitted effects.
type attacker struct {
	*sqlWriter
	t      *testing.T
	conn   *sql.Conn
	seed   uint64
	ledger bool
	inTx   bool
	landed int

	takes bool  // the seal accepts a transaction's token
	given int64 // the transaction's token; 0 for none
	stray bool  // the session has a token, which the seal must not accept
}

// round sends one statement, or a transaction.
func (a *attacker) round() {
	if a.ledger {
		a.exec(fmt.Sprintf("UPDATE fencing_tokens SET token = %d + CASE WHEN name LIKE 'books/%%' THEN split_part(name, '/', 2)::integer %% 3 ELSE 0 END WHERE name LIKE 'books%%'", a.newest))
	}
	a.exec("RESET ALL")
	a.stray = false
	a.exec("SET enable_" + pick(a.r, "hashjoin", "nestloop", "mergejoin", "material", "indexscan", "sort") + " = off")
	if a.r.IntN(3) > 0 {
		a.forSession()
		a.send(a.statement())
		return
	}
	a.forSession()
	before := a.rows()
	a.exec("BEGIN")
	a.inTx = true
	fine := true
	for n := 1 + a.r.IntN(4); n > 0 && fine; n-- {
		fine = a.send(a.statement())
	}
	a.inTx, a.given = false, 0
	if fine && a.r.IntN(4) > 0 {
		_, err := a.conn.ExecContext(a.t.Context(), "COMMIT")
		if err == nil {
			return
		}
		if !a.takes || !strings.Contains(err.Error(), "sqlfence: ") { // the deferred check of writes after a savepoint
			a.t.Fatalf("seed %d: COMMIT: %v", a.seed, err)
		}
	}
	a.exec("ROLLBACK")
	if after := a.rows(); !maps.Equal(after, before) {
		a.t.Fatalf("seed %d: behind a rollback: %v, and before %v", a.seed, after, before)
	}
}

// send sends a statement and compares the rows before and after it. It reports whether the transaction may continue.
func (a *attacker) send(s script) bool {
	before := a.rows()
	if a.inTx {
		a.exec("SAVEPOINT before_it")
		a.forTransaction()
	}
	_, err := a.conn.ExecContext(a.t.Context(), s.text)
	if err != nil && strings.Contains(err.Error(), "sqlfence: ") && !a.forOtherTokens(err) && a.mayNotBeRefused(s, before) {
		a.t.Fatalf("seed %d: what proves its tokens is refused: %s: %v; there is %v", a.seed, s.text, err, before)
	}
	if err != nil && a.inTx {
		a.exec("ROLLBACK TO SAVEPOINT before_it")
	}
	given := a.given
	after := a.rows()
	for key, row := range before {
		if now, there := after[key]; !there && !a.mayDelete(s, row.id, row.mark) && !a.passes(given, row.id, row.mark) {
			a.t.Fatalf("seed %d: %s deletes %s, which has %d (%v)", a.seed, s.text, key, row.mark, err)
		} else if there && now != row && !a.mayWrite(s, row.id, row.mark, now.price, now.mark) && !(now.mark == given && a.passes(given, row.id, row.mark)) {
			a.t.Fatalf("seed %d: %s changes %s from %v to %v (%v)", a.seed, s.text, key, row, now, err)
		}
	}
	for key, row := range after {
		if _, there := before[key]; !there && !a.mayWrite(s, row.id, 0, row.price, row.mark) && !(row.mark == given && a.passes(given, row.id, 0)) {
			a.t.Fatalf("seed %d: %s adds %s, %v (%v)", a.seed, s.text, key, row, err)
		}
	}
	if !maps.Equal(before, after) {
		a.landed++
	}
	return err == nil || a.r.IntN(2) == 0
}

// passes reports whether a row with the stored token mark accepts a token.
func (a *attacker) passes(token int64, id int, mark int64) bool {
	return token == eachToken || token > 0 && token >= mark && (!a.ledger || token == a.newestOf(id))
}

// mayDelete reports whether the statement may delete the row: a DELETE of the row, or another DELETE of the same
// statement, presents a valid token. An UPDATE that moves a row between partitions counts as a DELETE of the row.
func (a *attacker) mayDelete(s script, id int, mark int64) bool {
	for _, writes := range s.statements {
		named, proven := false, false
		for _, w := range writes {
			deletes := w.verb == 'D' || w.verb == 'U' && a.shape == "partitions"
			named = named || deletes && slices.Contains(w.ids, id)
			proven = proven || deletes && a.passes(w.token, id, mark)
		}
		if named && proven {
			return true
		}
	}
	return false
}

// mayWrite reports whether a write of the statement may have stored this price and token in the row. An INSERT together
// with an UPDATE and a DELETE may look like the move of a row.
func (a *attacker) mayWrite(s script, id int, mark, price, stored int64) bool {
	for _, writes := range s.statements {
		deletes := slices.ContainsFunc(writes, func(w effect) bool { return w.verb == 'D' })
		moved := slices.ContainsFunc(writes, func(w effect) bool { return w.verb == 'U' && w.token == stored })
		for _, w := range writes {
			if a.shape == "partitions" && w.verb == 'I' && w.tag == price && deletes && moved {
				w.token = stored
			}
			mine := w.tag == price && slices.Contains(w.ids, id) || id == 61 && price == 888 && w.verb == 'U' && slices.Contains(w.ids, 10)
			if mine && w.token == stored && (a.passes(stored, id, mark) || a.passes(stored, id, 0) && a.mayDelete(s, id, mark)) {
				return true
			}
		}
	}
	return false
}

// forOtherTokens reports whether the seal has refused a COMMIT because the transaction's tokens, set without the
// transaction's number, were changed after a write that followed a savepoint.
func (a *attacker) forOtherTokens(err error) bool {
	return a.takes && a.inTx && strings.Contains(err.Error(), "was changed behind a write at a savepoint")
}

// mayNotBeRefused reports whether the seal must accept the statement: all of its writes present the same token, and no
// row has a newer one. It returns false in three cases where the seal may refuse such a statement:
//   - The session has a token. A trigger's write may be taken for a write under it, and is refused at the end.
//   - Between the statement's token and its write, a function sends a DELETE that meets no row and uses the token up.
//   - A statement deletes from a table and from a child or partition of it.
func (a *attacker) mayNotBeRefused(s script, rows stock) bool {
	if a.keys || a.stray {
		return false
	}
	highest, token, meets := int64(0), int64(0), false
	for _, row := range rows {
		highest, meets = max(highest, row.mark), meets || row.id == 50
	}
	if !meets && (strings.Contains(s.text, "touch(1)") || strings.Contains(s.text, "touch(4)")) {
		return false
	}
	for _, writes := range s.statements {
		deletes := 0
		for _, w := range writes {
			if w.verb == 'D' {
				deletes++
			}
			if deletes > 1 && a.shape != "plain" {
				return false
			}
			own := w.token
			if own == 0 {
				own = a.given
			}
			if token == 0 {
				token = own
			}
			if own != token || !a.passes(token, 0, highest) {
				return false
			}
		}
	}
	return true
}

// forTransaction sets the transaction's token or removes it.
func (a *attacker) forTransaction() {
	if !a.takes {
		return
	}
	a.given = pick(a.r, 0, a.newest, a.newest, max(1, a.newest-1), a.newest+1)
	a.exec("SELECT set_config('sqlfence.tokens', " + a.tokens(a.given) + pick(a.r, "", " || ' ' || txid_current()") + ", true)")
}

// forSession sometimes sets a token for the session, which the seal must not accept.
func (a *attacker) forSession() {
	if a.takes && a.r.IntN(2) == 0 {
		a.stray = true
		a.exec("SELECT set_config('sqlfence.tokens', " + a.tokens(a.newest) + pick(a.r, "", "", " || ' ' || txid_current()") + ", false)")
	}
}

// tokens is the SQL of a list of tokens.
func (a *attacker) tokens(value int64) string {
	switch {
	case value == 0:
		return "''"
	case a.keys:
		return fmt.Sprintf("(SELECT string_agg(format('books/%%s:%015d', n), ' ') FROM generate_series(1, 61) AS n)", value)
	}
	return fmt.Sprintf("'books:%015d'", value)
}

func (a *attacker) exec(query string) {
	a.t.Helper()
	if _, err := a.conn.ExecContext(a.t.Context(), query); err != nil {
		a.t.Fatalf("seed %d: %s: %v", a.seed, query, err)
	}
}

func (a *attacker) rows() stock {
	a.t.Helper()
	rows, err := a.conn.QueryContext(a.t.Context(), "SELECT concat(tableoid::regclass, ' ', id), id, price, fence_token FROM books")
	if err != nil {
		a.t.Fatal(err)
	}
	defer rows.Close()
	found := make(stock)
	for rows.Next() {
		var key string
		row := found[""]
		if err := rows.Scan(&key, &row.id, &row.price, &row.mark); err != nil {
			a.t.Fatal(err)
		}
		found[key] = row
	}
	if err := rows.Err(); err != nil {
		a.t.Fatal(err)
	}
	return found
}
