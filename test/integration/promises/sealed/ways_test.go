package sealed_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence"
	"github.com/sqlfence/sqlfence/schema"
	"github.com/sqlfence/sqlfence/test/integration/harness"
	"github.com/sqlfence/sqlfence/verify"
)

// A way is a superuser's statements by which a stored token could get a value that the seal's triggers haven't
// compared. The last statement is refused or succeeds; verify.Check finds the resulting defect.
type way struct {
	name       string
	statements string // separated by " ;; "
	says       string // part of the refusal; empty if the statements succeed
	finds      string // part of Verify's finding; empty if only docs/data/rules.md mentions the way
	books      string // the rows that the statements leave
}

const (
	asIs    = "1:10@7 2:10@7 3:10@0"
	written = "1:99@3 2:10@7 3:10@0"
)

var ways = []way{
	{"a replica's role", "SET session_replication_role = replica ;; UPDATE books SET price = 99, fence_token = 3 WHERE id = 1", unproven, "", asIs},
	{"a replica's role, negative", "SET session_replication_role = replica ;; UPDATE books SET price = 99, fence_token = -3 WHERE id = 1", "stale token 3", "", asIs},
	{"a replica's role, deleted", "SET session_replication_role = replica ;; DELETE FROM books", unproven, "", asIs},
	{"a replica's role, emptied", "SET session_replication_role = replica ;; TRUNCATE books", unproven, "", asIs},
	{"a function with a replica's role", "CREATE FUNCTION f() RETURNS void LANGUAGE sql SET session_replication_role = replica AS 'UPDATE books SET price = 99, fence_token = 3 WHERE id = 1' ;; SELECT f()", unproven, "session_replication_role", asIs},
	{"triggers switched off", "ALTER TABLE books DISABLE TRIGGER USER ;; UPDATE books SET price = 99, fence_token = 3 WHERE id = 1", "", "isn't whole", written},
	{"triggers of a replica alone", `ALTER TABLE books ENABLE REPLICA TRIGGER "~sqlfence_write" ;; UPDATE books SET price = 99, fence_token = 3 WHERE id = 1`, "", "isn't whole", written},
	{"triggers switched off for a while", "ALTER TABLE books DISABLE TRIGGER ALL ;; UPDATE books SET price = 99, fence_token = 3 WHERE id = 1 ;; ALTER TABLE books ENABLE TRIGGER ALL", "", "isn't whole", written},
	{"triggers of an origin alone", `ALTER TABLE books ENABLE TRIGGER "~sqlfence_write" ;; SET session_replication_role = replica ;; UPDATE books SET price = 99, fence_token = 3 WHERE id = 1`, "", "isn't whole", written},
	{"a trigger of another name", `ALTER TRIGGER "~sqlfence_delete" ON books RENAME TO mine`, "", "isn't whole", asIs},
	{"another type of the column", "ALTER TABLE books ALTER fence_token TYPE numeric USING 3", "", "isn't what Seal would create", "1:10@3 2:10@3 3:10@3"},
	{"another type of the column, negative", "ALTER TABLE books ALTER fence_token TYPE bigint USING -3", "sqlfence_mark", "", asIs},
	{"another column by its name", "ALTER TABLE books DROP fence_token ;; ALTER TABLE books ADD fence_token bigint NOT NULL DEFAULT 3", "", "isn't whole", "1:10@3 2:10@3 3:10@3"},
	{"a column of another name", "ALTER TABLE books RENAME fence_token TO mark ;; UPDATE books SET price = 99", `record "new" has no field "fence_token"`, "", ""},
	{"a negative default", "ALTER TABLE books ALTER fence_token SET DEFAULT -8 ;; INSERT INTO books (id) VALUES (9)", "", "", asIs + " 9:10@8"},
	{"a copy of the table", "CREATE TABLE other AS TABLE books ;; DROP TABLE books ;; ALTER TABLE other RENAME TO books ;; UPDATE books SET price = 99, fence_token = 3 WHERE id = 1", "", "but isn't sealed", written},
	{"a table like it", "CREATE TABLE other (LIKE books INCLUDING ALL) ;; ALTER TABLE books RENAME TO old ;; ALTER TABLE other RENAME TO books ;; INSERT INTO books VALUES (9, 99, NULL, 3)", "", "but isn't sealed", "9:99@3"},
	{"a child", "CREATE TABLE rare () INHERITS (books) ;; INSERT INTO rare VALUES (9, 99, NULL, 3)", "", "isn't whole", asIs + " 9:99@3"},
	{"a child that was a table, negative", "CREATE TABLE rare (LIKE books) ;; INSERT INTO rare VALUES (9, 99, NULL, -3) ;; ALTER TABLE rare INHERIT books", "sqlfence_mark", "", asIs},
	{"a child that was a table, with its constraint", "CREATE TABLE rare (LIKE books INCLUDING CONSTRAINTS) ;; INSERT INTO rare VALUES (9, 99, NULL, 3) ;; ALTER TABLE rare INHERIT books", "", "isn't whole", asIs + " 9:99@3"},
	{"a parent", "CREATE TABLE papers (LIKE books) ;; ALTER TABLE books INHERIT papers ;; UPDATE papers SET price = 99", unproven, "isn't whole", asIs},
	{"a parent that is emptied", "CREATE TABLE papers (LIKE books) ;; ALTER TABLE books INHERIT papers ;; TRUNCATE papers", unproven, "isn't whole", asIs},
	{"copy freeze", "BEGIN ;; SAVEPOINT a ;; COPY books (id) FROM PROGRAM 'echo 9' WITH (FREEZE)", "FREEZE", "", asIs},
	{"set null", "ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors ON DELETE SET NULL ;; DELETE FROM authors", unproven, "", asIs},
	{"set default", "ALTER TABLE books ALTER author SET DEFAULT NULL, ADD FOREIGN KEY (author) REFERENCES authors ON DELETE SET DEFAULT ;; DELETE FROM authors", unproven, "", asIs},
	{"update cascade", "ALTER TABLE books ADD FOREIGN KEY (author) REFERENCES authors ON UPDATE CASCADE ;; UPDATE authors SET id = 5", unproven, "", asIs},
	{"a rule instead", "CREATE VIEW v AS SELECT * FROM books ;; CREATE RULE r AS ON UPDATE TO v DO INSTEAD UPDATE books SET price = NEW.price, fence_token = NEW.fence_token WHERE id = OLD.id ;; UPDATE v SET price = 99", unproven, "", asIs},
	{"a rule that makes it a DELETE", "CREATE RULE r AS ON UPDATE TO authors DO INSTEAD DELETE FROM books WHERE author = OLD.id ;; UPDATE authors SET name = 'y'", unproven, "", asIs},
	{"a view of a view", "CREATE VIEW v AS SELECT * FROM books WHERE id < 9 WITH CHECK OPTION ;; CREATE VIEW w AS SELECT id, fence_token AS f, price FROM v ;; UPDATE w SET price = 99, f = 3", unproven, "", asIs},
	{"a view's trigger", "CREATE VIEW v AS SELECT * FROM books ;; CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE books SET price = NEW.price; RETURN NEW; END' ;; CREATE TRIGGER t INSTEAD OF UPDATE ON v FOR EACH ROW EXECUTE FUNCTION f() ;; UPDATE v SET price = 99", unproven, "", asIs},
	{"cluster", "CLUSTER books USING books_pkey", "", "", asIs},
	{"vacuum full", "VACUUM (FULL, FREEZE) books", "", "", asIs},
	{"a generated column", "ALTER TABLE books ADD g bigint GENERATED ALWAYS AS (-fence_token) STORED ;; UPDATE books SET price = 99, fence_token = g WHERE id = 3", unproven, "", asIs},
}

