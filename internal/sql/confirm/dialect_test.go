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
	"UPDATE books SET a = 1 -- \r" + mark:                                                yes(Postgres),
	"UPDATE books SET a = 1 -- \n" + mark:                                                yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = 1 -- " + mark:                                                  yes(),
	"UPDATE books SET a = 1 /* /* */" + mark:                                             yes(SQLite, MySQL),
	"UPDATE books SET a = 1 /* /* */ */" + mark:                                          yes(Postgres),
	"UPDATE books SET a = 1" + mark + " /* *":                                            yes(SQLite),
	"UPDATE books SET a = 1 /*" + mark:                                                   yes(),
	"UPDATE \uFEFFbooks SET a = 1" + mark:                                                yes(SQLite),
	"UPDATE books SET a = \uFEFE" + mark:                                                 yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = - / .5.5 . b" + mark:                                           yes(Postgres, SQLite, MySQL),
	`UPDATE books SET a = e'\''` + mark:                                                  yes(Postgres),
	`UPDATE books SET a = e'\'` + mark:                                                   yes(SQLite),
	"UPDATE books SET a = E'a'\n --\n '\\''" + mark:                                      yes(Postgres),
	"UPDATE books SET a = E'a' -- '\n '\\'" + mark:                                       yes(SQLite),
	`UPDATE books SET a = E'a' '\'` + mark:                                               yes(Postgres, SQLite),
	`UPDATE books SET a = b'\' || n'\' || x'\'` + mark:                                   yes(Postgres, SQLite),
	`UPDATE books SET a = u&'\'` + mark:                                                  yes(Postgres, SQLite),
	`UPDATE books SET a = e&'\'` + mark:                                                  yes(Postgres, SQLite),
	`UPDATE u&"books" SET a = 1` + mark:                                                  yes(Postgres, MySQL),
	`UPDATE u&"\0062ooks" SET a = 1` + mark:                                              yes(Postgres),
	`UPDATE "books" SET a = "b""c"` + mark:                                               yes(Postgres, SQLite, MySQL),
	"UPDATE `books` SET a = `\"`" + mark:                                                 yes(SQLite, MySQL),
	"UPDATE [books] SET a = [']" + mark:                                                  yes(SQLite),
	"UPDATE 'books' SET a = 1" + mark:                                                    yes(SQLite),
	"UPDATE books SET a[1] = b[(2)]" + mark:                                              yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = $$'$$" + mark:                                                  yes(Postgres),
	"UPDATE books SET a = $b$'$$ $b$" + mark:                                             yes(Postgres),
	"UPDATE books SET a = $b" + mark:                                                     yes(SQLite, MySQL),
	"UPDATE books SET a = $12 + ?" + mark:                                                yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = ?12" + mark:                                                    yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = :b(')" + mark:                                                  yes(SQLite),
	"UPDATE books SET a = @b::c('d') + #e" + mark:                                        yes(Postgres, SQLite),
	"UPDATE books SET a = :b(" + mark:                                                    yes(),
	"UPDATE books SET a = b::int[]" + mark:                                               yes(Postgres, SQLite, MySQL),
	"UPDATE pens books SET a = 1" + mark:                                                 yes(Postgres, MySQL),
	"UPDATE pens AS books SET a = 1" + mark:                                              yes(Postgres, SQLite, MySQL),
	"UPDATE pens p SET a = 1" + mark:                                                     yes(),
	"UPDATE ONLY books SET a = 1" + mark:                                                 yes(Postgres, MySQL),
	"UPDATE ONLY (books) SET a = 1" + mark:                                               yes(Postgres, MySQL),
	"UPDATE books INDEXED BY pens SET a = 1" + mark:                                      yes(SQLite),
	"UPDATE books NOT INDEXED SET a = 1" + mark:                                          yes(SQLite),
	"UPDATE OR ABORT books SET a = 1" + mark:                                             yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = offset" + mark:                                                 yes(SQLite, MySQL),
	"UPDATE books SET a = for" + mark:                                                    yes(SQLite),
	"UPDATE books SET a = lateral" + mark:                                                yes(SQLite),
	"UPDATE books SET a = only" + mark:                                                   yes(SQLite, MySQL),
	"UPDATE books SET a = 1" + mark + " WINDOW w AS ()":                                  yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = between_two_and_more" + mark:                                   yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = _b + ſet" + mark:                                               yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = b" + mark + " WHERE c = 'open":                                 yes(),
	"UPDATE books SET a = 1 -- b" + mark + "\n":                                          yes(),
	"UPDATE books SET a = 1 --b" + mark:                                                  yes(MySQL),
	"UPDATE books SET a = 1 --\tb\n" + mark:                                              yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = 1 # b" + mark:                                                  yes(Postgres, SQLite),
	"UPDATE books SET a = 1 # b\n" + mark:                                                yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = 1 /*! b */" + mark:                                             yes(Postgres, SQLite),
	"UPDATE books SET a = 1 /*M!50000 b */" + mark:                                       yes(Postgres, SQLite),
	"UPDATE books SET a = 1 /*T![c] b */" + mark:                                         yes(Postgres, SQLite),
	"UPDATE /*+ b('c') */ books SET a = 1" + mark:                                        yes(Postgres, SQLite),
	"UPDATE /*+ b(c) */ books SET a = 1" + mark:                                          yes(Postgres, SQLite, MySQL),
	`UPDATE books SET a = '\'` + mark:                                                    yes(Postgres, SQLite),
	`UPDATE books SET a = '\\'` + mark:                                                   yes(Postgres, SQLite, MySQL),
	`UPDATE books SET a = "\"` + mark:                                                    yes(Postgres, SQLite),
	`UPDATE books SET a = n'\'` + mark:                                                   yes(Postgres, SQLite),
	`UPDATE books SET a = n'\n', b = "\\"` + mark:                                        yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = 1b + b.2c + 1e5 + 0x1F + .5" + mark:                            yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = 1e5 b" + mark:                                                  yes(Postgres, SQLite, MySQL),
	"UPDATE 1b AS books SET a = 1" + mark:                                                yes(Postgres, SQLite, MySQL),
	"UPDATE books SET a = @b + @@c + @`d` + @'e'" + mark:                                 yes(Postgres, SQLite, MySQL),
	"UPDATE LOW_PRIORITY IGNORE books SET a = 1" + mark:                                  yes(Postgres, MySQL),
	"UPDATE books FORCE INDEX (i) SET a = 1" + mark:                                      yes(SQLite, MySQL),
	"UPDATE books PARTITION (p) SET a = 1" + mark:                                        yes(SQLite, MySQL),
	"UPDATE pens p JOIN books ON 1 SET books.a = 1" + mark:                               yes(MySQL),
	"UPDATE pens p, books b SET b.a = 1" + mark:                                          yes(MySQL),
	"UPDATE (pens, books) SET a = 1" + mark:                                              yes(MySQL),
	"UPDATE (pens, inks) SET a = 1" + mark:                                               yes(),
	"UPDATE pens, inks SET a = 1" + mark:                                                 yes(),
	"UPDATE pens, inks SET a = 1 WHERE books" + mark:                                     yes(),
	"UPDATE pens JOIN books ON a" + mark + " SET b = 1":                                  yes(),
	"INSERT books SET a = 1" + mark:                                                      yes(MySQL),
	"INSERT INTO books SET a = 1" + mark + " AS n ON DUPLICATE KEY UPDATE a = n.b":       yes(MySQL),
	"INSERT INTO books SET a = 1 AS n ON DUPLICATE KEY UPDATE a = n.b" + mark:            yes(MySQL),
	"INSERT INTO books SET a = 1 AS n" + mark:                                            yes(),
	"UPDATE books SET a = 1" + mark + " AS n":                                            yes(),
	"INSERT INTO books SET a = 1 RETURNING a" + mark:                                     yes(),
	"INSERT pens SET a = 1" + mark:                                                       yes(),
	"INSERT INTO books VALUES (1) ON DUPLICATE KEY UPDATE a = 1" + mark:                  yes(MySQL),
	"INSERT INTO books VALUES (1) AS n ON DUPLICATE KEY UPDATE a = n.b" + mark:           yes(MySQL),
	"INSERT INTO books SELECT 1 FROM a JOIN b ON c ON DUPLICATE KEY UPDATE a = 1" + mark: yes(MySQL),
	"INSERT INTO books VALUES (1) ON DUPLICATE KEY UPDATE a = 1 RETURNING b" + mark:      yes(),
	"INSERT INTO books VALUES (1) RETURNING b ON DUPLICATE KEY UPDATE a = 1" + mark:      yes(MySQL), // no database takes it
	"INSERT INTO books VALUES (1) ON DUPLICATE UPDATE a = 1" + mark:                      yes(),
	"INSERT INTO books VALUES (1) KEY UPDATE a = 1" + mark:                               yes(),
	"INSERT INTO pens VALUES (1) ON DUPLICATE KEY UPDATE a = 1" + mark:                   yes(),
	"UPDATE books SET a = CASE WHEN b DIV CASE WHEN c THEN 1 END THEN 2 END" + mark:      yes(MySQL),
	"UPDATE books SET a = 0x + 0xg + 0b2 + 1ef" + mark:                                   yes(Postgres, SQLite, MySQL),
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
		if d.LineEnds == "" || len(d.Introduced) == 0 || d.Placeholder == 0 || d.Names == nil {
			t.Errorf("%s: a fact is missing: %+v", d.name(), d)
		}
		for word := range commonWords {
			if d.keywords.sign(word) == signWord {
				t.Errorf("%s: %q is no keyword", d.name(), word)
			}
		}
	}
}
