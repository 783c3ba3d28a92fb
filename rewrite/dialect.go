package rewrite

// A Dialect is the SQL that a database speaks. The zero Dialect is none.
type Dialect uint8

// The dialects. MySQL is known by name but not guarded yet: [New] refuses
// tables for it.
const (
	Postgres Dialect = iota + 1
	SQLite
	MySQL
)

// String returns the dialect's name as its makers write it.
func (d Dialect) String() string {
	switch d {
	case Postgres:
		return "PostgreSQL"
	case SQLite:
		return "SQLite"
	case MySQL:
		return "MySQL"
	}
	return "unknown dialect"
}