func TestWays(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			l := newUnsealed(t, harness.Bases[1])
			l.exec(t, "INSERT INTO authors (id, name) VALUES (1, 'x')")
			l.exec(t, "UPDATE books SET author = 1 WHERE id = 1")
			l.seal(t)
			w.run(t, l)
		})
	}
}

// partWays are ways for a table with partitions.
var partWays = []way{
	{"a table as a partition", "CREATE TABLE more (LIKE books) ;; ALTER TABLE books ATTACH PARTITION more FOR VALUES FROM (10) TO (20)", "sqlfence_mark", "", asIs},
	{"a table as a partition, negative", "CREATE TABLE more (LIKE books) ;; INSERT INTO more VALUES (11, 99, -3) ;; ALTER TABLE more ADD CONSTRAINT sqlfence_mark CHECK (fence_token >= 0) NOT VALID ;; ALTER TABLE books ATTACH PARTITION more FOR VALUES FROM (10) TO (20)", "sqlfence_mark", "", asIs},
	{"a table as a partition, with its constraint", "CREATE TABLE more (LIKE books INCLUDING CONSTRAINTS) ;; INSERT INTO more VALUES (11, 99, 3) ;; ALTER TABLE books ATTACH PARTITION more FOR VALUES FROM (10) TO (20)", "", "isn't whole", asIs + " 11:99@3"},
	{"a row of a new partition", "CREATE TABLE more PARTITION OF books FOR VALUES FROM (10) TO (20) ;; INSERT INTO more VALUES (11, 99, 3)", unproven, "isn't whole", asIs},
	{"a proven delete before one in a new partition", "INSERT INTO books VALUES (11, 99, -8) ;; CREATE TABLE more PARTITION OF books FOR VALUES FROM (12) TO (20) ;; BEGIN ;; DELETE FROM books WHERE id = 11 AND set_config('sqlfence.delete_books', '8', true) IS NOT NULL ;; DELETE FROM books WHERE id = 1", unproven, "isn't whole", asIs + " 11:99@8"},
	{"a partition that was away", "ALTER TABLE books DETACH PARTITION few ;; UPDATE few SET price = 99, fence_token = 3 WHERE id = 1 ;; ALTER TABLE books ATTACH PARTITION few FOR VALUES FROM (0) TO (10)", "", "", written},
	{"a partition that is emptied", "TRUNCATE few", "sqlfence: table few is sealed", "", asIs},
	{"a partition's trigger switched off", `ALTER TABLE few DISABLE TRIGGER "~sqlfence_write" ;; UPDATE books SET price = 99, fence_token = 3 WHERE id = 1`, "", "isn't whole", written},
}

