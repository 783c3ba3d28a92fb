package confirm

import "testing"

// dialects are all that the check knows. Each has an answer in every test of facts.
var dialects = All()

// yes are the dialects in which a piece is in its place.
func yes(in ...*Dialect) map[*Dialect]bool {
	m := make(map[*Dialect]bool)
	for _, d := range in {
		m[d] = true
	}
	return m
}

// facts are texts that mean something else in another database.
var facts = map[string]map[*Dialect]bool{
	"UPDATE books SET a = 1 -- \r" + mark:                yes(Postgres),
	"UPDATE books SET a = 1 -- \n" + mark:                yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = 1 -- " + mark:                  yes(),
	"UPDATE books SET a = 1 /* /* */" + mark:             yes(SQLite, MySQL),
	"UPDATE books SET a = 1 /* /* */ */" + mark:          yes(Postgres),
	"UPDATE books SET a = 1" + mark + " /* *":            yes(SQLite),
	"UPDATE books SET a = 1 /*" + mark:                   yes(),
	"UPDATE \uFEFFbooks SET a = 1" + mark:                yes(SQLite),
	"UPDATE books SET a = \uFEFE" + mark:                 yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = - / .5.5 . b" + mark:           yes(Postgres, SQLite, MySQL),
	`UPDATE books SET a = e'\''` + mark:                  yes(Postgres),
	`UPDATE books SET a = e'\'` + mark:                   yes(SQLite),
	"UPDATE books SET a = E'a'\n --\n '\\''" + mark:      yes(Postgres),
	"UPDATE books SET a = E'a' -- '\n '\\'" + mark:       yes(SQLite),
	`UPDATE books SET a = E'a' '\'` + mark:               yes(Postgres, SQLite),
	`UPDATE books SET a = b'\' || n'\' || x'\'` + mark:   yes(Postgres, SQLite),
	`UPDATE books SET a = u&'\'` + mark:                  yes(Postgres, SQLite),
	`UPDATE books SET a = e&'\'` + mark:                  yes(Postgres, SQLite),
	`UPDATE u&"books" SET a = 1` + mark:                  yes(Postgres, MySQL),
	`UPDATE u&"\0062ooks" SET a = 1` + mark:              yes(Postgres),
	`UPDATE "books" SET a = "b""c"` + mark:               yes(Postgres, SQLite, MySQL),
	"UPDATE `books` SET a = `\"`" + mark:                 yes(SQLite, MySQL),
	"UPDATE [books] SET a = [']" + mark:                  yes(SQLite),
	"UPDATE 'books' SET a = 1" + mark:                    yes(SQLite),
	"UPDATE books SET a[1] = b[(2)]" + mark:              yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = $$'$$" + mark:                  yes(Postgres),
	"UPDATE books SET a = $b$'$$ $b$" + mark:             yes(Postgres),
	"UPDATE books SET a = $b" + mark:                     yes(SQLite, MySQL),
	"UPDATE books SET a = $12 + ?" + mark:                yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = ?12" + mark:                    yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = :b(')" + mark:                  yes(SQLite),
	"UPDATE books SET a = @b::c('d') + #e" + mark:        yes(Postgres, SQLite),
	"UPDATE books SET a = :b(" + mark:                    yes(),
	"UPDATE books SET a = b::int[]" + mark:               yes(Postgres, SQLite, MySQL),
	"UPDATE pens books SET a = 1" + mark:                 yes(Postgres, MySQL),
	"UPDATE pens AS books SET a = 1" + mark:              yes(Postgres, SQLite, MySQL),
	"UPDATE pens p SET a = 1" + mark:                     yes(),
	"UPDATE ONLY books SET a = 1" + mark:                 yes(Postgres, MySQL),
	"UPDATE ONLY (books) SET a = 1" + mark:               yes(Postgres),
	"UPDATE books INDEXED BY pens SET a = 1" + mark:      yes(SQLite),
	"UPDATE books NOT INDEXED SET a = 1" + mark:          yes(SQLite),
	"UPDATE OR ABORT books SET a = 1" + mark:             yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = offset" + mark:                 yes(SQLite, MySQL),
	"UPDATE books SET a = for" + mark:                    yes(SQLite),
	"UPDATE books SET a = lateral" + mark:                yes(SQLite, MySQL),
	"UPDATE books SET a = only" + mark:                   yes(SQLite, MySQL),
	"UPDATE books SET a = 1" + mark + " WINDOW w AS ()":  yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = between_two_and_more" + mark:   yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = _b + ſet" + mark:               yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = b" + mark + " WHERE c = 'open": yes(),
}

func TestFacts(t *testing.T) {
	for text, want := range facts {
		for _, d := range dialects {
			if got := confirmed(d, text, Assignment); got != want[d] {
				t.Errorf("%s: confirmed = %v: %s", d.name(), got, text)
			}
		}
	}
}

func (d *Dialect) name() string {
	return map[*Dialect]string{Postgres: "PostgreSQL", SQLite: "SQLite", MySQL: "MySQL"}[d]
}

// A dialect that lacks a fact reads some texts as another database would.
func TestEveryDialectIsComplete(t *testing.T) {
	for _, d := range dialects {
		if d.lineEnds == "" || len(d.introduced) == 0 || d.placeholder == 0 || d.names == nil {
			t.Errorf("%s: a fact is missing: %+v", d.name(), d)
		}
		for word := range commonWords {
			if d.keywords.sign(word) == signWord {
				t.Errorf("%s: %q is no keyword", d.name(), word)
			}
		}
	}
}
