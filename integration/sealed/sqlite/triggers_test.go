package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqlfence/sqlfence/integration/harness"
)

// A table's own triggers find its rows as without a seal, and are fired as often.
func TestTriggersOfTheTable(t *testing.T) {
	const script = plainBooks + `;
CREATE TABLE log (what text);
ALTER TABLE books ADD COLUMN changed integer NOT NULL DEFAULT 0;
CREATE TRIGGER added AFTER INSERT ON books BEGIN INSERT INTO log VALUES ('add ' || NEW.id); UPDATE books SET changed = changed + 1 WHERE id = NEW.id; END;
CREATE TRIGGER priced AFTER UPDATE OF price ON books WHEN OLD.price IS NOT NEW.price BEGIN
UPDATE books SET changed = changed + 1 WHERE id = NEW.id; INSERT INTO log VALUES ('price ' || OLD.price || ' ' || NEW.price); END;
CREATE TRIGGER pricing BEFORE UPDATE OF price ON books BEGIN INSERT INTO log VALUES ('before ' || NEW.price); END;
CREATE TRIGGER gone AFTER DELETE ON books BEGIN INSERT INTO log VALUES ('gone ' || OLD.id || OLD.price); END;
CREATE TRIGGER going BEFORE DELETE ON books BEGIN INSERT INTO log VALUES ('going ' || OLD.id); END`
	each(t, func(t *testing.T, b harness.Base) {
		for _, recursive := range []string{"0", "1"} {
			var books, log [2]string
			for i, l := range []*lab{newUnsealed(t, b, script), newLab(t, b, script)} {
				if _, err := l.db.Exec("PRAGMA recursive_triggers = " + recursive); err != nil {
					t.Fatal(err)
				}
				l.db.SetMaxOpenConns(1)
				for _, query := range []string{
					"UPDATE books SET price = price + 1",
					"INSERT INTO books (title) VALUES ('d'), ('e')",
					"INSERT INTO books (id, price) VALUES (1, 99) ON CONFLICT DO UPDATE SET price = excluded.price",
					"DELETE FROM books WHERE id IN (2, 4)",
				} {
					if _, err := l.db.ExecContext(holding(t, 8), query); err != nil {
						t.Fatalf("%s: %v", query, err)
					}
				}
				books[i] = strings.Join(rows(t, l.bare, "SELECT * FROM books"), "\n")
				log[i] = strings.Join(rows(t, l.bare, "SELECT * FROM log"), "\n")
			}
			if books[0] != books[1] || log[0] != log[1] {
				t.Errorf("sealed:\n%s\n%s\nelse:\n%s\n%s", books[1], log[1], books[0], log[0])
			}
		}
	})
}

// A trigger may keep a row that is deleted, with the mark of who tried.
func TestTriggerThatKeepsRows(t *testing.T) {
	for _, recursive := range []int{0, 1} {
		each(t, func(t *testing.T, b harness.Base) {
			l := newUnsealed(t, b, plainBooks+";\nCREATE TRIGGER keep BEFORE DELETE ON books WHEN OLD.id < 3 BEGIN UPDATE books SET price = -1 WHERE id = OLD.id; SELECT RAISE(IGNORE); END")
			l.seal(t)
			l.db.SetMaxOpenConns(1)
			if _, err := l.db.Exec(fmt.Sprintf("PRAGMA recursive_triggers = %d", recursive)); err != nil {
				t.Fatal(err)
			}
			if _, err := l.db.ExecContext(holding(t, 8), "DELETE FROM books"); err != nil {
				t.Fatal(err)
			}
			l.want(t, "1 -1 a 8", "2 -1 b 8")
			if _, err := l.bare.Exec("DELETE FROM books"); err == nil {
				t.Error("an unproven DELETE has landed")
			}
			l.want(t, "1 -1 a 8", "2 -1 b 8")
		})
	}
}

// A trigger may carry its statement's token to the rows that it writes besides.
func TestTriggerThatProves(t *testing.T) {
	each(t, func(t *testing.T, b harness.Base) {
		l := newLab(t, b, plainBooks+";\nCREATE TRIGGER next AFTER UPDATE OF price ON books WHEN NEW.id < 3 BEGIN UPDATE books SET title = title || '+', fence_token = -abs(NEW.fence_token) WHERE id = NEW.id + 1; END")
		if _, err := l.db.ExecContext(holding(t, 8), "UPDATE books SET price = 11 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		l.want(t, "1 11 a 8", "2 20 b+ 8", "3 30 c 0")
	})
}