func TestWaysOfPartitions(t *testing.T) {
	for _, w := range partWays {
		t.Run(w.name, func(t *testing.T) {
			l := newUnsealed(t, harness.Bases[1])
			l.exec(t, `DROP TABLE books;
				CREATE TABLE books (id integer PRIMARY KEY, price integer, fence_token bigint NOT NULL) PARTITION BY RANGE (id);
				CREATE TABLE few PARTITION OF books FOR VALUES FROM (0) TO (10);
				CREATE TABLE last PARTITION OF books FOR VALUES FROM (100) TO (110);
				INSERT INTO books VALUES (1, 10, 7), (2, 10, 7), (3, 10, 0)`)
			if strings.Contains(w.statements, "VALUES (11, 99, -8)") {
				l.exec(t, "CREATE TABLE eleven PARTITION OF books FOR VALUES FROM (11) TO (12)")
			}
			l.seal(t)
			w.run(t, l)
		})
	}
}

func (w way) run(t *testing.T, l *lab) {
	t.Helper()
	conn, err := l.plain.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	statements := strings.Split(w.statements, " ;; ")
	for i, query := range statements {
		_, err := conn.ExecContext(t.Context(), query)
		switch last := i == len(statements)-1; {
		case err != nil && (!last || w.says == ""):
			t.Fatalf("%s: %v", query, err)
		case last && w.says != "" && (err == nil || !strings.Contains(err.Error(), w.says)):
			t.Errorf("%s: %v, want %q in it", query, err, w.says)
		}
	}
	_, _ = conn.ExecContext(t.Context(), "ROLLBACK")
	if w.books == "" {
		return
	}
	l.want(t, w.books)
	broken := l.broken(t)
	if w.finds == "" && len(broken) > 0 || w.finds != "" && !slices.ContainsFunc(broken, func(f verify.Finding) bool { return strings.Contains(f.Problem, w.finds) }) {
		t.Errorf("verify.Check finds %v, want %q", broken, w.finds)
	}
}

