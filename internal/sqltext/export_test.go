package sqltext

// The dialects, which are below no package of theirs: the external tests set them.
var Postgres, SQLite, MySQL Dialect

// All has them in order.
func All() []Dialect { return []Dialect{Postgres, SQLite, MySQL} }
