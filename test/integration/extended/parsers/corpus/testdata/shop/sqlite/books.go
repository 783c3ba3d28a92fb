package sqlite

import "database/sql"

func replace(db *sql.DB) {
	db.Exec("REPLACE INTO books (id, title) VALUES (?, ?)")
}