// broken returns verify.Check's findings about the seal.
func (l *lab) broken(t testing.TB) []verify.Finding {
	t.Helper()
	found, err := verify.Check(t.Context(), l.db)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(f verify.Finding) bool {
		return f.Code != "wrong-seal" && !strings.Contains(f.Problem, "session_replication_role")
	})
}

// Row-level security hides rows, and then the ledger, from a role. The seal refuses the role's writes without a token,
// and all of its writes without the ledger's row.
func TestRowLevelSecurity(t *testing.T) {
	l := newLab(t, harness.Bases[1], sqlfence.Ledger())
	role := "writer" + l.unique
	var home string
	if err := l.plain.QueryRow("SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	l.exec(t, "CREATE ROLE "+role+"; GRANT USAGE ON SCHEMA "+home+" TO "+role+"; GRANT ALL ON books, fencing_tokens TO "+role)
	defer l.exec(t, "RESET ROLE; DROP OWNED BY "+role+"; DROP ROLE "+role)
	l.exec(t, "ALTER TABLE books ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON books USING (id <> 2)")
	l.plain.SetMaxOpenConns(1)
	l.exec(t, "SET ROLE "+role)
	l.refused(t, "UPDATE books SET price = 99", unproven)
	l.refused(t, "DELETE FROM books", unproven)
	l.exec(t, "UPDATE books SET price = 20, fence_token = -7")
	l.exec(t, "RESET ROLE; ALTER TABLE fencing_tokens ENABLE ROW LEVEL SECURITY; SET ROLE "+role)
	l.refused(t, "UPDATE books SET price = 99, fence_token = -7", "is not issued")
	l.refused(t, "DELETE FROM books WHERE set_config('sqlfence.delete_books', '7', true) IS NOT NULL", "is not issued")
	l.exec(t, "RESET ROLE")
	l.want(t, "1:20@7 2:10@7 3:20@7")
}

// Seal needs the table's owner, who may create the triggers' functions in its schema. Unseal creates none.
func TestWhoMaySeal(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1], sqlfence.Ledger())
	role := "owner" + l.unique
	var home string
	if err := l.plain.QueryRow("SELECT current_schema()").Scan(&home); err != nil {
		t.Fatal(err)
	}
	l.exec(t, "CREATE ROLE "+role+"; GRANT USAGE ON SCHEMA "+home+" TO "+role)
	defer l.exec(t, "DROP OWNED BY "+role+"; DROP ROLE "+role)
	u, err := url.Parse(l.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery += "&role=" + role
	l.dsn = u.String()
	owner := l.open(t)
	const denied = "42501"
	for _, step := range []struct{ grant, code string }{
		{"GRANT CREATE ON SCHEMA " + home + " TO " + role, denied},
		{"REVOKE CREATE ON SCHEMA " + home + " FROM " + role + "; ALTER TABLE books OWNER TO " + role, denied},
		{"GRANT CREATE ON SCHEMA " + home + " TO " + role, ""},
	} {
		l.exec(t, step.grant)
		if err := schema.Seal(t.Context(), owner); (err == nil) != (step.code == "") || err != nil && !strings.Contains(err.Error(), step.code) {
			t.Errorf("%s: %v, want %q", step.grant, err, step.code)
		}
	}
	l.refused(t, "UPDATE books SET price = 99", unproven)
	l.exec(t, "REVOKE CREATE ON SCHEMA "+home+" FROM "+role)
	if err := schema.Unseal(t.Context(), owner); err != nil {
		t.Error(err)
	}
}

