package sqltext

// The dialects. The external tests set them, because this package can't import the dialects' packages.
var Postgres, SQLite, MySQL Dialect

// All returns the dialects in order.
func All() []Dialect { return []Dialect{Postgres, SQLite, MySQL} }