// A trigger that fires after the seal's trigger could store another token than the seal has checked. Seal refuses to
// seal a table with such a trigger, and verify.Check reports it.
func TestFiredBehind(t *testing.T) {
	const lowers = "CREATE FUNCTION lower() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.fence_token := 1; RETURN NEW; END'; "
	for name, text := range map[string]string{
		"the table":   lowers + `CREATE TRIGGER "über" BEFORE INSERT OR UPDATE ON books FOR EACH ROW EXECUTE FUNCTION lower()`,
		"a child":     lowers + `CREATE TABLE rare () INHERITS (books); CREATE TRIGGER "~~" BEFORE UPDATE OF price ON rare FOR EACH ROW WHEN (NEW.price > 0) EXECUTE FUNCTION lower()`,
		"a partition": lowers + `DROP TABLE books; CREATE TABLE books (id integer, price integer, fence_token bigint NOT NULL) PARTITION BY HASH (id); CREATE TABLE rare PARTITION OF books FOR VALUES WITH (MODULUS 1, REMAINDER 0); CREATE TRIGGER "~sqlfence_writes" BEFORE INSERT ON rare FOR EACH ROW EXECUTE FUNCTION lower()`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newUnsealed(t, harness.Bases[1])
			l.exec(t, text)
			behind := text[strings.Index(text, "CREATE TRIGGER "):]
			trigger, _, _ := strings.Cut(strings.TrimPrefix(behind, "CREATE TRIGGER "), " ")
			_, table, _ := strings.Cut(behind, " ON ")
			table, _, _ = strings.Cut(table, " ")
			if err := schema.Seal(t.Context(), l.db); err == nil || !strings.Contains(err.Error(), strings.Trim(trigger, `"`)) {
				t.Errorf("Seal: %v, want it to refuse the trigger %s", err, trigger)
			}
			l.exec(t, "ALTER TRIGGER "+trigger+" ON "+table+" RENAME TO first")
			l.seal(t)
			l.refused(t, "INSERT INTO "+table+" (id, price, fence_token) VALUES (9, 10, -8); UPDATE books SET price = 1, fence_token = -8", unproven) // it lowers the token before the seal's trigger
			if found := l.broken(t); len(found) > 0 {
				t.Errorf("found %v", found)
			}
			l.exec(t, "ALTER TRIGGER first ON "+table+" RENAME TO "+trigger)
			found := l.broken(t)
			if len(found) != 1 || !strings.Contains(found[0].Problem, trigger[1:len(trigger)-1]+" of "+table+" is fired after it") || !strings.Contains(found[0].Remedy, "name") {
				t.Errorf("found %v", found)
			}
		})
	}
}

// Seal refuses a generated key column, whose value the seal's trigger can't see.
func TestGeneratedKey(t *testing.T) {
	l := newUnsealed(t, harness.Bases[1])
	l.exec(t, "ALTER TABLE books ADD isbn text GENERATED ALWAYS AS ('i' || id) STORED")
	for _, rules := range [][]sqlfence.Rule{{sqlfence.Key("isbn")}, {sqlfence.Key("isbn"), sqlfence.Ledger()}} {
		db := l.Fenced(t, l.dsn, sqlfence.WithTable("books", append(rules, l.rules...)...))
		if err := schema.Seal(t.Context(), db); err == nil || !strings.Contains(err.Error(), "the key column isbn") {
			t.Errorf("Seal: %v", err)
		}
	}
}
